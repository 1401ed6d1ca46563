/**
 * Finds the call that an AI SDK tool runs for: `execute` gets the id of a tool call and nothing of its run.
 *
 * Ids come empty, as `0`, or repeated every turn, and two conversations of one server may use the same id at the same time.
 * A call that has started is not found again; the tool, the input and the age tell waiting calls apart.
 */
import { dropOldest, label, labelCharactersMax } from "../../domain/Limits.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";

/** A call that was handed over. */
interface HandedOver {
  readonly reference: Extract<CallReference, { readonly call: string }>;
  readonly id: string;
  readonly tool: string;
  /** The argument text, as far as it is kept. */
  readonly input: string;
  started: boolean;
}

/** Most calls that are remembered; the oldest is forgotten first, and is refused from then on. */
export const handedOverMax = 4_096;

/** Longest argument text that is kept of a call to tell it from another with the same id, in UTF-16 code units. */
export const inputCharactersMax = 16 * labelCharactersMax;

/** The calls that all runs of one recovery have handed over. */
export class CallRegistry {
  readonly #calls = new Set<HandedOver>();

  /** Adds a whole call that is being handed over. */
  handedOver(
    reference: HandedOver["reference"],
    call: { readonly toolCallId: string; readonly toolName: string; readonly input: string },
  ): void {
    const { input, toolCallId, toolName } = call;
    this.#calls.add({
      reference,
      id: toolCallId,
      tool: label(toolName),
      input: input.slice(0, inputCharactersMax),
      started: false,
    });
    dropOldest(this.#calls, handedOverMax);
  }

  /**
   * Takes the call that a handler is started for.
   *
   * @returns undefined when no such call was handed over; when no call waits, the one that has started before, so that the
   *   guard refuses it
   */
  take(tool: string, { id, input }: { readonly id: string; readonly input: unknown }): CallReference | undefined {
    const named = [...this.#calls].filter((it) => it.id === id && it.tool === tool);
    const waiting = named.filter((it) => !it.started);
    // An equal input identifies its call; otherwise it is the newest call. (A repaired input equals none.)
    const found = waiting.findLast((it) => equals(it.input, input)) ?? waiting.at(-1) ?? named.at(-1);
    if (found === undefined) return undefined;
    found.started = true;
    return found.reference;
  }
}

const equals = (text: string, input: unknown): boolean => {
  if (text.length >= inputCharactersMax) return false;
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(input);
  } catch {
    // Calls whose input is no JSON are told apart by their age.
    return false;
  }
};
