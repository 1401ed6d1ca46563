/**
 * Reads the bodies of requests: those that may have to be sent again into memory, within a limit for each and one for all;
 * others as they come, counted.
 */
import type { IncomingMessage } from "node:http";
import { Effect, Schema, type Scope } from "effect";
import type { GatewayLimits } from "../config/GatewayOptions.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/** A body that is not taken: it is longer than its limit, all together are, or the client went away while it sent it. */
export class BodyRefused extends Schema.TaggedError<BodyRefused>()("BodyRefused", {
  reason: Schema.Literals(["too_long", "busy", "broken"]),
}) {}

/** Bodies that are kept at one time. */
export class BodyStore {
  readonly #limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">;
  #kept = 0;

  /** @param limits of one body and of all, in bytes */
  constructor(limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">) {
    this.#limits = limits;
  }

  /** Bytes that are kept now. */
  get kept(): number {
    return this.#kept;
  }

  /** Reads a body; it counts until the scope is closed. */
  read(request: IncomingMessage): Effect.Effect<Bytes, BodyRefused, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      let held = 0;
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          this.#kept -= held;
        }),
      );
      const take = (bytes: number): BodyRefused["reason"] | undefined => {
        if (held + bytes > this.#limits.maxBodyBytes) return "too_long";
        if (this.#kept + bytes > this.#limits.maxBodiesBytes) return "busy";
        held += bytes;
        this.#kept += bytes;
        return undefined;
      };
      if (Number(request.headers["content-length"] ?? 0) > this.#limits.maxBodyBytes)
        return yield* new BodyRefused({ reason: "too_long" });
      return yield* gathered(request, take);
    });
  }
}

const gathered = (
  request: IncomingMessage,
  take: (bytes: number) => BodyRefused["reason"] | undefined,
): Effect.Effect<Bytes, BodyRefused> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = [];
    const over = () => {
      request.off("data", data).off("end", end).off("close", broken).off("error", broken);
      // What still comes is left in the socket; the response tells its sender to stop.
      request.pause();
    };
    const fail = (reason: BodyRefused["reason"]) => {
      over();
      resume(Effect.fail(new BodyRefused({ reason })));
    };
    const data = (chunk: Buffer) => {
      const refused = take(chunk.byteLength);
      if (refused === undefined) chunks.push(chunk);
      else fail(refused);
    };
    const end = () => {
      over();
      resume(Effect.succeed(joined(chunks)));
    };
    const broken = () => fail("broken");
    request.on("data", data).on("end", end).on("close", broken).on("error", broken);
    return Effect.sync(over);
  });

const joined = (chunks: ReadonlyArray<Buffer>): Bytes => {
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
};

/** Whether a request has a body at all (RFC 9112, 6.3). */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * The body of a request as it comes.
 *
 * @param maxBytes it fails beyond
 */
export async function* counted(request: IncomingMessage, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of request) {
    // Without an encoding a request gives buffers, which its type leaves open.
    const buffer = chunk as Buffer;
    bytes += buffer.byteLength;
    if (bytes > maxBytes) throw new BodyRefused({ reason: "too_long" });
    yield buffer;
  }
}
