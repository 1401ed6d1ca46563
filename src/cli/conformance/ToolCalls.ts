/**
 * Collects streamed tool calls as users of bare SDKs do: argument text put together, parsed when the stream has ended, run
 * when it parses.
 */
import type { ConformanceTask } from "../../testing/conformance/ConformanceRuntime.ts";

/** The calls of one response, by their index. */
export class ToolCalls {
  readonly #calls = new Map<number, { name: string; text: string }>();

  /** A call begins, or is named again. */
  start(index: number, name: string): void {
    const call = this.#calls.get(index);
    if (call === undefined) this.#calls.set(index, { name, text: "" });
    else if (name !== "") call.name = name;
  }

  /** A piece of its arguments. */
  add(index: number, text: string): void {
    const call = this.#calls.get(index) ?? { name: "", text: "" };
    call.text += text;
    this.#calls.set(index, call);
  }

  /** Runs every call whose arguments are JSON; what does not parse cannot be run. */
  async run(tools: ConformanceTask["tools"]): Promise<void> {
    for (const { name, text } of this.#calls.values()) {
      const input = parsed(text);
      if (input !== undefined) await tools.find((tool) => tool.name === name)?.execute(input);
    }
  }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // arguments that were cut
  }
};
