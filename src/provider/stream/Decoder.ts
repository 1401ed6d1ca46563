/**
 * Runs a protocol over bytes. The input is chunks that may be cut anywhere, the output is parts, and the end of the bytes decides if the
 * stream is complete.
 *
 * It does no IO and has no clock. A client needs only `Decoder.make(OpenAiChat.protocol)` to turn a response body into the parts that
 * `StreamProcessor.run` observes.
 */
import type { Failure } from "../../domain/Failure.ts";
import { none, type Observation, ping } from "../../domain/Observation.ts";
import { isWhiteSpace, nothing as saysNothing } from "./Content.ts";
import type { Framer, Limits } from "./Framing.ts";
import * as Payload from "./Payload.ts";
import type { End, Fold, Part, Protocol, SseComment, SseEvent, Tolerance } from "./Protocol.ts";
import * as Sse from "./Sse.ts";

/** Tolerances and limits of a decoder. */
export interface Options {
  /** Differences from the protocol that healthy streams of this server may have. */
  readonly tolerance?: Tolerance;
  /** Limits of the framing, in bytes. */
  readonly limits?: Partial<Limits>;
  /**
   * True to keep the fold step of each part (the states before and after it), for a caller that decodes the same events itself. Default
   * false.
   */
  readonly keepsFolds?: boolean;
}

/** A decoder of one response body. Create a new one for each body. */
export interface Decoder<Id extends string = string> {
  /**
   * Decodes the next bytes and returns the parts that they complete, including parts before a failure in the same chunk. A part with an
   * in-stream error is returned too. Of the provider's parts after the error, only the usage counts. After damaged bytes, or bytes that are
   * not a stream, there are no parts. Never throws.
   */
  readonly push: (bytes: Uint8Array) => ReadonlyArray<Part<Id>>;
  /**
   * Ends the bytes cleanly. Returns the result, and the parts that lacked only their blank line. The stream is complete only after the
   * provider's terminal marker (law L5); bytes after the marker change nothing.
   */
  readonly end: () => { readonly parts: ReadonlyArray<Part<Id>>; readonly end: End };
  /**
   * The failure of the stream: of kind `protocol` for bytes that cannot be read, or the failure that an event carried. It stays set, except
   * that a provider's second report replaces the first if it is more specific. Undefined after the terminal marker.
   */
  readonly failure: Failure | undefined;
  /** The folds of the parts that were returned last, if `keepsFolds` is set; undefined for a part that is not an event of the protocol. */
  readonly folds: ReadonlyArray<Fold | undefined>;
}

/**
 * Creates a decoder.
 *
 * @param protocol the protocol of the stream, for example `OpenAiChat.protocol`
 */
export const make = <S, Id extends string>(protocol: Protocol<S, Id>, options: Options = {}): Decoder<Id> =>
  new ProtocolDecoder(protocol, options);

const nothing: ReadonlyArray<never> = [];
const pingAtEnd: Observation = { ...ping, terminal_at_end: true };

/** True if the provider itself reported the failure, so that its later events still belong to the response. */
export const isTold = (failure: Failure | undefined): failure is Failure =>
  failure !== undefined && failure.kind !== "protocol" && failure.kind !== "truncated";

class ProtocolDecoder<S, Id extends string> implements Decoder<Id> {
  failure: Failure | undefined = undefined;
  folds: Array<Fold | undefined> = [];
  readonly #keepsFolds: boolean;
  #begins: Tolerance | undefined;
  readonly #protocol: Protocol<S, Id>;
  readonly #framer: Framer;
  #state: S;
  #terminal = false;
  #atEnd = false;
  /** True if the event that failed was also the terminal marker. A later error is then unrelated to the response. */
  #marked = false;
  #last: End | undefined = undefined;

  constructor(protocol: Protocol<S, Id>, options: Options) {
    this.#protocol = protocol;
    this.#framer = (protocol.framing ?? Sse.framing).makeFramer(options.limits);
    this.#state = protocol.initial(options.tolerance);
    this.#keepsFolds = options.keepsFolds === true;
    this.#begins = options.tolerance ?? {};
  }

