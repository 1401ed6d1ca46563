/**
 * Drives a protocol over bytes: chunks that are cut anywhere go in, parts come out, and the end of the bytes says whether the stream is complete.
 *
 * Sans IO and without a clock. `Decoder.make(OpenAiChat.protocol)` is all that a client needs to turn a response body into
 * the parts that `StreamProcessor.run` observes.
 */
import type { Failure } from "../../domain/Failure.ts";
import { none, type Observation, ping } from "../../domain/Observation.ts";
import { isWhiteSpace, nothing as saysNothing } from "./Content.ts";
import * as Payload from "./Payload.ts";
import type { End, Fold, Part, Protocol, SseComment, SseEvent, Tolerance } from "./Protocol.ts";
import * as Sse from "./Sse.ts";

/** What a decoder tolerates and what it may hold. */
export interface Options {
  /** How this server's healthy streams differ. */
  readonly tolerance?: Tolerance;
  /** What the framing may hold, in bytes. */
  readonly limits?: Partial<Sse.Limits>;
  /** Keeps how the fold went on with each part, for who follows the same events with a fold of its own. Default false. */
  readonly keepsFolds?: boolean;
}

/** A decoder of one response body. A decoder is used up by its body: make another one for the next. */
export interface Decoder<Id extends string = string> {
  /**
   * Takes the next bytes and gives the parts that they complete. Parts before a failure in the same chunk are given first;
   * a part that carries an in-stream error is given too, and what the provider says behind it: those parts prove nothing but
   * usage. Behind bytes that are damaged or no stream there are no parts. Never throws.
   */
  readonly push: (bytes: Uint8Array) => ReadonlyArray<Part<Id>>;
  /**
   * The bytes ended cleanly: gives the parts that lacked only their blank line, and says whether the stream is complete.
   * It is complete only after the provider's terminal marker (law L5); what comes after the marker changes nothing.
   */
  readonly end: () => { readonly parts: ReadonlyArray<Part<Id>>; readonly end: End };
  /**
   * `protocol`, or the failure that an event carried; sticky, but that a provider which says its failure twice is believed
   * where it tells more. None after the terminal marker.
   */
  readonly failure: Failure | undefined;
  /** How the fold went on with each part that was given last, where that is kept; undefined for a part that is no event of it. */
  readonly folds: ReadonlyArray<Fold | undefined>;
}

/**
 * Makes a decoder.
 *
 * @param protocol one of `OpenAiChat`, `OpenAiResponses`, `AnthropicMessages`, `Gemini`
 */
export const make = <S, Id extends string>(protocol: Protocol<S, Id>, options: Options = {}): Decoder<Id> =>
  new ProtocolDecoder(protocol, options);

const nothing: ReadonlyArray<never> = [];
const pingAtEnd: Observation = { ...ping, terminal_at_end: true };

/** Whether the provider itself said the failure, so that what it says behind it belongs to it. */
export const isTold = (failure: Failure | undefined): failure is Failure =>
  failure !== undefined && failure.kind !== "protocol" && failure.kind !== "truncated";

class ProtocolDecoder<S, Id extends string> implements Decoder<Id> {
  failure: Failure | undefined = undefined;
  folds: Array<Fold | undefined> = [];
  readonly #keepsFolds: boolean;
  #begins: Tolerance | undefined;
  readonly #protocol: Protocol<S, Id>;
  readonly #framer: Sse.Framer;
  #state: S;
  #terminal = false;
  #atEnd = false;
  /** The event that failed was the marker too: a later error is another one's. */
  #marked = false;
  #last: End | undefined = undefined;

  constructor(protocol: Protocol<S, Id>, options: Options) {
    this.#protocol = protocol;
    this.#framer = Sse.makeFramer(options.limits);
    this.#state = protocol.initial(options.tolerance);
    this.#keepsFolds = options.keepsFolds === true;
    this.#begins = options.tolerance ?? {};
  }

