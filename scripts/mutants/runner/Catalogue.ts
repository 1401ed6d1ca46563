/**
 * Collects the mutants of all areas. Every `.jsonl` file in the folder above is an area, with one mutant per line.
 */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Schema } from "effect";
import { Mutant } from "../Mutant.ts";

/** A mutant and the area that lists it. */
export interface Listed {
  readonly area: string;
  readonly mutant: Mutant;
}

const folder = join(import.meta.dirname, "..");

/** Lists the names of the areas. */
export const areas = (): ReadonlyArray<string> =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => basename(name, ".jsonl"))
    .sort();

const read = Schema.decodeUnknownSync(Schema.fromJsonString(Mutant), { onExcessProperty: "error" });

/**
 * Reads the mutants of all areas, in the order of their lists.
 *
 * @throws Error with the file, the line and the field of an invalid mutant
 */
export const catalogue = (): ReadonlyArray<Listed> =>
  areas().flatMap((area) => {
    const file = join(folder, `${area}.jsonl`);
    return readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line, at): Listed => {
        try {
          return { area, mutant: read(line) };
        } catch (error) {
          throw new Error(`scripts/mutants/${area}.jsonl:${at + 1}: ${String(error)}`);
        }
      });
  });
