/**
 * Takes the parts that a run hands over, as bytes that may leave, and knows which of them have left.
 */
import { Cause, Effect, Fiber, Option, Predicate, type Pull, type Scope } from "effect";
import type { PartEvent, RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { coalesced, type RelayPart } from "./RelayFrames.ts";
import type { RelayHeads } from "./RelayHeads.ts";

/** What an observer of a relayed run gets: every event but the parts, and how the run was interrupted. */
export type RelayEvent = Exclude<RunEvent<RelayPart>, PartEvent<RelayPart>> | RunInterrupted;

/** Bytes that may leave, in order and whole events; undefined at the clean end. */
export type RelayBytes = ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined;

type Events = Pull.Pull<ReadonlyArray<RunEvent<RelayPart>>, RunInterrupted>;

/** Takes bytes from one run for its one sink. */
export class RelayReader {
  /** Attempts of the run so far. */
  attempts = 0;
  /** Content has left. */
  begun = false;
  /** The terminal marker has left: a client that goes away now has cancelled nothing. */
  terminal = false;
  ended = false;
  readonly #pull: Events;
  readonly #observe: ((event: RelayEvent) => void) | undefined;
  readonly #heads: RelayHeads;
  #last: ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined;
  #broken: RunInterrupted | undefined;
  readonly #thrown: Array<unknown> = [];

  /** @param observe called with every event but the parts; an error that it throws is logged and changes nothing */
  constructor(pull: Events, heads: RelayHeads, observe: ((event: RelayEvent) => void) | undefined) {
    this.#pull = pull;
    this.#heads = heads;
    this.#observe = observe;
  }

  /** Whether bytes are held back that the client waits for. */
  get holding(): boolean {
    return !this.begun || (this.#heads.calling && !this.terminal);
  }

  /** The next bytes; it fails where the connection to the client has to break. */
  readonly take: Effect.Effect<RelayBytes, RunInterrupted> = Effect.suspend(() => {
    if (this.#broken !== undefined) return this.#break(this.#broken);
    return this.ended ? Effect.undefined : this.#taken;
  });

  readonly #taken: Effect.Effect<RelayBytes, RunInterrupted> = Effect.suspend(() =>
    Effect.matchEffect(this.#pull, {
      onSuccess: (events) => {
        const bytes = this.#bytesOf(events);
        const next = bytes.length > 0 ? Effect.succeed(bytes) : this.#taken;
        return this.#thrown.length > 0 ? Effect.andThen(this.#reportThrown, next) : next;
      },
      onFailure: (failed) => {
        if (Cause.isDone(failed)) {
          this.ended = true;
          return Effect.undefined;
        }
        this.#broken = failed;
        this.#notify(failed);
        return Effect.andThen(this.#reportThrown, this.#break(failed));
      },
    }),
  );

  /** An observer's own error is logged, and does not change the run. */
  readonly #reportThrown: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(
      this.#thrown.splice(0),
      (error) => Effect.logError("onEvent has thrown", { class: error instanceof Error ? error.name : typeof error }),
      { discard: true },
    ),
  );

  /**
   * The provider's own error event goes to the client as it came, behind the bytes that were held before it, and then the
   * connection breaks: the client reads what the provider sent, and nothing else. A call before the event stays held.
   */
  #break(broken: RunInterrupted): Effect.Effect<RelayBytes, RunInterrupted> {
    if (this.#last !== undefined) return Effect.fail(broken);
    const { cause } = broken;
    this.#last = isErrorEvent(cause) ? coalesced([...this.#heads.beforeError(), cause.bytes]) : [];
    return this.#last.length > 0 ? Effect.succeed(this.#last) : Effect.fail(broken);
  }

  #bytesOf(events: ReadonlyArray<RunEvent<RelayPart>>): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    const bytes: Array<Uint8Array<ArrayBuffer>> = [];
    for (const event of events) {
      if (event._tag !== "Part") {
        if (event._tag === "AttemptStarted") this.attempts = event.attempt;
        this.#notify(event);
        continue;
      }
      const { observation } = event.part;
      this.begun = true;
      this.#heads.left(event.part);
      this.terminal ||= observation.terminal;
      // Gemini's last chunk is the marker once nothing follows it; a client that has it needs no more.
      if (observation.terminal_at_end === true) this.terminal = true;
      bytes.push(event.part.bytes);
    }
    return coalesced(bytes);
  }

  #notify(event: RelayEvent): void {
    try {
      this.#observe?.(event);
    } catch (error) {
      this.#thrown.push(error);
    }
  }
}

/**
 * Reads that give a keep-alive comment where bytes are held back for long.
 *
 * @param take gives the next bytes
 * @param everyMs milliseconds without a byte
 * @param comment whole lines of a server-sent-event comment
 */
export const keptAlive = (
  take: Effect.Effect<RelayBytes, RunInterrupted>,
  reader: RelayReader,
  everyMs: number,
  comment: Uint8Array<ArrayBuffer>,
): Effect.Effect<Effect.Effect<RelayBytes, RunInterrupted>, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let waiting: Fiber.Fiber<RelayBytes, RunInterrupted> | undefined;
    const read: Effect.Effect<RelayBytes, RunInterrupted> = Effect.suspend(() =>
      Effect.gen(function* () {
        waiting ??= yield* Effect.forkIn(take, scope, { startImmediately: true });
        const exit = yield* Effect.timeoutOption(Fiber.await(waiting), everyMs);
        if (Option.isNone(exit)) return reader.holding ? [comment] : yield* read;
        waiting = undefined;
        return yield* exit.value;
      }),
    );
    return read;
  });

/** Whether a run ended with an error event, and neither with a damaged frame nor with a finish that is the marker too. */
const isErrorEvent = (cause: unknown): cause is RelayPart =>
  isRelayPart(cause) &&
  !cause.observation.terminal &&
  cause.observation.failure !== undefined &&
  cause.observation.failure.kind !== "protocol";

const isRelayPart = (cause: unknown): cause is RelayPart =>
  Predicate.hasProperty(cause, "observation") &&
  Predicate.hasProperty(cause, "bytes") &&
  cause.bytes instanceof Uint8Array;
