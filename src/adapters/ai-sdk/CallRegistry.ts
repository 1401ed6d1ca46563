/**
 * Finds the call that an AI SDK tool runs for: `execute` is told a tool call's id and nothing of its run.
 *
 * Ids come empty, as `0`, or repeated every turn, and two conversations of one server may carry the same one at the same
 * time. A call that has started is not found again; among calls that wait, the tool, the input and the age tell them apart.
 */
import type { Effect } from "effect";
import { label, labelCharactersMax } from "../../domain/Limits.ts";
import type { CallReference } from "../../runtime/contract/ToolCall.ts";
import type { MarkedTool } from "./MarkedTool.ts";

/** Starts the handler of one call through the guard. */
export type Dispatch = (
  marked: MarkedTool,
  call: { readonly id: string; readonly input: unknown },
  handler: Effect.Effect<unknown, unknown>,
) => Promise<unknown>;

/** A call that was handed over. */
interface HandedOver {
  readonly reference: Extract<CallReference, { readonly call: string }>;
  readonly id: string;
  readonly tool: string;
  /** The argument text, as far as it is kept. */
  readonly input: string;
  started: boolean;
}

/** Calls that are remembered; the oldest is forgotten first, and is refused from then on. */
export const handedOverMax = 4_096;

/** Argument text that is kept of a call to tell it from another of the same id, in UTF-16 code units. */
export const inputCharactersMax = 16 * labelCharactersMax;

/** The calls that all runs of one recovery have handed over. */
export class CallBook {
  readonly #calls = new Set<HandedOver>();

  /** A whole call is being handed over. */
  handedOver(
    reference: HandedOver["reference"],
    call: { readonly toolCallId: string; readonly toolName: string; readonly input: string },
  ): void {
    const { input, toolCallId, toolName } = call;
    if (this.#calls.size >= handedOverMax) {
      for (const oldest of this.#calls) {
        this.#calls.delete(oldest);
        break;
      }
    }
    this.#calls.add({
      reference,
      id: toolCallId,
      tool: label(toolName),
      input: input.slice(0, inputCharactersMax),
      started: false,
    });
  }

  /**
   * Takes the call that a handler is started for.
   *
   * @returns undefined when no such call was handed over; a call that has started before only when no other waits, for the
   *   guard to refuse
   */
  take(tool: string, { id, input }: { readonly id: string; readonly input: unknown }): CallReference | undefined {
    const named = [...this.#calls].filter((it) => it.id === id && it.tool === tool);
    const waiting = named.filter((it) => !it.started);
    // An equal input means its call for certain, else the newest is meant. (A repaired input equals none.)
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
    // An input that is no JSON is told apart by its age.
    return false;
  }
};
