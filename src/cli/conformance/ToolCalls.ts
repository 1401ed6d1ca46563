/**
 * Collects streamed tool calls as users of bare SDKs do: concatenates the argument text, parses it at the end of the stream, and runs the
 * call if the text parses.
 */
import type { ConformanceTask } from "../../testing/conformance/ConformanceRuntime.ts";

/** The tool calls of one response, by index. */
export class ToolCalls {
  readonly #calls = new Map<number, { name: string; text: string }>();

  /** Starts a call, or updates its name. */
  start(index: number, name: string): void {
    const call = this.#calls.get(index);
    if (call === undefined) this.#calls.set(index, { name, text: "" });
    else if (name !== "") call.name = name;
  }

  add(index: number, text: string): void {
    const call = this.#calls.get(index) ?? { name: "", text: "" };
    call.text += text;
    this.#calls.set(index, call);
  }

  /** Runs every call whose arguments are valid JSON, and ignores the other calls. */
  async run(tools: ConformanceTask["tools"]): Promise<void> {
    for (const { name, text } of this.#calls.values()) {
      const input = tryParse(text);
      if (input !== undefined) await tools.find((tool) => tool.name === name)?.execute(input);
    }
  }
}

const tryParse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // cut arguments
  }
};
