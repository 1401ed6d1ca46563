/**
 * Finds the call for which an AI SDK tool is executed. `execute` gets only the id of a tool call, and no reference to the run.
 *
 * Ids may be empty, be `0`, or repeat in every turn, and two conversations on one server may use the same id at the same time. Calls with
 * the same id are therefore distinguished by tool, input and age.
 */
import { dropOldest, label, labelCharactersMax } from "../../domain/Limits.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";

interface HandedOver {
  readonly reference: Extract<CallReference, { readonly call: string }>;
  readonly id: string;
  readonly tool: string;
  /** Argument text, truncated to `inputCharactersMax`. */
  readonly input: string;
  started: boolean;
}

/** Maximum number of remembered calls. Beyond that, the oldest call is evicted, and its tool is refused. */
export const handedOverMax = 4_096;

/** Maximum length of the argument text that distinguishes calls with the same id, in UTF-16 code units. */
export const inputCharactersMax = 16 * labelCharactersMax;

/** The calls that all runs of one recovery have delivered. */
export class CallRegistry {
  readonly #calls = new Set<HandedOver>();

  /** Registers a call with complete arguments, while its part is delivered. */
  register(
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
   * Claims the call for which a handler starts.
   *
   * @returns the call; if all such calls have started, one of them, so that the guard refuses it; undefined if no such call was delivered
   */
  take(tool: string, { id, input }: { readonly id: string; readonly input: unknown }): CallReference | undefined {
    const named = [...this.#calls].filter((it) => it.id === id && it.tool === tool);
    const waiting = named.filter((it) => !it.started);
    // The call with the same input is preferred. Otherwise the newest call is claimed, because the SDK may have repaired its input.
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
    // Input that is not JSON equals no call's input, so the newest call is claimed.
    return false;
  }
};
