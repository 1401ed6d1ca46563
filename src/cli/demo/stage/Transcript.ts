/**
 * Keeps what a caller shows: every part that it was handed, without those that were withdrawn.
 */
import type { Part } from "../../../provider/Protocols.ts";
import type { RunEvent } from "../../../runtime/contract/RunEvent.ts";

interface ShownPart {
  readonly attempt: number;
  readonly ordinal: number;
  readonly part: Part;
}

/** What a caller shows. It takes a run's events and does what they say. */
export class Transcript {
  #kept: Array<ShownPart> = [];
  /** Whether anything was withdrawn that can be seen: text, thoughts, a call. */
  withdrawn = false;

  /** Takes the next event of the run. */
  apply(event: RunEvent<Part>): void {
    if (event._tag === "Part") {
      const { attempt, ordinal, part } = event;
      this.#kept.push({ attempt, ordinal, part });
    }
    if (event._tag !== "AttemptDiscarded") return;
    const stays = (it: ShownPart) => it.attempt !== event.attempt || it.ordinal <= event.keep_through;
    this.withdrawn ||= this.#kept.some((it) => !stays(it) && isVisible(it.part));
    this.#kept = this.#kept.filter(stays);
  }

  /** The parts that are visible now, in order. */
  get parts(): ReadonlyArray<Part> {
    return this.#kept.map((it) => it.part);
  }

  /** The visible text or reasoning: the deltas one after the other, as a program shows them. */
  read(kind: "text" | "reasoning"): string {
    const said = this.#kept.flatMap((it) => it.part.content);
    return said.map((it) => (it.kind === kind && it.choice === 0 ? it.text : "")).join("");
  }
}

const isVisible = ({ observation }: Part): boolean => observation.shows !== "nothing" || observation.calls.length > 0;
