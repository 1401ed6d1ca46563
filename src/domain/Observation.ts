/** Describes the evidence in one part of a provider's stream. The processor reads nothing else of a part. */
import type { Progress, Shown } from "./AttemptFacts.ts";
import type { Failure } from "./Failure.ts";
import type { Executor } from "./SideEffects.ts";

/** Token counts from the provider. Both are totals so far, never increments. */
export interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

/**
 * Signal about one tool call, carried by a part.
 *
 * `input_started`: the call has begun. `input_complete`: its arguments have ended. `ready`: the call is complete and valid, and a caller
 * that receives this part may run it. `settled`: a call that the provider executed has its result.
 */
export interface CallSignal {
  /** Index of the choice (candidate) that the call belongs to; 0 if a protocol has only one. */
  readonly choice: number;
  /** Index of the call within its choice, in the order in which calls began, from 0. */
  readonly ordinal: number;
  /** The provider's own id. It is only a label, because it may be empty, `0`, or the same in every turn. */
  readonly id?: string;
  readonly tool?: string;
  readonly executor: Executor;
  readonly phase: "input_started" | "input_complete" | "ready" | "settled";
  /** The whole argument text. Set with `ready` only, and never recorded. */
  readonly input?: string;
}

/** Evidence of one part. `none` is the observation of a part that only proves that bytes arrived. */
export interface Observation {
  readonly progress: Progress;
  /** Output that the caller sees in this part. */
  readonly shows: Shown;
  /** True for usage and pings, which show nothing when handed over, even to a caller that cannot discard. */
  readonly quiet: boolean;
  /** True for a ping, which only proves that the connection is alive. */
  readonly keep_alive: boolean;
  /** Visible characters in this part, in UTF-16 code units. */
  readonly characters: number;
  readonly calls: ReadonlyArray<CallSignal>;
  /** True if all text of this part precedes its first call. If omitted, the text is assumed to follow the call. */
  readonly text_before_calls?: boolean;
  /**
   * True if this part reaches the provider's terminal marker. It accompanies a `failure` only if the failure is about the model's
   * output and not about the stream: `invalid_tool_input`, `empty`.
   */
  readonly terminal: boolean;
  /**
   * True if a clean end right after this part is the terminal marker, and nothing else is. For protocols without a terminal event: Gemini
   * sends a finishReason in its last chunk, and some servers in every chunk. Any later part revokes this.
   */
  readonly terminal_at_end?: boolean;
  /**
   * Events that the protocol still sends after its marker. `later`: a last event usually follows, but a clean end also suffices (`[DONE]`).
   * `required`: clients fail without the last event, so an end before it counts as a cut (`message_stop`). `now`: this is the last event.
   * If omitted, no event is expected after the marker.
   */
  readonly closes?: "later" | "required" | "now";
  /**
   * True if, from this part on, the provider stores the content that the request asked it to store. A repeat of the request would store it
   * twice.
   */
  readonly stores?: boolean;
  /** The provider's own finish reason, as a label. */
  readonly finish?: string;
  /** Error in this part. The stream has failed here, even if more parts follow. */
  readonly failure?: Failure;
  readonly usage?: Usage;
}

const noCalls: ReadonlyArray<CallSignal> = [];

/**
 * Observation of an unknown event. The caller receives it, and it shows nothing. It is not quiet, so a caller that cannot discard has then
 * seen output.
 */
export const none: Observation = {
  progress: "started",
  shows: "nothing",
  quiet: false,
  keep_alive: false,
  characters: 0,
  calls: noCalls,
  terminal: false,
};

/** Returns true if a part proves that the provider makes progress. A lifecycle event, usage and pings do not. */
export const isProgress = ({ progress }: Observation): boolean => progress === "output" || progress === "reasoning";

/**
 * Observation of a lifecycle event (`message_start`, `response.created`, an empty role delta): the stream started, without
 * progress.
 */
export const lifecycle: Observation = none;

/** Observation of a keep-alive. */
export const ping: Observation = { ...none, quiet: true, keep_alive: true };

/** Returns the observation of visible text, a refusal, an image or audio of `characters` code units. */
export const text = (characters: number): Observation => ({ ...none, progress: "output", shows: "text", characters });

/** Returns the observation of reasoning of `characters` code units; 0 for a block that only opened. */
export const reasoning = (characters: number): Observation => ({
  ...none,
  progress: "reasoning",
  shows: "reasoning",
  characters,
});

/** Returns the observation of the provider's terminal marker, with its own finish reason. */
export const terminal = (finish: string): Observation => ({ ...none, terminal: true, finish });

/** Returns the observation of an error inside the stream. */
export const failed = (failure: Failure): Observation => ({ ...none, failure });

/** Returns the observation of call signals, which are output. */
export const calls = (signals: ReadonlyArray<CallSignal>): Observation => ({
  ...none,
  progress: "output",
  calls: signals,
});
