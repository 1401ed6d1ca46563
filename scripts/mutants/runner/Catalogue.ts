/**
 * Collects the mutants of all areas: every file beside Mutant.ts is an area and exports `mutants`.
 */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Mutant } from "../Mutant.ts";

/** A mutant and the area that lists it. */
export interface Listed {
  readonly area: string;
  readonly mutant: Mutant;
}

const folder = join(import.meta.dirname, "..");

/** The names of the areas. */
export const areas = (): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && entry.name !== "Mutant.ts")
    .map(({ name }) => basename(name, ".ts"))
    .sort();

/** The mutants of all areas, in the order of their lists. */
export const catalogue = async (): Promise<ReadonlyArray<Listed>> => {
  const lists = await Promise.all(
    areas().map(async (area) => {
      // An area's file exports its list under this name, and its own type says of what; one that does not is refused below.
      const module = (await import(join(folder, `${area}.ts`))) as { readonly mutants?: ReadonlyArray<Mutant> };
      if (module.mutants === undefined) throw new Error(`scripts/mutants/${area}.ts: expected an export named mutants`);
      return module.mutants.map((mutant): Listed => ({ area, mutant }));
    }),
  );
  return lists.flat();
};
