/**
 * Remembers the response head of a run's newest attempt, and the events of it that have not gone to the client.
 */
import { Deferred, Effect } from "effect";
import type { RelayPart } from "./RelayFrames.ts";
import type { RelayHead } from "./RelayTransport.ts";
import { WaitingParts } from "./WaitingParts.ts";

/** The response that an error event ended. */
interface FailedResponse {
  readonly attempt: number;
  readonly head: RelayHead | undefined;
  /** Its events that had not left. */
  readonly waiting: ReadonlyArray<RelayPart>;
  /** It was to go on with what another one had shown: its event is none of the response that the client reads. */
  readonly continues: boolean;
}

/** The heads of one run: each attempt has at most one, and only the newest is kept. */
export class RelayHeads {
  /** The newest attempt, from 1; 0 before the first. */
  attempt = 0;
  /** The newest attempt's successful head. */
  head: RelayHead | undefined;
  /** A call has begun in the newest attempt, so that all following events are held. */
  calling = false;
  /** The newest attempt's body has ended cleanly. */
  endedCleanly = false;
  /** The head of a stream has gone to the client: no other kind of response can follow. */
  sent = false;
  /** An attempt has had the head of a stream. */
  hasStreamed = false;
  /** The route of the newest attempt that was opened, where routes have names. */
  route: string | undefined;
  /** By which routes errors came. Made with the first of them, as `#failed` is: few responses have one. */
  #routes: WeakMap<object, string> | undefined;
  /** What stood before error events when they came. */
  #failed: WeakMap<RelayPart, FailedResponse> | undefined;
  /** The newest attempt's head is that of a stream. */
  #streams = false;
  /** Completes once the newest attempt's head is known for that of a stream, or another attempt begins. Made for who waits for it. */
  #decided: Deferred.Deferred<void> | undefined;
  /** The newest attempt goes on with what was shown: its own events do not leave as they came. */
  #continues = false;
  /** Events of the newest attempt that have come and not left: held, or on their way. */
  readonly #waiting = new WaitingParts();
  #isForgotten = false;

  #released: ((head: RelayHead) => void) | undefined;
  /** The first head that might go to the client before any content had come. */
  firstReleased: RelayHead | undefined;
  #opened: { readonly opened: (attempt: number) => void } | undefined;

  /** Whether the newest attempt's response is a stream, of which every call is seen before it leaves. */
  get isStream(): boolean {
    return this.#streams;
  }

  /** Calls back with `firstReleased`, in the step in which there is one. */
  whenReleased(told: (head: RelayHead) => void): void {
    this.#released = told;
  }

  /** Waits for `firstReleased`. */
  get released(): Effect.Effect<RelayHead> {
    return Effect.callback((resume) => {
      if (this.firstReleased !== undefined) return void resume(Effect.succeed(this.firstReleased));
      this.whenReleased((head) => resume(Effect.succeed(head)));
    });
  }

  /** Tells of each attempt that begins, from now on. */
  tellsOpened(listener: { readonly opened: (attempt: number) => void }): void {
    this.#opened = listener;
  }

  /**
   * An attempt begins.
   *
   * @param cursor where it reads the very same response on: then its head, and what is held of it, stay
   * @param continues it goes on with what was shown: the head stays, and what is held does not
   */
  begin(attempt: number, cursor?: string, continues = false): void {
    this.attempt = attempt;
    this.endedCleanly = false;
    this.#continues = continues;
    this.#opened?.opened(attempt);
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
    this.#decides();
  }

  /** Events that came behind the cursor were not read by the run, and come again. */
  #keepThrough(cursor: string): void {
    const waiting = this.#waiting.all;
    const through = waiting.findIndex((part) => part.cursor === cursor);
    for (const part of waiting.slice(through + 1)) this.#waiting.remove(part);
    this.calling = waiting.slice(0, through + 1).some((part) => part.observation.calls.length > 0);
  }

  /** The newest attempt has failed with an error, or with an event that says so. */
  threw<E>(error: E): E {
    if (this.route !== undefined && typeof error === "object" && error !== null) {
      this.#routes ??= new WeakMap();
      this.#routes.set(error, this.route);
    }
    return error;
  }

  /** The route that a run's error came by; the newest one where that is not known. */
  routeOf(cause: unknown): string | undefined {
    return (typeof cause === "object" && cause !== null ? this.#routes?.get(cause) : undefined) ?? this.route;
  }

  /** No client can have the response any more: what has not left never will. */
  forget(): void {
    this.#isForgotten = true;
    this.#waiting.clear();
  }

  /** An event has come. */
  came(part: RelayPart): void {
    if (part.observation.failure !== undefined) {
      this.threw(part);
      this.#failed ??= new WeakMap();
      this.#failed.set(part, {
        ...{ attempt: this.attempt, head: this.head, waiting: this.#waiting.all, continues: this.#continues },
      });
    }
    if (part.observation.calls.length > 0) this.calling = true;
    if (part.observation.failure === undefined && !this.#isForgotten && !this.#continues) this.#waiting.add(part);
  }

  /** An event has left. */
  left(part: RelayPart): void {
    this.#waiting.remove(part);
  }

  /**
   * The run ends with an error event. That of an attempt before the newest one, which went by another route, brings its own head and
   * bytes back; behind those of another attempt it would end a response that it is not of, and so would that of a continuation.
   *
   * @param begun bytes have left
   * @returns whether the event may leave
   */
  endsWith(part: RelayPart, begun: boolean): boolean {
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

  /** The bytes that an error event may follow: all that have not left, up to the first call, which must not leave (L4). */
  beforeError(): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    const waiting = this.#waiting.all;
    const call = waiting.findIndex((part) => part.observation.calls.length > 0);
    return (call === -1 ? waiting : waiting.slice(0, call)).map((part) => part.bytes);
  }

  /** A successful head has come; the head of an older attempt is dropped. A response that goes on keeps its first one. */
  found(attempt: number, head: RelayHead): void {
    if (attempt === this.attempt) this.head ??= head;
  }

  /** The newest head is that of a stream: it may go to the client. */
  release(attempt: number): void {
    if (attempt !== this.attempt || this.head === undefined) return;
    this.#streams = true;
    this.hasStreamed = true;
    this.#decides();
    const { head } = this;
    if (this.firstReleased !== undefined) return;
    this.firstReleased = head;
    this.#released?.(head);
  }

  #decides(): void {
    if (this.#decided !== undefined) Deferred.doneUnsafe(this.#decided, Effect.void);
    this.#decided = undefined;
  }

  get #isDecided(): Effect.Effect<void> {
    this.#decided ??= Deferred.makeUnsafe();
    return Deferred.await(this.#decided);
  }

  /**
   * A head for a client that waits no longer: a stream's, or none where no attempt has a head. A head that may be that of a
   * document is waited for, because behind another one its client could not read it.
   */
  get late(): Effect.Effect<RelayHead | undefined> {
    return Effect.suspend(() =>
      this.head === undefined || this.#streams ? Effect.succeed(this.head) : Effect.andThen(this.#isDecided, this.late),
    );
  }

  /** The body of an attempt has ended cleanly. That of a continuation is not the end that the client's response had. */
  ended(attempt: number): void {
    if (attempt === this.attempt && !this.#continues) this.endedCleanly = true;
  }
}
