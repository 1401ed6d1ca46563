/**
 * Puts what a bench has measured into the figures that docs/scale.md is computed from.
 */
import { readFileSync, writeFileSync } from "node:fs";

/** A figure: the middle of what was measured, and the worst of the same thing. */
export interface Figure {
  readonly value: number;
  readonly worst: number;
}

/** The file of figures. */
export const figuresFile = new URL("../scale/figures.json", import.meta.url);

/** Where figures come from. */
export interface Source {
  /** The heading of docs/bench.md that they stand under, as in a link. */
  readonly heading: string;
  /** What was typed. */
  readonly command: string;
  /** The machine's load meanwhile, in words. */
  readonly load: string;
}

interface Measured {
  readonly measured: Record<string, { value: number; worst: number; source: string; load: string }>;
}

/**
 * Puts them into a file of figures; all else there stays.
 *
 * @throws Error where the file lacks one of them
 */
export const put = (file: URL, figures: Readonly<Record<string, Figure>>, { command, heading, load }: Source): void => {
  // Figures.ts holds the file to its schema.
  const all = JSON.parse(readFileSync(file, "utf8")) as Measured;
  for (const [name, { value, worst }] of Object.entries(figures)) {
    const entry = all.measured[name];
    if (entry === undefined) throw new Error(`${file.pathname} has no figure ${name}`);
    Object.assign(entry, { value, worst, source: `[the bench](bench.md#${heading}), \`${command}\``, load });
  }
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
};
