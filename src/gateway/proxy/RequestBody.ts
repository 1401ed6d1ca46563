/**
 * Reads the bodies of requests: those that may have to be sent again into memory, within a limit for each and one for all;
 * others as they come, counted.
 */
import type { IncomingMessage } from "node:http";
import { Effect, Schema, Scope, Semaphore } from "effect";
import type { GatewayLimits } from "../config/GatewayOptions.ts";
import { type Bytes, decodedBody } from "../upstream/ContentDecoding.ts";
import { GatheredBody, joined } from "./GatheredBody.ts";

/** A body that is not taken: it is longer than its limit, all together are, or the client went away while it sent it. */
export class BodyRefused extends Schema.TaggedError<BodyRefused>()("BodyRefused", {
  reason: Schema.Literals(["too_long", "busy", "broken"]),
}) {}

/** Most bodies that are decoded at one time: as many as Node's thread pool has threads by default. */
export const decodingMax = 4;

/** Bodies that are kept at one time. */
export class BodyStore {
  #limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">;
  readonly #decoding = Semaphore.makeUnsafe(decodingMax);
  #kept = 0;

  /** @param limits of one body and of all, in bytes */
  constructor(limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">) {
    this.#limits = limits;
  }

  /** Sets other limits, for what comes from now on. */
  limit(limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">): void {
    this.#limits = limits;
  }

  /** Bytes that are kept now. */
  get kept(): number {
    return this.#kept;
  }

  /**
   * Reads a body; it counts until the scope is closed.
   *
   * @param invite called before the first byte is read, and not where the body's own length refuses it
   */
  read(request: IncomingMessage, invite: () => void): Effect.Effect<Bytes, BodyRefused, Scope.Scope> {
    return Effect.flatMap(this.#account, (take) => {
      if (Number(request.headers["content-length"] ?? 0) > this.#limits.maxBodyBytes)
        return Effect.fail(new BodyRefused({ reason: "too_long" }));
      invite();
      return gathered(request, take);
    });
  }

  /**
   * Decodes a copy of a body that is kept. What it is decoded to counts as it comes, like a body of its own, until the scope is
   * closed: a few bytes may stand for gigabytes.
   *
   * @param encoding the request's `content-encoding`
   * @returns undefined for an encoding that is not known, and for bytes that are not of it
   */
  decoded(encoding: string, body: Bytes): Effect.Effect<Bytes | undefined, BodyRefused, Scope.Scope> {
    return Effect.flatMap(this.#account, (take) =>
      this.#decoding.withPermit(
        Effect.flatMap(
          Effect.promise((signal) => decodedBody(encoding, body, take, signal)),
          (plain) => {
            if (plain === undefined) return Effect.undefined;
            return "refused" in plain ? Effect.fail(new BodyRefused({ reason: plain.refused })) : joined(plain.chunks);
          },
        ),
      ),
    );
  }

  /** Counts bytes for as long as a scope is open; refuses those beyond a limit. */
  readonly #account: Effect.Effect<TakeBytes, never, Scope.Scope> = Effect.suspend(() => {
    let held = 0;
    const take: TakeBytes = (bytes) => {
      if (held + bytes > this.#limits.maxBodyBytes) return "too_long";
      if (this.#kept + bytes > this.#limits.maxBodiesBytes) return "busy";
      held += bytes;
      this.#kept += bytes;
      return undefined;
    };
    const release = Effect.sync(() => {
      this.#kept -= held;
    });
    // `Effect.addFinalizer` would copy all services of the request, which this one needs none of.
    return Effect.flatMap(Effect.scope, (scope) => Effect.as(Scope.addFinalizer(scope, release), take));
  });
}

/** Counts bytes; gives why they are too many. */
type TakeBytes = (bytes: number) => "too_long" | "busy" | undefined;

const gathered = (request: IncomingMessage, take: TakeBytes): Effect.Effect<Bytes, BodyRefused> =>
  Effect.flatten(
    Effect.callback<Effect.Effect<Bytes>, BodyRefused>((resume) => {
      const body = new GatheredBody(Number(request.headers["content-length"] ?? 0));
      const over = () => {
        request.off("data", data).off("end", end).off("close", broken).off("error", broken);
        // What still comes is left in the socket, until the response to its sender has been written.
        request.pause();
      };
      const fail = (reason: BodyRefused["reason"]) => {
        over();
        resume(Effect.fail(new BodyRefused({ reason })));
      };
      const data = (chunk: Buffer) => {
        const refused = take(chunk.byteLength);
        if (refused === undefined) body.take(chunk);
        else fail(refused);
      };
      const end = () => {
        over();
        resume(Effect.succeed(body.whole));
      };
      const broken = () => fail("broken");
      request.on("data", data).on("end", end).on("close", broken).on("error", broken);
      return Effect.sync(over);
    }),
  );

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
  // A request that is destroyed takes its socket with it, and from the client the response to it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    // Without an encoding a request gives buffers, which its type leaves open.
    const buffer = chunk as Buffer;
    bytes += buffer.byteLength;
    if (bytes > maxBytes) throw new BodyRefused({ reason: "too_long" });
    yield buffer;
  }
}
