/**
 * Withdraws the output of a broken attempt from the results of the AI SDK and from its user interfaces.
 *
 * In `ai` 7 a transform of `streamText` sees every part before it is recorded, and a `start-step` part clears what the step has recorded.
 * So the transform turns a mark in the model's stream into the ends of the open blocks, the mark, and the start of the step again. The text
 * and the messages of the result therefore contain nothing that was withdrawn. On the way to a page the mark becomes `reset-step`, which
 * clears the parts of the step in a page of `ai` 7, and a `data-recovery-discard` for any other reader.
 */
import type { TextStreamPart, ToolSet, UIMessage, UIMessageChunk } from "ai";
import type { StreamPart } from "./Parts.ts";

/** The kind of the custom part that marks a withdrawal. */
export const discardKind = "effect-stream-recovery.discard";

/** The data of a `data-recovery-discard`: all earlier parts of its step are withdrawn. */
export interface Discard {
  /** The abandoned attempt, from 1. */
  readonly attempt: number;
}

/**
 * A transform of `streamText` for any tools. Its type names no part, so that a call's types are inferred from its tools alone.
 */
export type LiveTransform = () => TransformStream<never, never>;

/** Records if the transform of a call is installed. */
export interface LiveCall {
  attached: boolean;
}

/** Creates the mark for a model's stream. */
export const discardMark = (attempt: number): StreamPart => ({
  type: "custom",
  kind: discardKind,
  providerMetadata: { "effect-stream-recovery": { attempt } },
});

/**
 * Creates the `streamText` transform of a live call.
 *
 * @param call marked as attached once the SDK has created the transform, because nothing can be withdrawn without it
 */
export const discarding =
  (call: LiveCall): LiveTransform =>
  () => {
    call.attached = true;
    const open = new OpenBlocks();
    let step: TextStreamPart<ToolSet> | undefined;
    const transform = new TransformStream<TextStreamPart<ToolSet>, TextStreamPart<ToolSet>>({
      transform: (part, controller) => {
        open.see(part);
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
    // The transform takes parts of any tools; `LiveTransform` names no part, so that it fits every call.
    return transform as TransformStream<never, never>;
  };

/** Text and reasoning blocks that have begun and not ended. */
class OpenBlocks {
  readonly #open = new Map<string, "text-end" | "reasoning-end">();

  see(part: TextStreamPart<ToolSet>): void {
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
 * Turns withdrawals in a stream of UI message chunks into `reset-step` and a transient `data-recovery-discard`:
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
        // After a withdrawal the start of the step comes a second time, but the page already has it.
        controller.enqueue(chunk);
      }
    },
  });
};

/**
 * Removes withdrawn parts from messages that were built without `recoveryTransform`: the parts of a step up to its mark.
 *
 * @returns the messages; those without a mark are unchanged
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
