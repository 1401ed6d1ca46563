/**
 * Plays a provider to the relay: a transport whose attempts are lists of steps, under the test's clock.
 */
import { Effect, Layer, References, type Scope } from "effect";
import { TestClock } from "effect/testing";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import type { RelayInterrupted } from "../../../src/adapters/relay/RelayInterrupted.ts";
import { type RelayPlan, recognise } from "../../../src/adapters/relay/RelayPlan.ts";
import type { RelayBytes } from "../../../src/adapters/relay/RelayReader.ts";
import type { RelayHead, RelayTransport } from "../../../src/adapters/relay/RelayTransport.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";

export const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
export const role = chunk({ role: "assistant" });
export const text = (content: string): string => chunk({ content });
export const call = chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "pay", arguments: "{}" } }] });
export const stop = chunk({}, "stop");
export const reset = (): Error => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });

export const head: RelayHead = { status: 200, statusText: "OK", headers: [["Content-Type", "text/event-stream"]] };

/** The steps of an attempt: a head or a chunk, a wait in milliseconds, an error, an end, or endless silence. */
export type Step = RelayHead | string | number | Error | "end" | "silence";

type Met = RelayHead | string;

/** A transport that plays one list of steps an attempt; it counts what was opened and given up. */
export const scripted = (...attempts: ReadonlyArray<ReadonlyArray<Step>>) => {
  const seen = { opened: 0, aborted: 0, reads: 0 };
  let sleep: ((ms: number) => Promise<void>) | undefined;
  const transport: RelayTransport = {
    open: (_, reporters) => {
      const steps = [...(attempts[seen.opened] ?? [])];
      seen.opened += 1;
      reporters.delivery("ambiguous");
      const next = async (): Promise<Met> => {
        for (;;) {
          const step = steps.shift() ?? "silence";
          if (step === "silence") return new Promise(() => undefined);
          if (step instanceof Error) throw step;
          if (typeof step !== "number") return step;
          if (sleep === undefined) throw new Error("a script that waits is played by its timed transport");
          await sleep(step);
        }
      };
      return {
        head: async () => {
          const step = await next();
          return typeof step === "string" ? head : step;
        },
        read: async () => {
          seen.reads += 1;
          const step = await next();
          if (step === "end" || typeof step !== "string") return undefined;
          const bytes = bytesOf(step);
          reporters.bytes(bytes.byteLength);
          return [bytes];
        },
        abort: () => {
          seen.aborted += 1;
        },
      };
    },
  };
  /** The steps that wait do so by this test's clock. */
  const timed = Effect.map(Effect.context<never>(), (services) => {
    sleep = (ms) => Effect.runPromiseWith(services)(Effect.sleep(ms));
    return transport;
  });
  return { transport, timed, seen };
};

/** A request of a protocol, as the relay recognises it. */
export const planOf = (
  body: object = {},
  url = "https://api.example/v1/chat/completions",
  headers: RelayPlan["request"]["headers"] = [],
): RelayPlan => {
  const plan = recognise({
    method: "POST",
    url,
    headers,
    body: JSON.stringify({ model: "m", messages: [], stream: true, ...body }),
  });
  if (plan === undefined) throw new Error("a request was not recognised");
  return plan;
};

/** A request that is opened in the background. */
export const opening = (plan: RelayPlan, options: Relay.RelayOptions) =>
  Effect.forkScoped(Relay.open(plan, options), { startImmediately: true });

export const shown = (bytes: ReadonlyArray<Uint8Array> | undefined): string =>
  bytes === undefined ? "END" : Buffer.concat(bytes).toString();

export const layer = Layer.merge(StreamProcessor.layerDefault, Layer.succeed(References.MinimumLogLevel, "None"));

/** Lets promises settle before the clock is moved. */
export const settle = Effect.promise(() => new Promise((done) => setImmediate(done)));

/** Lets time pass, in steps that are short enough for what waits behind each other. */
export const pass = (seconds: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let left = seconds * 2; left > 0; left -= 1) {
      yield* settle;
      yield* TestClock.adjust(500);
    }
    yield* settle;
  });

/** Reads in the background as a client does: what it has had so far, and how it ended. */
export const client = (
  read: Effect.Effect<RelayBytes, RelayInterrupted>,
): Effect.Effect<{ text: string; end: string | undefined }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const got: { text: string; end: string | undefined } = { text: "", end: undefined };
    const reading = Effect.gen(function* () {
      for (;;) {
        const bytes = yield* read;
        if (bytes === undefined) {
          got.end = "end";
          return;
        }
        got.text += shown(bytes);
      }
    }).pipe(
      Effect.catch((error) =>
        Effect.sync(() => {
          got.end = error.rule;
        }),
      ),
    );
    yield* Effect.forkScoped(reading, { startImmediately: true });
    return got;
  });
