/** Tracks the response head of a run's newest attempt, and the events of that attempt that were not sent to the client. */
import { Deferred, Effect } from "effect";
import type { RelayPart } from "./RelayFrames.ts";
import type { RelayHead } from "./RelayTransport.ts";

/** A response that was ended by an error event. */
interface FailedResponse {
  readonly attempt: number;
  readonly head: RelayHead | undefined;
  /** Its events that were not sent. */
  readonly waiting: ReadonlyArray<RelayPart>;
  /** True if its attempt was a continuation of shown text. Its error event is not part of the client's response. */
  readonly continues: boolean;
}

/** The heads of one run. Each attempt has at most one, and only the newest is kept. */
export class RelayHeads {
  /** Number of the newest attempt, from 1; 0 before the first. */
  attempt = 0;
  /** Successful head of the newest attempt. */
  head: RelayHead | undefined;
  /** True if a call has begun in the newest attempt, so that all following events are held. */
  calling = false;
  /** True if the newest attempt's body has ended cleanly. */
  endedCleanly = false;
  /** True if the head of a stream was sent to the client. No other kind of response can follow. */
  sent = false;
  /** True if any attempt had the head of a stream. */
  hasStreamed = false;
  /** Route of the newest attempt that was opened, if routes have names. */
  route: string | undefined;
  /** The routes of errors. Created with the first error, like `#failed`, because few responses have one. */
  #routes: WeakMap<object, string> | undefined;
  /** The state of responses at the time of their error events. */
  #failed: WeakMap<RelayPart, FailedResponse> | undefined;
  /** True if the newest attempt's head is that of a stream. */
  #streams = false;
  /** Completes once the newest attempt is known to be a stream, or another attempt begins. Created when a caller waits for it. */
  #decided: Deferred.Deferred<void> | undefined;
  /** True if the newest attempt continues shown text, so that its own events are not sent unchanged. */
  #continues = false;
  /** Events of the newest attempt that have arrived and were not sent. */
  readonly #waiting = new WaitingParts();
  #isForgotten = false;

  #released: ((head: RelayHead) => void) | undefined;
  /** The first head that could be sent before any content. */
  firstReleased: RelayHead | undefined;
  #opened: { readonly onOpened: (attempt: number) => void } | undefined;

  /** True if the newest attempt's response is a stream. Every call in a stream is recognised before it is sent. */
  get isStream(): boolean {
    return this.#streams;
  }

  /** Registers a listener that is called with `firstReleased` in the step in which it is set. There is only one listener. */
  whenReleased(told: (head: RelayHead) => void): void {
    this.#released = told;
  }

  get awaitRelease(): Effect.Effect<RelayHead> {
    return Effect.callback((resume) => {
      if (this.firstReleased !== undefined) return void resume(Effect.succeed(this.firstReleased));
      this.whenReleased((head) => resume(Effect.succeed(head)));
    });
  }

  /** Registers a listener for attempts that begin from now on. */
  setOpenListener(listener: { readonly onOpened: (attempt: number) => void }): void {
    this.#opened = listener;
  }

  /**
   * Begins an attempt.
   *
   * @param cursor set if it resumes the same response, whose head and held events remain
   * @param continues true if it continues shown text: the head remains, but held events do not
   */
  begin(attempt: number, cursor?: string, continues = false): void {
    this.attempt = attempt;
    this.endedCleanly = false;
    this.#continues = continues;
    this.#opened?.onOpened(attempt);
    if (continues) {
      this.calling = false;
      this.#waiting.clear();
      return;
    }
    if (cursor !== undefined) {
      this.#keepThrough(cursor);
      return;
    }
    this.head = undefined;
    this.calling = false;
    this.#streams = false;
    this.#waiting.clear();
    this.#markDecided();
  }

