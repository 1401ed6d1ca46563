/**
 * Converts the parts that a run delivers to bytes for the client, and tracks which of them were sent.
 */
import { Cause, Effect, Predicate, type Pull } from "effect";
import { leavesIncompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import type { Framing } from "../../provider/stream/Framing.ts";
import * as Sse from "../../provider/stream/Sse.ts";
import type { PartEvent, RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { coalesce, type RelayPart, together } from "./RelayFrames.ts";
import type { RelayHeads } from "./RelayHeads.ts";

/** Events for an observer of a relayed run: all except the parts, and the interruption of the run. */
export type RelayEvent = Exclude<RunEvent<RelayPart>, PartEvent<RelayPart>> | RunInterrupted;

/** Bytes to send: whole events, in order. Undefined at the clean end. */
export type RelayBytes = ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined;

/** Pulls the next events of a run. */
export type Events = Pull.Pull<ReadonlyArray<RunEvent<RelayPart>>, RunInterrupted>;

/**
 * Ending that a client gets if its run breaks for good after the head. `break`: the provider's own error event, if there is one, and then a
 * broken connection. `tell`: the embedder sends its own events, so a provider's error event is forwarded only if no retry was possible.
 * `as_provider`: a clean end if the provider ended cleanly, otherwise like `break`.
 */
export type RelayEnding = "break" | "tell" | "as_provider";

/** The end of a broken run, as its client gets it. */
export interface Broken {
  readonly error: RunInterrupted;
  /** Bytes to send before the end, usually none. */
  readonly last: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** True if the body ends cleanly as the provider's did, and is not broken. */
  readonly endsCleanly: boolean;
}

/** Options that determine which bytes a reader forwards. */
export interface ReaderOptions {
  /** Called with every event except parts. If it throws, the error is logged and has no other effect. */
  readonly observe?: ((event: RelayEvent) => void) | undefined;
  readonly ending: RelayEnding;
  /** The form of the stream. If omitted, server-sent events. */
  readonly framing?: Framing | undefined;
  /**
   * True if a run that fails before the head is reported to the client by a status. An error event that was retried is then not forwarded.
   */
  readonly withholds: boolean;
  /** True if the request repeats an earlier request whose run failed. */
  readonly repeats: boolean;
}

/** Takes bytes from one run, for the only sink of the run. */
export class RelayReader {
  /** Number of attempts of the run that have started. */
  attempts = 0;
  /** True once a part was sent. */
  begun = false;
  /** True once the terminal marker was sent. A client that leaves after that cancels nothing. */
  terminal = false;
  ended = false;
  /** True once the provider's own error event was forwarded. */
  handedOn = false;
  /**
   * True if the relay's own bytes precede the response. A BOM at the start of the response would then be parsed as part of its first line.
   */
  preceded = false;
  /** True if nothing of the response was sent. */
  #atStart = true;
  /** True if the run is between two attempts or asks a question. The provider sends nothing in that time. */
  #waits = false;
  /** The last event that was sent. */
  #lastLeft: Uint8Array | undefined;
  readonly #options: ReaderOptions;
  readonly #heads: RelayHeads;
  #broken: Broken | undefined;
  readonly #thrown: Array<unknown> = [];

  constructor(heads: RelayHeads, options: ReaderOptions) {
    this.#heads = heads;
    this.#options = options;
  }

  /** True if the client waits for held bytes or for a decision of the run. */
  get holding(): boolean {
    if (this.terminal || this.ended || this.#broken !== undefined) return false;
    return !this.begun || this.#waits || this.#heads.calling;
  }

  /** True if the client has received the terminal marker or the clean end, and so needs nothing more. */
  get isComplete(): boolean {
    return this.terminal || this.ended;
  }

  /** Data of the last event that was sent, if it is JSON. It is parsed on access. */
  get last(): Json.JsonRecord | undefined {
    return this.#lastLeft === undefined ? undefined : lastDataOf(this.#lastLeft, this.#options.framing);
  }

  /** The last byte that was sent; undefined if none was. */
  get lastByte(): number | undefined {
    return this.#lastLeft?.at(-1);
  }

  /** Creates the reads from a pull. A read fails if the connection to the client must break. */
  taking(pull: Events): Effect.Effect<RelayBytes, RunInterrupted> {
    const taken: Effect.Effect<RelayBytes, RunInterrupted> = Effect.suspend(() =>
      Effect.matchEffect(pull, {
        onSuccess: (events) => {
          const bytes = this.bytesOf(events);
          const next = bytes.length > 0 ? Effect.succeed(bytes) : taken;
          return this.hasThrown ? Effect.andThen(this.reportThrown, next) : next;
        },
        onFailure: (failed) => {
          if (Cause.isDone(failed)) return this.#cleanEnd;
          const broken = this.onBreak(failed);
          return Effect.andThen(this.reportThrown, broken.last.length > 0 ? Effect.succeed(broken.last) : this.#over);
        },
      }),
    );
    return Effect.suspend(() => (this.#broken !== undefined || this.ended ? this.#over : taken));
  }

  get #over(): Effect.Effect<undefined, RunInterrupted> {
    return Effect.suspend(() =>
      this.#broken === undefined || this.#broken.endsCleanly ? this.#cleanEnd : Effect.fail(this.#broken.error),
    );
  }

  /** True if an observer has thrown since the last report. */
  get hasThrown(): boolean {
    return this.#thrown.length > 0;
  }

  /** Logs errors that an observer has thrown. They do not affect the run. */
  get reportThrown(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(
        this.#thrown.splice(0),
        (error) =>
          Effect.logError("onEvent threw an error", { class: error instanceof Error ? error.name : typeof error }),
        { discard: true },
      ),
    );
  }

  /**
   * Determines the end of a broken run. The provider's own error event is sent unchanged, after the bytes that were held before it. Then
   * the connection breaks, so that the client gets only bytes of the provider. A held call is not sent.
   */
  onBreak(error: RunInterrupted): Broken {
    this.#notify(error);
    const { cause } = error;
    const event =
      isErrorEvent(cause) && this.#shouldForwardError(error) && this.#heads.tryEndWith(cause, this.begun)
        ? cause.bytes
        : undefined;
    // If the relay itself withheld parts, the response is incomplete, even if the provider ended it cleanly.
    const isWithheld = ownReasons.has(error.reason) || leavesIncompleteCall(error.failure);
    const ends = this.#options.ending === "as_provider" && this.#heads.endedCleanly && !isWithheld;
    const last =
      event === undefined && !ends ? [] : this.#stripBom(coalesce([...this.#heads.beforeError(), event ?? nothing]));
    this.#broken = { error, last, endsCleanly: ends && (this.begun || last.length > 0) };
    if (last.length === 0) return this.#broken;
    this.#lastLeft = event ?? this.#lastLeft;
    this.handedOn = event !== undefined;
    return this.#broken;
  }

  get #cleanEnd(): Effect.Effect<undefined> {
    return Effect.sync(() => {
      this.ended = true;
      return undefined;
    });
  }

  /**
   * True if the provider's error event is forwarded. If the request was retried or could be, and the client can get a better report, the
   * event is withheld. A better report is a status before the head, or the embedder's own events after it.
   */
  #shouldForwardError({ rule }: RunInterrupted): boolean {
    const { ending, repeats, withholds } = this.#options;
    if (rule === "not_retryable") return true;
    return withholds && !this.#heads.sent ? this.attempts <= 1 && !repeats : ending !== "tell";
  }

  /** Returns the bytes of delivered parts, which count as sent from now on. Other events are passed to the observer. */
  bytesOf(events: ReadonlyArray<RunEvent<RelayPart>>): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    let bytes: Array<Uint8Array<ArrayBuffer>> | undefined;
    for (const event of events) {
      if (event._tag !== "Part") {
        if (event._tag === "AttemptStarted") this.attempts = event.attempt;
        this.#waits ||= waitsAt.has(event._tag);
        this.#notify(event);
        continue;
      }
      const { observation } = event.part;
      this.begun = true;
      this.#waits = false;
      if (event.part.bytes.byteLength > 0 && !observation.keep_alive) this.#lastLeft = event.part.bytes;
      this.#heads.recordSent(event.part);
      this.terminal ||= observation.terminal;
      // Gemini's last chunk is the terminal marker if nothing follows it, so a client that has this chunk needs nothing more.
      if (observation.terminal_at_end === true) this.terminal = true;
      // Nearly every batch has a single part. A literal with one element avoids V8's allocation of seventeen slots for a growing empty
      // array.
      if (bytes === undefined) bytes = [event.part.bytes];
      else bytes.push(event.part.bytes);
    }
    return bytes === undefined ? none : this.#stripBom(together(bytes));
  }

  /** Removes a BOM from the start of the response if other bytes precede it. */
  #stripBom(bytes: ReadonlyArray<Uint8Array<ArrayBuffer>>): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    if (!this.#atStart) return bytes;
    const [first, ...rest] = bytes;
    if (first === undefined) return bytes;
    this.#atStart = false;
    return this.preceded && bom.every((byte, at) => first[at] === byte) ? [first.subarray(bom.length), ...rest] : bytes;
  }

  #notify(event: RelayEvent): void {
    try {
      this.#options.observe?.(event);
    } catch (error) {
      this.#thrown.push(error);
    }
  }
}

