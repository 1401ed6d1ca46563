/**
 * Reads request bodies. Bodies that may have to be sent again are read into memory, within a limit per body and a limit for all.
 * Others are streamed and counted.
 */
import type { IncomingMessage } from "node:http";
import { Effect, Schema, Scope, Semaphore } from "effect";
import { Alarm, Alarms } from "../../adapters/relay/Alarms.ts";
import type { GatewayLimits } from "../config/Options.ts";
import { type Holder, Shares } from "../limits/Shares.ts";
import { type Bytes, decodeBody } from "../upstream/ContentDecoding.ts";
import { concatBytes, GatheredBody } from "./GatheredBody.ts";

/**
 * A body is refused: it exceeds the limit per body, all bodies together exceed the limit for all, its client exceeds its share, it arrives
 * too slowly, or the client left while sending it.
 */
export class BodyRefused extends Schema.TaggedError<BodyRefused>()("BodyRefused", {
  reason: Schema.Literals(["too_long", "busy", "share", "slow", "broken"]),
}) {}

/** Maximum number of bodies decoded at one time, equal to the default size of Node's thread pool. */
export const decodingMax = 4;

/** Interval at which the progress of a body is checked, in milliseconds. A bad connection may deliver nothing for some seconds. */
export const uploadGraceMs = 20_000;

/** Minimum rate of a body over `uploadGraceMs`, in bytes per second. The slowest connections carry ten times as much. */
export const uploadBytesPerSecondMin = 64;

/** Bodies that are kept in memory. */
export class BodyStore {
  #limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">;
  readonly #decoding = Semaphore.makeUnsafe(decodingMax);
  readonly #shares = new Shares();

  /** @param limits maximum size of one body and of all bodies together, in bytes */
  constructor(limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">) {
    this.#limits = limits;
  }

  limit(limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">): void {
    this.#limits = limits;
  }

  get keptBytes(): number {
    return this.#shares.total;
  }

  /**
   * Reads a body, which counts until the scope is closed.
   *
   * @param invite called before the first byte is read, unless the declared length is refused
   * @param holder the client that the body counts for
   */
  read(request: IncomingMessage, invite: () => void, holder?: Holder): Effect.Effect<Bytes, BodyRefused, Scope.Scope> {
    return Effect.flatMap(this.#account(holder), (take) => {
      if (Number(request.headers["content-length"] ?? 0) > this.#limits.maxBodyBytes)
        return Effect.fail(new BodyRefused({ reason: "too_long" }));
      invite();
      return Effect.clockWith((clock) => gather(request, take, Alarms.of(clock)));
    });
  }

  /**
   * Decodes a copy of a kept body. Decoded bytes count as they are produced, like a body, until the scope is closed, because a
   * few bytes may decode to gigabytes.
   *
   * @param encoding the request's `content-encoding`
   * @param holder the client that the body counts for
   * @returns undefined for an unknown encoding or invalid bytes
   */
  decode(encoding: string, body: Bytes, holder?: Holder): Effect.Effect<Bytes | undefined, BodyRefused, Scope.Scope> {
    return Effect.flatMap(this.#account(holder), (take) =>
      this.#decoding.withPermit(
        Effect.flatMap(
          Effect.promise((signal) => decodeBody(encoding, body, take, signal)),
          (plain) => {
            if (plain === undefined) return Effect.undefined;
            return "refused" in plain
              ? Effect.fail(new BodyRefused({ reason: plain.refused }))
              : concatBytes(plain.chunks);
          },
        ),
      ),
    );
  }

  /** Counts bytes while a scope is open, and refuses those beyond a limit. */
  #account(holder: Holder): Effect.Effect<TakeBytes, never, Scope.Scope> {
    return Effect.suspend(() => {
      let held = 0;
      const take: TakeBytes = (bytes) => {
        const { maxBodiesBytes, maxBodyBytes } = this.#limits;
        if (held + bytes > maxBodyBytes) return "too_long";
        if (this.#shares.total + bytes > maxBodiesBytes) return "busy";
        // A client's only body may exceed its share.
        const isOnly = this.#shares.of(holder) === held;
        if (!this.#shares.mayHold(holder, bytes, maxBodiesBytes, isOnly)) return "share";
        held += bytes;
        this.#shares.add(holder, bytes);
        return undefined;
      };
      const release = Effect.sync(() => this.#shares.add(holder, -held));
      // `Effect.addFinalizer` would copy all services of the request, but this finalizer needs none.
      return Effect.flatMap(Effect.scope, (scope) => Effect.as(Scope.addFinalizer(scope, release), take));
    });
  }
}

/** Counts bytes, or returns the limit that they exceed. */
type TakeBytes = (bytes: number) => "too_long" | "busy" | "share" | undefined;

const gather = (request: IncomingMessage, take: TakeBytes, alarms: Alarms): Effect.Effect<Bytes, BodyRefused> =>
  Effect.callback<Bytes, BodyRefused>((resume) => {
    const body = new GatheredBody(Number(request.headers["content-length"] ?? 0));
    let came = 0;
    let isOver = false;
    const look = new Alarm(() => checkSpeed());
    const over = () => {
      isOver = true;
      alarms.clear(look);
      request.off("data", data).off("end", end).off("close", onBreak).off("error", onBreak);
      // Further bytes stay in the socket until the response has been written.
      request.pause();
    };
    const fail = (reason: BodyRefused["reason"]) => {
      over();
      resume(Effect.fail(new BodyRefused({ reason })));
    };
    const checkSpeed = () => {
      // A process that was suspended has read nothing, although bytes may have arrived.
      const isLate = alarms.now() - look.dueAt > uploadGraceMs;
      if (!isLate && came < (uploadBytesPerSecondMin * uploadGraceMs) / 1_000) return fail("slow");
      came = 0;
      alarms.set(look, alarms.now() + uploadGraceMs);
    };
    const data = (chunk: Buffer) => {
      came += chunk.byteLength;
      const refused = take(chunk.byteLength);
      if (refused === undefined) body.take(chunk);
      else fail(refused);
    };
    const end = () => {
      over();
      resume(body.whole);
    };
    const onBreak = () => fail("broken");
    // The checks start one turn later. By then most bodies have arrived in full and need no check.
    setImmediate(() => {
      if (!isOver) alarms.set(look, alarms.now() + uploadGraceMs);
    });
    request.on("data", data).on("end", end).on("close", onBreak).on("error", onBreak);
    return Effect.sync(over);
  });

/** True if a request has a body (RFC 9112, 6.3). */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/**
 * Streams the body of a request.
 *
 * @param maxBytes maximum size, beyond which the stream fails
 */
export async function* counted(request: IncomingMessage, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  // Destroying the request would also destroy its socket, and with it the response.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    // A request on which no encoding was set yields buffers, although its type does not say so.
    const buffer = chunk as Buffer;
    bytes += buffer.byteLength;
    if (bytes > maxBytes) throw new BodyRefused({ reason: "too_long" });
    yield buffer;
  }
}
