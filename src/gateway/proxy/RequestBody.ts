/**
 * Reads the bodies of requests: those that may have to be sent again into memory, within a limit for each and one for all;
 * others as they come, counted.
 */
import type { IncomingMessage } from "node:http";
import { Clock, Effect, Schema, Scope, Semaphore } from "effect";
import { type Deadline, Deadlines } from "../../adapters/relay/deadline/Deadlines.ts";
import type { GatewayLimits } from "../config/Options.ts";
import { type Holder, Shares } from "../limits/Shares.ts";
import { type Bytes, decodedBody } from "../upstream/ContentDecoding.ts";
import { GatheredBody, joined } from "./GatheredBody.ts";

/**
 * A body that is not taken: it is longer than its limit, all together are, those of its client are more than its share, it comes too
 * slowly, or the client went away while it sent it.
 */
export class BodyRefused extends Schema.TaggedError<BodyRefused>()("BodyRefused", {
  reason: Schema.Literals(["too_long", "busy", "share", "slow", "broken"]),
}) {}

/** Most bodies that are decoded at one time: as many as Node's thread pool has threads by default. */
export const decodingMax = 4;

/** How often it is looked at whether a body comes, in milliseconds: a bad line may bring nothing for some seconds. */
export const uploadGraceMs = 20_000;

/** Least bytes of a body per second, over `uploadGraceMs`: the slowest lines carry ten times as much. */
export const uploadBytesPerSecondMin = 64;

/** Bodies that are kept at one time. */
export class BodyStore {
  #limits: Pick<GatewayLimits, "maxBodyBytes" | "maxBodiesBytes">;
  readonly #decoding = Semaphore.makeUnsafe(decodingMax);
  readonly #shares = new Shares();

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
    return this.#shares.total;
  }

  /**
   * Reads a body; it counts until the scope is closed.
   *
   * @param invite called before the first byte is read, and not where the body's own length refuses it
   * @param holder whose body it is
   */
  read(request: IncomingMessage, invite: () => void, holder?: Holder): Effect.Effect<Bytes, BodyRefused, Scope.Scope> {
    return Effect.flatMap(this.#account(holder), (take) => {
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
   * @param holder whose body it is
   * @returns undefined for an encoding that is not known, and for bytes that are not of it
   */
  decoded(encoding: string, body: Bytes, holder?: Holder): Effect.Effect<Bytes | undefined, BodyRefused, Scope.Scope> {
    return Effect.flatMap(this.#account(holder), (take) =>
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
  #account(holder: Holder): Effect.Effect<TakeBytes, never, Scope.Scope> {
    return Effect.suspend(() => {
      let held = 0;
      const take: TakeBytes = (bytes) => {
        const { maxBodiesBytes, maxBodyBytes } = this.#limits;
        if (held + bytes > maxBodyBytes) return "too_long";
        if (this.#shares.total + bytes > maxBodiesBytes) return "busy";
        // A client's only body may be as long as any.
        const isOnly = this.#shares.of(holder) === held;
        if (!this.#shares.mayHold(holder, bytes, maxBodiesBytes, isOnly)) return "share";
        held += bytes;
        this.#shares.add(holder, bytes);
        return undefined;
      };
      const release = Effect.sync(() => this.#shares.add(holder, -held));
      // `Effect.addFinalizer` would copy all services of the request, which this one needs none of.
      return Effect.flatMap(Effect.scope, (scope) => Effect.as(Scope.addFinalizer(scope, release), take));
    });
  }
}

/** Counts bytes; gives why they are too many. */
type TakeBytes = (bytes: number) => "too_long" | "busy" | "share" | undefined;

const gathered = (request: IncomingMessage, take: TakeBytes): Effect.Effect<Bytes, BodyRefused> =>
  Effect.flatMap(Clock.Clock, (clock) => Effect.flatten(gathering(request, take, Deadlines.of(clock))));

const gathering = (
  request: IncomingMessage,
  take: TakeBytes,
  deadlines: Deadlines,
): Effect.Effect<Effect.Effect<Bytes>, BodyRefused> =>
  Effect.callback<Effect.Effect<Bytes>, BodyRefused>((resume) => {
    const body = new GatheredBody(Number(request.headers["content-length"] ?? 0));
    let came = 0;
    let isOver = false;
    const look: Deadline = { act: () => looked(), at: 0, place: -1 };
    const over = () => {
      isOver = true;
      deadlines.clear(look);
      request.off("data", data).off("end", end).off("close", broken).off("error", broken);
      // What still comes is left in the socket, until the response to its sender has been written.
      request.pause();
    };
    const fail = (reason: BodyRefused["reason"]) => {
      over();
      resume(Effect.fail(new BodyRefused({ reason })));
    };
    const looked = () => {
      // A process that was stopped meanwhile has read nothing, whatever came.
      const isLate = deadlines.now() - look.at > uploadGraceMs;
      if (!isLate && came < (uploadBytesPerSecondMin * uploadGraceMs) / 1_000) return fail("slow");
      came = 0;
      deadlines.set(look, deadlines.now() + uploadGraceMs);
    };
    const data = (chunk: Buffer) => {
      came += chunk.byteLength;
      const refused = take(chunk.byteLength);
      if (refused === undefined) body.take(chunk);
      else fail(refused);
    };
    const end = () => {
      over();
      resume(Effect.succeed(body.whole));
    };
    const broken = () => fail("broken");
    // Most bodies have come whole by then, and need no deadline.
    setImmediate(() => {
      if (!isOver) deadlines.set(look, deadlines.now() + uploadGraceMs);
    });
    request.on("data", data).on("end", end).on("close", broken).on("error", broken);
    return Effect.sync(over);
  });

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
