/**
 * Says what one part of a provider's stream proves: the only thing that the processor reads of a part.
 */
import type { Progress, Shown } from "./AttemptFacts.ts";
import type { Failure } from "./Failure.ts";
import type { Executor } from "./SideEffects.ts";

/** Token counts where the provider tells them. Both are totals so far, never increments. */
export interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

/**
 * What a part says about one tool call.
 *
 * `input_started`: the call has begun. `input_complete`: its arguments have ended. `ready`: the call is whole and valid,
 * a caller that is handed this part may run it. `settled`: a provider-executed call has its result.
 */
export interface CallSignal {
  /** Index of the choice (candidate) that the call belongs to; 0 where a protocol has one. */
  readonly choice: number;
  /** Counts the calls of a choice in the order in which they began, from 0. */
  readonly ordinal: number;
  /** The provider's own id: a label, which comes empty, as `0`, or repeated every turn. */
  readonly id?: string;
  readonly tool?: string;
  readonly executor: Executor;
  readonly phase: "input_started" | "input_complete" | "ready" | "settled";
  /** The whole argument text, with `ready` only. Never recorded. */
  readonly input?: string;
}

/** What one part proves. `none` is the observation of a part that proves nothing but that bytes came. */
export interface Observation {
  /** The highest progress that this part proves. */
  readonly progress: Progress;
  /** What the caller sees when it is handed this part. */
  readonly shows: Shown;
  /** Usage and pings: even for a caller that cannot discard, handing it over shows nothing. */
  readonly quiet: boolean;
  /** A ping: bytes that prove that the connection lives, and no more. */
  readonly keep_alive: boolean;
  /** Visible characters in this part, in UTF-16 code units. */
  readonly characters: number;
  readonly calls: ReadonlyArray<CallSignal>;
  /** All text of this part stands before its first call. Left out: the text is taken to follow. */
  readonly text_before_calls?: boolean;
  /**
   * The provider's terminal marker is reached with this part. It stands beside a `failure` only where the failure is about what
   * the model wrote and not about the stream: `invalid_tool_input`, `empty`.
   */
  readonly terminal: boolean;
  /**
   * A clean end right after this part is the terminal marker, and nothing less is: for protocols without a terminal event
   * (Gemini sends a finishReason in its last chunk, and some servers in every chunk). Any later part withdraws it.
   */
  readonly terminal_at_end?: boolean;
  /**
   * The events that the protocol still sends after its marker. `later`: its last event usually follows, and a clean end does as well
   * (`[DONE]`). `required`: its clients fail without its last event, so that an end before it is a cut (`message_stop`). `now`: this is
   * the last event. Left out: nothing is expected after the marker.
   */
  readonly closes?: "later" | "required" | "now";
  /** From this part on the provider keeps what the request asked it to keep: the same request would make a second copy. */
  readonly stores?: boolean;
  /** The provider's own word for why it finished, a label. */
  readonly finish?: string;
  /** The part carries an error: the stream has failed here, whatever follows. */
  readonly failure?: Failure;
  readonly usage?: Usage;
}

const noCalls: ReadonlyArray<CallSignal> = [];

/** An unknown event: it passes through and shows nothing, but it is not quiet. */
export const none: Observation = {
  progress: "started",
  shows: "nothing",
  quiet: false,
  keep_alive: false,
  characters: 0,
  calls: noCalls,
  terminal: false,
};

/** Whether a part proves that the provider goes on: a lifecycle event, usage and pings do not. */
export const isProgress = ({ progress }: Observation): boolean => progress === "output" || progress === "reasoning";

/** A lifecycle event (`message_start`, `response.created`, an empty role delta): the stream started, no progress. */
export const lifecycle: Observation = none;

/** A keep-alive. */
export const ping: Observation = { ...none, quiet: true, keep_alive: true };

/** Visible text, a refusal, an image or audio of `characters` code units. */
export const text = (characters: number): Observation => ({ ...none, progress: "output", shows: "text", characters });

/** Reasoning of `characters` code units; 0 for a block that only opened. */
export const reasoning = (characters: number): Observation => ({
  ...none,
  progress: "reasoning",
  shows: "reasoning",
  characters,
});

/** The provider's terminal marker, with its own word for why it finished. */
export const terminal = (finish: string): Observation => ({ ...none, terminal: true, finish });

/** An error inside the stream. */
export const failed = (failure: Failure): Observation => ({ ...none, failure });

/** Signals about calls; they are output. */
export const calls = (signals: ReadonlyArray<CallSignal>): Observation => ({
  ...none,
  progress: "output",
  calls: signals,
});
