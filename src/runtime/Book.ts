/**
 * Writes entries that must all be on record in the end, in their order: what one write lost goes with the next.
 */
import * as Effect from "effect/Effect";
import type { Entry } from "../recorder/RunRecord.ts";

/** Whatever commits entries and says whether that worked. */
interface Writer {
  readonly write: (entries: ReadonlyArray<Entry>) => Effect.Effect<boolean>;
}

/** The entries of one question, from its incident to its answer. */
export class Book {
  readonly #writer: Writer;
  #missing: ReadonlyArray<Entry>;

  /** @param missing entries that an earlier write has lost */
  constructor(writer: Writer, missing: ReadonlyArray<Entry>) {
    this.#writer = writer;
    this.#missing = missing;
  }

  /** Commits what is missing and these; whether now everything is on record. */
  write(...entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    this.#missing = [...this.#missing, ...entries];
    if (this.#missing.length === 0) return Effect.succeed(true);
    return Effect.map(this.#writer.write(this.#missing), (recorded) => {
      if (recorded) this.#missing = [];
      return recorded;
    });
  }
}
