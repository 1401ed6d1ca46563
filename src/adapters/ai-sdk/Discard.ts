/**
 * Withdraws the output of a broken attempt from the results of the AI SDK and from its user interfaces.
 *
 * In `ai` 7 a transform of `streamText` gets every part before the SDK records it, and a `start-step` part clears the record of the step.
 * The recovered model emits a mark, a custom part, after withdrawn parts. The transform ends the open blocks before the mark, and adds
 * another `start-step` after it. The text and the messages of the result therefore contain no withdrawn parts. In the stream to a web page,
 * the mark becomes `reset-step`, which clears the step in a page of `ai` 7, and a `data-recovery-discard` for any other reader.
 */
import type { TextStreamPart, ToolSet, UIMessage, UIMessageChunk } from "ai";
import type { StreamPart } from "./Parts.ts";

/** The kind of the custom part that marks a withdrawal. */
export const discardKind = "effect-stream-recovery.discard";

/** The data of a `data-recovery-discard`. All earlier parts of the step are withdrawn. */
export interface Discard {
  /** Number of the abandoned attempt, starting at 1. */
  readonly attempt: number;
}

/**
 * A transform of `streamText` for any tools. Its part types are `never`, so that the SDK infers the types of a call from the call's own
 * tools.
 */
export type LiveTransform = () => TransformStream<never, never>;

/** Records if a call has its transform installed. */
export interface LiveCall {
  attached: boolean;
}

/** Creates the part that marks a withdrawal in a model's stream. */
export const discardMark = (attempt: number): StreamPart => ({
  type: "custom",
  kind: discardKind,
  providerMetadata: { "effect-stream-recovery": { attempt } },
});

/**
 * Creates the `streamText` transform of a live call.
 *
 * @param call marked as attached when the SDK creates the transform, because parts can be withdrawn only with it
 */
export const makeDiscard =
  (call: LiveCall): LiveTransform =>
  () => {
    call.attached = true;
    const open = new OpenBlocks();
    let step: TextStreamPart<ToolSet> | undefined;
    const transform = new TransformStream<TextStreamPart<ToolSet>, TextStreamPart<ToolSet>>({
      transform: (part, controller) => {
        open.trackBlock(part);
        if (part.type === "start-step") step = part;
        if (part.type !== "custom" || part.kind !== discardKind) {
          controller.enqueue(part);
          return;
        }
        for (const end of open.closeAll()) controller.enqueue(end);
        controller.enqueue(part);
        if (step !== undefined) controller.enqueue(step);
      },
    });
    // The transform handles the parts of any tools. `LiveTransform` has no part types, so the cast is needed.
    return transform as TransformStream<never, never>;
  };

/** Text and reasoning blocks that have started but not ended. */
class OpenBlocks {
  readonly #open = new Map<string, "text-end" | "reasoning-end">();

  trackBlock(part: TextStreamPart<ToolSet>): void {
    if (part.type === "text-start") this.#open.set(part.id, "text-end");
    if (part.type === "reasoning-start") this.#open.set(part.id, "reasoning-end");
    if (part.type === "text-end" || part.type === "reasoning-end") this.#open.delete(part.id);
  }

  closeAll(): ReadonlyArray<Extract<TextStreamPart<ToolSet>, { type: "text-end" | "reasoning-end" }>> {
    const ends = [...this.#open].map(([id, type]) => ({ type, id }));
    this.#open.clear();
    return ends;
  }
}

/**
 * Replaces the marks in a stream of UI message chunks with `reset-step` and a transient `data-recovery-discard`:
 * `result.toUIMessageStream().pipeThrough(recoveryTransform())`.
 */
export const recoveryTransform = (): TransformStream<UIMessageChunk, UIMessageChunk> => {
  let withdrawn = false;
  return new TransformStream({
    transform: (chunk, controller) => {
      const repeatedStart = withdrawn && chunk.type === "start-step";
      withdrawn = chunk.type === "custom" && chunk.kind === discardKind;
      if (withdrawn && chunk.type === "custom") {
        const data: Discard = { attempt: attemptOf(chunk.providerMetadata) };
        controller.enqueue({ type: "data-recovery-discard", data, transient: true });
        controller.enqueue({ type: "reset-step" });
      } else if (!repeatedStart) {
        // Drops the second `start-step` after a mark, because the page has already started the step.
        controller.enqueue(chunk);
      }
    },
  });
};

/**
 * Removes withdrawn parts from messages that were built without `recoveryTransform`. In each step, the parts before the mark are withdrawn.
 *
 * @returns the messages; a message without a mark is unchanged
 */
export const applyRecovery = <M extends UIMessage>(messages: ReadonlyArray<M>): Array<M> =>
  messages.map((message) => {
    if (!message.parts.some(isMark)) return message;
    const kept: M["parts"] = [];
    for (const part of message.parts) {
      if (isMark(part)) kept.splice(kept.findLastIndex((it) => it.type === "step-start"));
      else kept.push(part);
    }
    return { ...message, parts: kept };
  });

const isMark = (part: UIMessage["parts"][number]): boolean => part.type === "custom" && part.kind === discardKind;

const attemptOf = (metadata: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined): number => {
  const attempt = metadata?.["effect-stream-recovery"]?.attempt;
  return typeof attempt === "number" ? attempt : 0;
};
