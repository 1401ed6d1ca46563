/**
 * Keeps the text that a cell's caller has on its screen, read from the JSON of events as an application would read it.
 */
import type { Part } from "../../src/provider/Protocols.ts";
import type { RunEvent } from "../../src/runtime/contract/RunEvent.ts";
import { samples } from "../samples/index.ts";

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
    this.#shown.push({ attempt, ordinal, ...samples[part.protocol].read(part.json) });
  }

  get text(): string {
    return this.#shown.map((it) => it.text).join("");
  }

  get reasoning(): string {
    return this.#shown.map((it) => it.reasoning).join("");
  }
}
