/**
 * Takes the parts that a run hands over, as bytes that may leave, and knows which of them have left.
 */
import { Cause, Effect, Predicate, type Pull } from "effect";
import { leavesIncompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import type { PartEvent, RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { coalesced, type RelayPart, together } from "./RelayFrames.ts";
import type { RelayHeads } from "./RelayHeads.ts";

/** What an observer of a relayed run gets: every event but the parts, and how the run was interrupted. */
export type RelayEvent = Exclude<RunEvent<RelayPart>, PartEvent<RelayPart>> | RunInterrupted;

/** Bytes that may leave, in order and whole events; undefined at the clean end. */
export type RelayBytes = ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined;

/** What a run is pulled by. */
export type Events = Pull.Pull<ReadonlyArray<RunEvent<RelayPart>>, RunInterrupted>;

/**
 * What a client gets where its run breaks for good behind a head. `break`: the provider's own error event where there is one,
 * and then a broken connection. `tell`: the embedder says it in events of its own, so that an error event goes only where it is
 * the provider's last word. `as_provider`: a clean end where the provider ended cleanly, else as `break`.
 */
export type RelayEnding = "break" | "tell" | "as_provider";

/** How a run has broken for its client. */
export interface Broken {
  readonly error: RunInterrupted;
  /** Bytes that leave before the end; often none. */
  readonly last: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** The provider's own clean end is what the client gets, and not a break. */
  readonly endsCleanly: boolean;
}

/** How a reader ends. */
export interface ReaderOptions {
  /** Called with every event but the parts; an error that it throws is logged and changes nothing. */
  readonly observe?: ((event: RelayEvent) => void) | undefined;
  readonly ending: RelayEnding;
  /** Until a head has gone, a run that ends can still be told by a status: no error event that may pass is handed on. */
  readonly withholds: boolean;
  /** The request repeats one whose run has failed. */
  readonly repeats: boolean;
}

/** Takes bytes from one run for its one sink. */
export class RelayReader {
  /** Attempts of the run so far. */
  attempts = 0;
  /** Content has left. */
  begun = false;
  /** The terminal marker has left: a client that goes away now has cancelled nothing. */
  terminal = false;
  ended = false;
  /** The provider's own error event was handed on. */
  handedOn = false;
  /** Something of our own has left before the response: a BOM at its start would be read as a part of its first line. */
  preceded = false;
  /** Nothing of the response has left. */
  #atStart = true;
  /** The run is between two attempts, or asks a question: nothing comes, whatever the provider does. */
  #waits = false;
  /** The last event of the response that has left. */
  #lastLeft: Uint8Array | undefined;
  readonly #options: ReaderOptions;
  readonly #heads: RelayHeads;
  #broken: Broken | undefined;
  readonly #thrown: Array<unknown> = [];

  constructor(heads: RelayHeads, options: ReaderOptions) {
    this.#heads = heads;
    this.#options = options;
  }

  /** Whether the client waits for bytes that are held back, or for what becomes of the run. */
  get holding(): boolean {
    if (this.terminal || this.ended || this.#broken !== undefined) return false;
    return !this.begun || this.#waits || this.#heads.calling;
  }

  /** True once the client has the terminal marker or the clean end, so that it needs nothing more. */
  get isComplete(): boolean {
    return this.terminal || this.ended;
  }

  /** The data of the last event that has left, where it is JSON. It is parsed only here. */
  get last(): Json.JsonRecord | undefined {
    return this.#lastLeft === undefined ? undefined : dataOf(this.#lastLeft);
  }

  /** The last byte that has left; undefined before the first. */
  get lastByte(): number | undefined {
    return this.#lastLeft?.at(-1);
  }

  /** The next bytes of what is pulled; it fails where the connection to the client has to break. */
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
          const broken = this.breaks(failed);
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

  /** Whether an observer has thrown. */
  get hasThrown(): boolean {
    return this.#thrown.length > 0;
  }

  /** An observer's own error is logged, and does not change the run. */
  get reportThrown(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.forEach(
        this.#thrown.splice(0),
        (error) => Effect.logError("onEvent has thrown", { class: error instanceof Error ? error.name : typeof error }),
        { discard: true },
      ),
    );
  }

  /**
   * The run has broken. The provider's own error event goes to the client as it came, behind the bytes that were held before it, and
   * then the connection breaks: the client reads what the provider sent, and nothing else. A call before the event stays held.
   */
  breaks(error: RunInterrupted): Broken {
    this.#notify(error);
    if (isWhole(error)) {
      this.#broken = { error, last: none, endsCleanly: this.begun };
      return this.#broken;
    }
    const { cause } = error;
    const event =
      isErrorEvent(cause) && this.#handsOn(error) && this.#heads.endsWith(cause, this.begun) ? cause.bytes : undefined;
    // What is kept back for a reason of our own is missing, however the provider has ended.
    const isWithheld = ownReasons.has(error.reason) || leavesIncompleteCall(error.failure);
    const ends = this.#options.ending === "as_provider" && this.#heads.endedCleanly && !isWithheld;
    const last =
      event === undefined && !ends ? [] : this.#started(coalesced([...this.#heads.beforeError(), event ?? nothing]));
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
   * Whether the provider's error event is handed on. One that was asked again, or would be, is not where the client can be told
   * in better words: by a status before the head, by events of the embedder's own behind it.
   */
  #handsOn({ rule }: RunInterrupted): boolean {
    const { ending, repeats, withholds } = this.#options;
    if (rule === "not_retryable") return true;
    return withholds && !this.#heads.sent ? this.attempts <= 1 && !repeats : ending !== "tell";
  }

  /** The bytes of what the run has handed over: from now on they have left. Its other events are told. */
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
      this.#heads.left(event.part);
      this.terminal ||= observation.terminal;
      // Gemini's last chunk is the marker once nothing follows it; a client that has it needs no more.
      if (observation.terminal_at_end === true) this.terminal = true;
      // Most are alone, and need nothing put together. A list that grows has room for seventeen.
      if (bytes === undefined) bytes = [event.part.bytes];
      else bytes.push(event.part.bytes);
    }
    return bytes === undefined ? none : this.#started(together(bytes));
  }

  /** Bytes that leave; those which are the first lose a BOM where they are not the first of the body. */
  #started(bytes: ReadonlyArray<Uint8Array<ArrayBuffer>>): ReadonlyArray<Uint8Array<ArrayBuffer>> {
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

/** The run is another process's, and its whole response was handed over. */
export const isWhole = ({ reason, rule }: RunInterrupted): boolean =>
  reason === "taken_over" && rule === "already_complete";

/** Why a response is cut here that its provider may have sent whole. */
const ownReasons: ReadonlySet<RunInterrupted["reason"]> = new Set(["taken_over", "record_failed", "refused"]);

/** Events of a run after which nothing comes until the next attempt has content. */
const waitsAt: ReadonlySet<RelayEvent["_tag"]> = new Set([
  "RetryScheduled",
  "Waiting",
  "AttemptDiscarded",
  "QuestionAsked",
]);

const nothing = new Uint8Array(0);
const none: ReadonlyArray<never> = [];
const bom = [0xef, 0xbb, 0xbf];

/** The data of an event, where it is a JSON object. */
const dataOf = (event: Uint8Array): Json.JsonRecord | undefined => {
  const lines = new TextDecoder().decode(event).split(/\r\n|\r|\n/);
  const data = lines.flatMap((line) => (line.startsWith("data:") ? [line.slice("data:".length)] : []));
  return Json.record(Json.parse(data.join("\n"))?.json);
};

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
