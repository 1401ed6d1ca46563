/**
 * Keeps what was said in one turn: the user's words, and the model's text as far as it was not withdrawn.
 */
import type { Part } from "../../provider/Protocols.ts";
import type { Ending, Entry } from "./Entry.ts";

type Of<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>;

/** A text of the model, and where it stood. */
interface Spoken {
  readonly run: string;
  readonly attempt: number;
  readonly ordinal: number;
  readonly text: string;
}

/** One turn of a chat. */
export class SpokenTurn {
  /** The number of the turn, from 1; 0 before anything was said. */
  readonly number: number;
  /** What the user said; undefined before anything was said. */
  readonly asked: string | undefined;
  /** At most the texts of one turn: as many as its parts in the journal, which is bounded. */
  #spoken: Array<Spoken> = [];
  #ending: Ending | undefined;

  constructor(number: number, asked: string | undefined) {
    this.number = number;
    this.asked = asked;
  }

  /** How the newest response of the turn has ended; undefined while none has. */
  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** What the model has said, a response a paragraph. */
  get said(): string {
    const runs = Map.groupBy(this.#spoken, ({ run }) => run);
    return [...runs.values()].map((texts) => texts.map(({ text }) => text).join("")).join("\n\n");
  }

  /** An attempt begins. A first request asks for the whole response again, so nothing of an earlier one counts. */
  begin({ request, run }: Of<"Attempt">): void {
    if (request === "first") this.#spoken = this.#spoken.filter((it) => it.run !== run);
  }

  /** A part was handed over. */
  take({ attempt, ordinal, run }: Of<"Part">, part: Part | undefined): void {
    for (const { choice, kind, text } of part?.content ?? []) {
      if (choice === 0 && kind === "text" && text !== "") this.#spoken.push({ run, attempt, ordinal, text });
    }
  }

  /** Parts were withdrawn. */
  discard({ attempt, keep_through, run }: Of<"Discard">): void {
    this.#spoken = this.#spoken.filter((it) => it.run !== run || it.attempt !== attempt || it.ordinal <= keep_through);
  }

  /** A response has ended. */
  ended(ending: Ending): void {
    this.#ending = ending;
  }
}
