/**
 * Plays frames to a protocol's fold, for tests of single events: no bytes, no framing.
 */
import type { CallSignal, Observation } from "../../src/domain/Observation.ts";
import type { End, Part, Protocol, SseEvent } from "../../src/provider/Protocols.ts";

/** The observations of a story. */
export interface Played {
  readonly parts: ReadonlyArray<Part>;
  /** The observation of each frame. */
  readonly seen: ReadonlyArray<Observation>;
  /** The answer to a clean end of the bytes after the last frame. */
  readonly end: End;
}

/** An event with this data: JSON, or a text as it is. */
export const event = (data: unknown, name = "message"): SseEvent => {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return { event: name, data: text, bytes: text.length };
};

/** Makes a function that folds frames from the start of a stream. */
export const player =
  <S>(protocol: Protocol<S>) =>
  (...frames: ReadonlyArray<unknown>): Played => {
    let state = protocol.initial();
    const parts = frames.map((frame) => {
      const [next, part] = protocol.step(state, event(frame));
      state = next;
      return part;
    });
    return { parts, seen: parts.map((part) => part.observation), end: protocol.halt(state) };
  };

export const signals = (played: Played): ReadonlyArray<CallSignal> => played.seen.flatMap((one) => one.calls);

/** Ordinal and phase of every signal, in order. */
export const phases = (played: Played): ReadonlyArray<string> =>
  signals(played).map((call) => `${call.ordinal} ${call.phase}`);

/** Ordinal and input of every call that became ready, in order. */
export const ready = (played: Played): ReadonlyArray<unknown> =>
  signals(played)
    .filter((call) => call.phase === "ready")
    .map((call) => [call.ordinal, call.input]);

export const last = (played: Played): Observation | undefined => played.seen.at(-1);
