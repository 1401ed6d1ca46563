/**
 * Keeps the text that a cell's caller has on its screen, read from the JSON of events as an application would read it.
 */
import type { Part } from "../../src/provider/Protocols.ts";
import type { RunEvent } from "../../src/runtime/contract/RunEvent.ts";

interface Shown {
  readonly attempt: number;
  readonly ordinal: number;
  readonly text: string;
  readonly reasoning: string;
}

export class Transcript {
  #shown: Array<Shown> = [];

  /** Applies an event of `run`. */
  apply(event: RunEvent<Part>): void {
    if (event._tag === "Part") this.show(event.part, event.attempt, event.ordinal);
    if (event._tag !== "AttemptDiscarded") return;
    const { attempt, keep_through } = event;
    this.#shown = this.#shown.filter((it) => it.attempt !== attempt || it.ordinal <= keep_through);
  }

  /** Shows a part. A caller of `parts` knows no ordinals and discards nothing. */
  show(part: Part, attempt = 0, ordinal = 0): void {
    this.#shown.push({ attempt, ordinal, ...read(part) });
  }

  get text(): string {
    return this.#shown.map((it) => it.text).join("");
  }

  get reasoning(): string {
    return this.#shown.map((it) => it.reasoning).join("");
  }
}

const nothing = { text: "", reasoning: "" };

const read = ({ json, protocol }: Part): { readonly text: string; readonly reasoning: string } => {
  switch (protocol) {
    case "openai-chat": {
      const delta = field(item(field(json, "choices")), "delta");
      return {
        text: string(field(delta, "content")) + string(field(delta, "refusal")),
        reasoning: string(field(delta, "reasoning_content")),
      };
    }
    case "openai-responses": {
      const type = string(field(json, "type"));
      const delta = string(field(json, "delta"));
      if (type === "response.output_text.delta" || type === "response.refusal.delta")
        return { ...nothing, text: delta };
      return type === "response.reasoning_summary_text.delta" ? { ...nothing, reasoning: delta } : nothing;
    }
    case "anthropic-messages": {
      const delta = field(json, "delta");
      return { text: string(field(delta, "text")), reasoning: string(field(delta, "thinking")) };
    }
    case "google-gemini": {
      const parts = field(field(item(field(json, "candidates")), "content"), "parts");
      const read = (thought: boolean) =>
        (Array.isArray(parts) ? parts : [])
          .filter((part: unknown) => (field(part, "thought") === true) === thought)
          .map((part: unknown) => string(field(part, "text")))
          .join("");
      return { text: read(false), reasoning: read(true) };
    }
  }
};

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

const item = (value: unknown): unknown => (Array.isArray(value) ? value[0] : undefined);

const string = (value: unknown): string => (typeof value === "string" ? value : "");