  push(bytes: Uint8Array): ReadonlyArray<Part<Id>> {
    if (this.#isStopped || this.#last !== undefined) return nothing;
    if (this.folds.length > 0) this.folds = [];
    const frames = this.#framer.feed(bytes);
    const [only] = frames;
    if (only === undefined) {
      this.#adoptFramerFailure();
      return nothing;
    }
    // Usually the bytes contain one event on one line, which needs no splitting.
    if (frames.length === 1 && !Sse.isComment(only) && !only.data.includes("\n")) {
      const parts = [this.#decodeEvent(only)];
      if (!this.#isStopped) this.#adoptFramerFailure();
      return parts;
    }
    const parts: Array<Part<Id>> = [];
    for (const frame of frames) {
      if (Sse.isComment(frame)) parts.push(this.#decodeComment(frame));
      else this.#decodeEvents(frame, parts);
      if (this.#isStopped) return parts;
    }
    this.#adoptFramerFailure();
    return parts;
  }

  end(): { readonly parts: ReadonlyArray<Part<Id>>; readonly end: End } {
    if (this.#last !== undefined) return { parts: nothing, end: this.#last };
    const parts: Array<Part<Id>> = [];
    this.folds = [];
    let cut = false;
    if (!this.#isStopped) {
      for (const event of this.#framer.end()) {
        // Without the blank line, only the data shows if an event is complete. An incomplete event is dropped, never guessed.
        if (Payload.isWhole(event.data) || Payload.splitLines(event) !== undefined) this.#decodeEvents(event, parts);
        else cut = true;
      }
      // If the terminal marker counts only with a clean end, an incomplete event shows that more was to come. An incomplete comment does
      // not.
      cut ||= this.#framer.cut;
      this.#adoptFramerFailure();
    }
    this.#last = this.#makeEnd(cut);
    return { parts, end: this.#last };
  }

  #makeEnd(cut: boolean): End {
    if (this.failure !== undefined) return { complete: false, failure: this.failure };
    if (cut && !this.#terminal) return { complete: false, failure: { kind: "truncated" } };
    const end = this.#protocol.halt(this.#state);
    if (!end.complete) this.failure = end.failure;
    return end;
  }

  #decodeEvents(frame: SseEvent, parts: Array<Part<Id>>): void {
    for (const event of Payload.splitLines(frame) ?? [frame]) {
      parts.push(this.#decodeEvent(event));
      if (this.#isStopped) return;
    }
  }

  /** True if no more bytes are read, because they are not a stream of this protocol. */
  get #isStopped(): boolean {
    return this.failure !== undefined && !isTold(this.failure);
  }

  #decodeEvent(event: SseEvent): Part<Id> {
    if (Payload.isBlank(event.data)) {
      if (this.#keepsFolds) this.#keepFold(undefined);
      return {
        protocol: this.#protocol.id,
        event,
        json: undefined,
        content: saysNothing,
        observation: this.#keepAlive(),
      };
    }
    const [state, stepped] = this.#protocol.step(this.#state, event);
    const part = isBlankText(stepped) ? withoutProgress(stepped) : stepped;
    if (this.#keepsFolds) this.#keepFold({ before: this.#state, behind: state, begins: this.#begins });
    this.#begins = undefined;
    this.#state = state;
    const { observation } = part;
    if (this.failure !== undefined)
      return { ...part, content: saysNothing, observation: this.#observeAfterFailure(this.failure, observation) };
    if (!this.#terminal) {
      this.failure = observation.failure;
      this.#marked = observation.terminal;
      this.#terminal = observation.terminal && observation.failure === undefined;
      this.#atEnd = observation.terminal_at_end === true;
    }
    return part;
  }

  #keepFold(fold: Fold | undefined): void {
    if (this.folds.length === 0) this.folds = [fold];
    else this.folds.push(fold);
  }

  /** Observes an event after a failure. Such an event proves nothing about the response, but may describe the failure better. */
  #observeAfterFailure(first: Failure, { failure, quiet, usage }: Observation): Observation {
    if (isTold(failure) && !this.#marked) this.failure = moreSpecific(first, failure);
    return {
      ...none,
      quiet,
      ...(usage === undefined ? {} : { usage }),
      ...(failure === undefined ? {} : { failure }),
    };
  }

  #decodeComment(frame: SseComment): Part<Id> {
    if (this.#keepsFolds) this.#keepFold(undefined);
    const event: SseEvent = { event: "comment", data: frame.comment, bytes: frame.bytes };
    return {
      protocol: this.#protocol.id,
      event,
      json: undefined,
      content: saysNothing,
      observation: this.#keepAlive(),
    };
  }

  /** Observes a keep-alive. It does not revoke a terminal marker that counts only with a clean end. */
  #keepAlive(): Observation {
    return this.#atEnd ? pingAtEnd : ping;
  }

  #adoptFramerFailure(): void {
    if (!this.#terminal) this.failure ??= this.#framer.failure;
  }
}

const isBlankText = ({ content, observation: { calls, progress, shows, terminal } }: Part): boolean =>
  shows === "text" && progress === "output" && calls.length === 0 && !terminal && isWhiteSpace(content);

/** Removes the progress from a part that shows only white space, so that a response of nothing else counts as empty. */
const withoutProgress = <Id extends string>(part: Part<Id>): Part<Id> => {
  const progress = part.content.some(({ kind }) => kind === "reasoning") ? "reasoning" : "started";
  return { ...part, observation: { ...part.observation, progress } };
};

/** Ranks how specific a failure is. A reason that a retry cannot change ranks highest, and an error without details lowest. */
const weightOf = (failure: Failure): number => {
  switch (failure.kind) {
    case "rejected":
      return failure.reason === "invalid_request" ? 4 : 5;
    case "rate_limited":
    case "overloaded":
      return 3;
    case "invalid_tool_input":
    case "cancelled":
      return 2;
    case "server_error":
      return 1;
    default:
      return 0;
  }
};

/**
 * Returns the more specific of two failures, or the first of two equal ones. If only the other failure states a delay, the result has that
 * delay. Some providers report a failure twice: in an `error` event and in the final event after it.
 */
const moreSpecific = (first: Failure, then: Failure): Failure => {
  if (weightOf(then) > weightOf(first)) return then;
  const waits = first.kind === then.kind && first.retry_after_ms === undefined && then.retry_after_ms !== undefined;
  return waits ? { ...first, retry_after_ms: then.retry_after_ms } : first;
};
