/**
 * Writes measurements of a bench into the figures that the scale tables of docs/bench.md are computed from.
 */
import { readFileSync, writeFileSync } from "node:fs";

/** A figure: the median of the measurements, and the worst value of the same quantity. */
export interface Figure {
  readonly value: number;
  readonly worst: number;
}

/** The file of the figures. */
export const figuresFile = new URL("../scale/figures.json", import.meta.url);

/** The origin of figures. */
export interface Source {
  /** Anchor of their heading in docs/bench.md. */
  readonly heading: string;
  readonly command: string;
  readonly load: string;
}

interface Measured {
  readonly measured: Record<string, { value: number; worst: number; source: string; load: string }>;
}

/**
 * Replaces figures in a file of figures, and leaves everything else in it unchanged.
 *
 * @throws Error if the file lacks one of them
 */
export const put = (file: URL, figures: Readonly<Record<string, Figure>>, { command, heading, load }: Source): void => {
  // Safe: Figures.ts validates the file against its schema.
  const all = JSON.parse(readFileSync(file, "utf8")) as Measured;
  for (const [name, { value, worst }] of Object.entries(figures)) {
    const entry = all.measured[name];
    if (entry === undefined) throw new Error(`${file.pathname} has no figure ${name}`);
    Object.assign(entry, { value, worst, source: `[the bench](bench.md#${heading}), \`${command}\``, load });
  }
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
};
