/**
 * Finds the call that an AI SDK tool runs for, because `execute` gets the id of a tool call and nothing about its run.
 *
 * Ids may be empty, `0`, or repeated every turn, and two conversations of one server may use the same id at the same time. The
 * tool, the input and the age distinguish the calls that have not started.
 */
import { dropOldest, label, labelCharactersMax } from "../../domain/Limits.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";

/** A call that was delivered to the caller. */
interface HandedOver {
  readonly reference: Extract<CallReference, { readonly call: string }>;
  readonly id: string;
  readonly tool: string;
  /** The argument text, up to `inputCharactersMax`. */
  readonly input: string;
  started: boolean;
}

/** Maximum calls that are remembered. The oldest is evicted, and refused from then on. */
export const handedOverMax = 4_096;

/** Maximum argument text that is kept to distinguish calls with the same id, in UTF-16 code units. */
export const inputCharactersMax = 16 * labelCharactersMax;

/** The calls that all runs of one recovery have delivered. */
export class CallRegistry {
  readonly #calls = new Set<HandedOver>();

  /** Adds a complete call that is being delivered. */
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
   * @returns undefined if no such call was delivered; if none is pending, one that has already started, so that the guard
   * refuses it
   */
  take(tool: string, { id, input }: { readonly id: string; readonly input: unknown }): CallReference | undefined {
    const named = [...this.#calls].filter((it) => it.id === id && it.tool === tool);
    const waiting = named.filter((it) => !it.started);
    // An equal input identifies the call. Otherwise the newest waiting call is taken, because a repaired input equals none.
    const found = waiting.findLast((it) => isEqualInput(it.input, input)) ?? waiting.at(-1) ?? named.at(-1);
    if (found === undefined) return undefined;
    found.started = true;
    return found.reference;
  }
}

const isEqualInput = (text: string, input: unknown): boolean => {
  if (text.length >= inputCharactersMax) return false;
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(input);
  } catch {
    // An input that is not JSON matches nothing, so the age decides.
    return false;
  }
};
