/**
 * Keeps what a caller shows: every part that it was handed, without those that were withdrawn.
 */
import * as Json from "../../../domain/Json.ts";
import type { Part } from "../../../provider/stream/Protocol.ts";
import type { RunEvent } from "../../../runtime/contract/RunEvent.ts";

interface Kept {
  readonly attempt: number;
  readonly ordinal: number;
  readonly part: Part;
}

/** What a caller shows. It takes a run's events and does what they say. */
export class Transcript {
  #kept: Array<Kept> = [];
  /** Whether anything was withdrawn that can be seen: text, thoughts, a call. */
  withdrawn = false;

  /** Takes the next event of the run. */
  apply(event: RunEvent<Part>): void {
    if (event._tag === "Part") {
      const { attempt, ordinal, part } = event;
      this.#kept.push({ attempt, ordinal, part });
    }
    if (event._tag !== "AttemptDiscarded") return;
    const stays = (it: Kept) => it.attempt !== event.attempt || it.ordinal <= event.keep_through;
    this.withdrawn ||= this.#kept.some((it) => !stays(it) && isVisible(it.part));
    this.#kept = this.#kept.filter(stays);
  }

  /** The parts that are visible now, in order. */
  get parts(): ReadonlyArray<Part> {
    return this.#kept.map((it) => it.part);
  }

  /** The visible text or reasoning: the deltas one after the other, as a program shows them. */
  read(kind: keyof Delta): string {
    return this.#kept.map((it) => deltaOf(it.part)[kind] ?? "").join("");
  }
}

const isVisible = ({ observation }: Part): boolean => observation.shows !== "nothing" || observation.calls.length > 0;

/** What one event adds to the screen. */
interface Delta {
  readonly text?: string;
  readonly reasoning?: string;
}

/** Reads an event as an application does, from its JSON. */
const deltaOf = (part: Part): Delta => {
  const json = Json.record(part.json) ?? {};
  switch (part.protocol) {
    case "anthropic-messages": {
      const delta = Json.record(json.delta) ?? {};
      return { text: Json.string(delta.text), reasoning: Json.string(delta.thinking) };
    }
    case "openai-chat": {
      const delta = Json.record(Json.record(Json.list(json.choices)[0])?.delta) ?? {};
      return { text: Json.string(delta.content), reasoning: Json.string(delta.reasoning_content) };
    }
    case "openai-responses": {
      const type = Json.string(json.type);
      if (type === "response.output_text.delta") return { text: Json.string(json.delta) };
      return /^response\.reasoning\w*\.delta$/.test(type) ? { reasoning: Json.string(json.delta) } : {};
    }
    case "google-gemini": {
      const parts = Json.list(Json.record(Json.record(Json.list(json.candidates)[0])?.content)?.parts);
      const texts = parts.map((it) => Json.record(it) ?? {});
      const join = (thought: boolean) =>
        texts
          .filter((it) => (it.thought === true) === thought)
          .map((it) => Json.string(it.text))
          .join("");
      return { text: join(false), reasoning: join(true) };
    }
  }
};
