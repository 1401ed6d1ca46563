/**
 * Keeps the parts that a caller shows, and drops those that the run withdraws.
 */
import type { Part } from "../../../provider/Protocols.ts";
import type { RunEvent } from "../../../runtime/contract/RunEvent.ts";

interface ShownPart {
  readonly attempt: number;
  readonly ordinal: number;
  readonly part: Part;
}

/** The parts that a caller shows, built from the run's events. */
export class Transcript {
  #kept: Array<ShownPart> = [];
  /** True if visible content was withdrawn: text, reasoning or a call. */
  withdrawn = false;

  apply(event: RunEvent<Part>): void {
    if (event._tag === "Part") {
      const { attempt, ordinal, part } = event;
      this.#kept.push({ attempt, ordinal, part });
    }
    if (event._tag !== "AttemptDiscarded") return;
    const isKept = (it: ShownPart) => it.attempt !== event.attempt || it.ordinal <= event.keep_through;
    this.withdrawn ||= this.#kept.some((it) => !isKept(it) && isVisible(it.part));
    this.#kept = this.#kept.filter(isKept);
  }

  /** The visible parts, in order. */
  get parts(): ReadonlyArray<Part> {
    return this.#kept.map((it) => it.part);
  }

  /** Joins the deltas of the visible text or reasoning. */
  read(kind: "text" | "reasoning"): string {
    const said = this.#kept.flatMap((it) => it.part.content);
    return said.map((it) => (it.kind === kind && it.choice === 0 ? it.text : "")).join("");
  }
}

const isVisible = ({ observation }: Part): boolean => observation.shows !== "nothing" || observation.calls.length > 0;