/** Reasons for which the relay cuts a response that the provider may have sent completely. */
const ownReasons: ReadonlySet<RunInterrupted["reason"]> = new Set(["taken_over", "record_failed", "refused"]);

/** Events after which a run sends nothing until the next attempt has content. */
const waitsAt: ReadonlySet<RelayEvent["_tag"]> = new Set([
  "RetryScheduled",
  "Waiting",
  "AttemptDiscarded",
  "QuestionAsked",
]);

const nothing = new Uint8Array(0);
const none: ReadonlyArray<never> = [];
const bom = [0xef, 0xbb, 0xbf];

/** Returns the data of the last event in the bytes of whole events, if it is a JSON object. */
const lastDataOf = (bytes: Uint8Array, { makeFramer }: Framing = Sse.framing): Json.JsonRecord | undefined => {
  const framer = makeFramer();
  const last = [...framer.feed(bytes), ...framer.end()].findLast((frame) => !Sse.isComment(frame));
  return last === undefined || Sse.isComment(last) ? undefined : Json.record(Json.parse(last.data)?.json);
};

/**
 * True if a run ended with an error event of the provider. A damaged frame, or a finish that is also the terminal marker, is not an error
 * event.
 */
const isErrorEvent = (cause: unknown): cause is RelayPart =>
  isRelayPart(cause) &&
  !cause.observation.terminal &&
  cause.observation.failure !== undefined &&
  cause.observation.failure.kind !== "protocol";

const isRelayPart = (cause: unknown): cause is RelayPart =>
  Predicate.hasProperty(cause, "observation") &&
  Predicate.hasProperty(cause, "bytes") &&
  cause.bytes instanceof Uint8Array;