  push(bytes: Uint8Array): ReadonlyArray<Part<Id>> {
    if (this.#stopped || this.#last !== undefined) return nothing;
    if (this.folds.length > 0) this.folds = [];
    const frames = this.#framer.feed(bytes);
    const [only] = frames;
    if (only === undefined) {
      this.#framing();
      return nothing;
    }
    // Most bytes bring one event. It stands on one line, so that it is not several.
    if (frames.length === 1 && !Sse.isComment(only) && !only.data.includes("\n")) {
      const parts = [this.#event(only)];
      if (!this.#stopped) this.#framing();
      return parts;
    }
    const parts: Array<Part<Id>> = [];
    for (const frame of frames) {
      if (Sse.isComment(frame)) parts.push(this.#comment(frame));
      else this.#events(frame, parts);
      if (this.#stopped) return parts;
    }
    this.#framing();
    return parts;
  }

  end(): { readonly parts: ReadonlyArray<Part<Id>>; readonly end: End } {
    if (this.#last !== undefined) return { parts: nothing, end: this.#last };
    const parts: Array<Part<Id>> = [];
    this.folds = [];
    let cut = false;
    if (!this.#stopped) {
      for (const event of this.#framer.end()) {
        // Without its blank line only its data can say whether the event is whole: a cut one is dropped, never guessed.
        if (Payload.isWhole(event.data) || Payload.several(event) !== undefined) this.#events(event, parts);
        else cut = true;
      }
      // After a marker that needs a clean end, a cut event says that more was to come; a cut comment does not.
      cut ||= this.#framer.cut;
      this.#framing();
    }
    this.#last = this.#answer(cut);
    return { parts, end: this.#last };
  }

  #answer(cut: boolean): End {
    if (this.failure !== undefined) return { complete: false, failure: this.failure };
    if (cut && !this.#terminal) return { complete: false, failure: { kind: "truncated" } };
    const end = this.#protocol.halt(this.#state);
    if (!end.complete) this.failure = end.failure;
    return end;
  }

  #events(frame: SseEvent, parts: Array<Part<Id>>): void {
    for (const event of Payload.several(frame) ?? [frame]) {
      parts.push(this.#event(event));
      if (this.#stopped) return;
    }
  }

  /** Nothing is read behind bytes that are no stream of this protocol. */
  get #stopped(): boolean {
    return this.failure !== undefined && !isTold(this.failure);
  }

  #event(event: SseEvent): Part<Id> {
    if (Payload.isBlank(event.data)) {
      if (this.#keepsFolds) this.#keeps(undefined);
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
    if (this.#keepsFolds) this.#keeps({ before: this.#state, behind: state, begins: this.#begins });
    this.#begins = undefined;
    this.#state = state;
    const { observation } = part;
    if (this.failure !== undefined)
      return { ...part, content: saysNothing, observation: this.#behind(this.failure, observation) };
    if (!this.#terminal) {
      this.failure = observation.failure;
      this.#marked = observation.terminal;
      this.#terminal = observation.terminal && observation.failure === undefined;
      this.#atEnd = observation.terminal_at_end === true;
    }
    return part;
  }

  #keeps(fold: Fold | undefined): void {
    if (this.folds.length === 0) this.folds = [fold];
    else this.folds.push(fold);
  }

  /** An event behind a failure proves nothing of the response, and may tell more of the failure. */
  #behind(first: Failure, { failure, quiet, usage }: Observation): Observation {
    if (isTold(failure) && !this.#marked) this.failure = better(first, failure);
    return {
      ...none,
      quiet,
      ...(usage === undefined ? {} : { usage }),
      ...(failure === undefined ? {} : { failure }),
    };
  }

  #comment(frame: SseComment): Part<Id> {
    if (this.#keepsFolds) this.#keeps(undefined);
    const event: SseEvent = { event: "comment", data: frame.comment, bytes: frame.bytes };
    return {
      protocol: this.#protocol.id,
      event,
      json: undefined,
      content: saysNothing,
      observation: this.#keepAlive(),
    };
  }

  /** A keep-alive does not withdraw a marker that only a clean end confirms. */
  #keepAlive(): Observation {
    return this.#atEnd ? pingAtEnd : ping;
  }

  #framing(): void {
    if (!this.#terminal) this.failure ??= this.#framer.failure;
  }
}

/** True if a part shows white space and nothing else. */
const isBlankText = ({ content, observation: { calls, progress, shows, terminal } }: Part): boolean =>
  shows === "text" && progress === "output" && calls.length === 0 && !terminal && isWhiteSpace(content);

/** White space is shown, and is no answer: a response of nothing else is empty. */
const withoutProgress = <Id extends string>(part: Part<Id>): Part<Id> => {
  const progress = part.content.some(({ kind }) => kind === "reasoning") ? "reasoning" : "started";
  return { ...part, observation: { ...part.observation, progress } };
};

/** How much a failure tells: a reason that no retry changes the most, an error without a word the least. */
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
 * The failure that tells more; of equals the first, with the wait that only the other names. Some providers say a failure
 * twice: in an `error` event and in the final event behind it.
 */
const better = (first: Failure, then: Failure): Failure => {
  if (weightOf(then) > weightOf(first)) return then;
  const waits = first.kind === then.kind && first.retry_after_ms === undefined && then.retry_after_ms !== undefined;
  return waits ? { ...first, retry_after_ms: then.retry_after_ms } : first;
};