  /** Drops the waiting events after the cursor. The run has not taken these events, and the provider sends them again. */
  #keepThrough(cursor: string): void {
    const waiting = this.#waiting.all;
    const through = waiting.findIndex((part) => part.cursor === cursor);
    for (const part of waiting.slice(through + 1)) this.#waiting.remove(part);
    this.calling = waiting.slice(0, through + 1).some((part) => part.observation.calls.length > 0);
  }

  /** Records the route of an error, or of an event that reports an error. */
  recordRoute<E>(error: E): E {
    if (this.route !== undefined && typeof error === "object" && error !== null) {
      this.#routes ??= new WeakMap();
      this.#routes.set(error, this.route);
    }
    return error;
  }

  /** Returns the route of a run's error; the newest route if it is unknown. */
  routeOf(cause: unknown): string | undefined {
    return (typeof cause === "object" && cause !== null ? this.#routes?.get(cause) : undefined) ?? this.route;
  }

  /** Drops all waiting events, because no client can have the response any more. */
  forget(): void {
    this.#isForgotten = true;
    this.#waiting.clear();
  }

  recordArrival(part: RelayPart): void {
    if (part.observation.failure !== undefined) {
      this.recordRoute(part);
      this.#failed ??= new WeakMap();
      this.#failed.set(part, {
        ...{ attempt: this.attempt, head: this.head, waiting: this.#waiting.all, continues: this.#continues },
      });
    }
    if (part.observation.calls.length > 0) this.calling = true;
    if (part.observation.failure === undefined && !this.#isForgotten && !this.#continues) this.#waiting.add(part);
  }

  recordSent(part: RelayPart): void {
    this.#waiting.remove(part);
  }

  /**
   * Handles a run that ends with an error event. An event of an earlier attempt, on another route, restores that attempt's head and bytes.
   * If bytes of another attempt were sent, the event would end the wrong response. So would the error event of a continuation.
   *
   * @param begun true if bytes were sent
   * @returns true if the event may be sent
   */
  tryEndWith(part: RelayPart, begun: boolean): boolean {
    const failed = this.#failed?.get(part);
    if (failed?.continues === true) return false;
    if (failed === undefined || failed.attempt === this.attempt) return true;
    if (begun || this.sent || failed.head === undefined) return false;
    this.head = failed.head;
    this.route = this.routeOf(part);
    this.#waiting.clear();
    for (const it of failed.waiting) this.#waiting.add(it);
    return true;
  }

  /** Returns the bytes to send before an error event: all unsent bytes up to the first call. The call must not be sent (L4). */
  beforeError(): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    const waiting = this.#waiting.all;
    const call = waiting.findIndex((part) => part.observation.calls.length > 0);
    return (call === -1 ? waiting : waiting.slice(0, call)).map((part) => part.bytes);
  }

  /** Records a successful head. Ignores the head of an older attempt. A response that is resumed or continued keeps its first head. */
  recordHead(attempt: number, head: RelayHead): void {
    if (attempt === this.attempt) this.head ??= head;
  }

  /** Marks the newest head as that of a stream, so that it may be sent to the client. */
  release(attempt: number): void {
    if (attempt !== this.attempt || this.head === undefined) return;
    this.#streams = true;
    this.hasStreamed = true;
    this.#markDecided();
    const { head } = this;
    if (this.firstReleased !== undefined) return;
    this.firstReleased = head;
    this.#released?.(head);
  }

  #markDecided(): void {
    if (this.#decided !== undefined) Deferred.doneUnsafe(this.#decided, Effect.void);
    this.#decided = undefined;
  }

  get #isDecided(): Effect.Effect<void> {
    this.#decided ??= Deferred.makeUnsafe();
    return Deferred.await(this.#decided);
  }

  /**
   * Returns a head for a client that waits no longer: the head of a stream, or undefined if the newest attempt has no head. Waits if the
   * newest head may be that of a document, because the client could not read a document after another head.
   */
  get late(): Effect.Effect<RelayHead | undefined> {
    return Effect.suspend(() =>
      this.head === undefined || this.#streams ? Effect.succeed(this.head) : Effect.andThen(this.#isDecided, this.late),
    );
  }

  /** Records a clean end. The end of a continuation is ignored, because it is not the end of the client's response. */
  recordCleanEnd(attempt: number): void {
    if (attempt === this.attempt && !this.#continues) this.endedCleanly = true;
  }
}

/** Maximum slots that are reused for later events. */
const placesMax = 64;

/**
 * Events that have arrived and were not sent, in order; at most as many as their run may hold.
 *
 * Usually there is only one event, and the next to be sent is the first. A `Set` would rebuild its table every few events, because deleted
 * entries keep their place.
 */
export class WaitingParts {
  #places: Array<RelayPart | undefined> = [];
  #first = 0;
  #end = 0;

  /** The events, oldest first. */
  get all(): ReadonlyArray<RelayPart> {
    return this.#places.slice(this.#first, this.#end).flatMap((part) => part ?? []);
  }

  add(part: RelayPart): void {
    this.#places[this.#end] = part;
    this.#end += 1;
  }

  /** Removes an event that was sent or never will be. */
  remove(part: RelayPart): void {
    if (this.#places[this.#first] !== part) {
      const at = this.#places.indexOf(part, this.#first);
      if (at === -1) return;
      this.#places.splice(at, 1);
      this.#end -= 1;
      return;
    }
    this.#places[this.#first] = undefined;
    this.#first += 1;
    if (this.#first < this.#end && this.#first < placesMax) return;
    if (this.#first === this.#end && this.#places.length <= placesMax) this.#end = 0;
    else if (2 * this.#first >= this.#end) {
      this.#places = this.#places.slice(this.#first, this.#end);
      this.#end -= this.#first;
    } else return;
    this.#first = 0;
  }

  clear(): void {
    this.#places = [];
    this.#first = 0;
    this.#end = 0;
  }
}
