/**
 * Helpers of `recoveringFetch`'s tests: a fault server, a fetch that is closed with its test, and raw calls of it.
 */
import { Effect, Layer, Random, References } from "effect";
import {
  type FetchRecoveryOptions,
  type RecoveringFetch,
  type RelayEvent,
  recoveringFetch,
} from "../../../src/adapters/fetch/FetchRecovery.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { FaultProvider, type FaultProviderOptions } from "../../../src/testing/index.ts";
import { byProtocol, ids } from "../../samples/index.ts";

export const protocols = ids;

/** Jitter of almost 0, so that every wait is as short as it can be, and no number twice, so that every run has its id. */
export const eager = (): Layer.Layer<StreamProcessor> => {
  let numbers = 0;
  const next = () => {
    numbers += 1;
    return numbers;
  };
  const random = { nextIntUnsafe: next, nextDoubleUnsafe: () => next() / 2 ** 32 };
  return Layer.merge(
    StreamProcessor.layerDefault,
    Layer.merge(Layer.succeed(Random.Random, random), Layer.succeed(References.MinimumLogLevel, "None")),
  );
};

/** The bodies that a client would send: all that tells a request apart is its model. */
export const bodies = byProtocol(({ bare }) => bare);

export interface Setup {
  readonly server: FaultProvider["Service"];
  readonly fetch: RecoveringFetch;
  readonly events: ReadonlyArray<RelayEvent>;
  /** Posts the protocol's body to the server. */
  readonly post: (protocol: ProtocolId, init?: RequestInit, script?: string) => Promise<Response>;
}

/** Starts a server and a fetch in front of it. */
export const setup = (script: FaultProviderOptions["script"], options: FetchRecoveryOptions = {}) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make(script === undefined ? {} : { script });
    const events: Array<RelayEvent> = [];
    const fetch = yield* Effect.acquireRelease(
      Effect.sync(() => recoveringFetch({ layer: eager(), onEvent: (event) => void events.push(event), ...options })),
      (made) => Effect.promise(made.close),
    );
    const post = (protocol: ProtocolId, init: RequestInit = {}, name?: string) =>
      fetch(server.endpoint(protocol, name), { method: "POST", body: JSON.stringify(bodies[protocol]), ...init });
    return { server, fetch, events, post } satisfies Setup;
  });

/** A body as far as it came, and the error that it broke with. */
export interface Read {
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly error: unknown;
}

/** Reads a body to its end or its break. */
export const read = async (response: Response): Promise<Read> => {
  const chunks: Array<Uint8Array> = [];
  let error: unknown;
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk);
  } catch (caught) {
    error = caught;
  }
  const bytes = Buffer.concat(chunks);
  return { text: bytes.toString(), bytes, error };
};
