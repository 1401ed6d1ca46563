/**
 * Finds the proof that kills a mutant, and formats the results.
 */
import type { Mutant } from "../Mutant.ts";
import type { Listed } from "./Catalogue.ts";
import type { Copy } from "./Copy.ts";
import { type SourceText, siteOf } from "./Site.ts";
import { proofText, type Said, tryProof } from "./Trial.ts";

/** The outcome of a mutant. */
export interface MutantResult {
  readonly area: string;
  readonly name: string;
  readonly breaks: string;
  readonly state: "killed" | "survived" | "error";
  /** The proof that killed it, and that proof's message. */
  readonly by?: string;
  readonly what?: string;
  readonly seed?: number;
  readonly runs?: number;
  readonly byTimeout?: boolean;
  /** The other proofs that were tried, and their outcomes. */
  readonly notes: ReadonlyArray<string>;
  readonly seconds: number;
}

/** Tries the proofs of a mutant in order until one kills it. */
export const resultOf = async (
  { area, mutant }: Listed,
  copy: Copy,
  all: ReadonlyArray<SourceText>,
  baseline: (proof: Mutant["proofs"][number]) => Said,
): Promise<MutantResult> => {
  const began = performance.now();
  const told = (rest: Omit<MutantResult, "area" | "name" | "breaks" | "seconds">): MutantResult => ({
    area,
    name: mutant.name,
    breaks: mutant.breaks,
    seconds: Math.round((performance.now() - began) / 100) / 10,
    ...rest,
  });
  const site = siteOf(mutant, all);
  if (typeof site === "string") return told({ state: "error", notes: [site] });
  const notes: Array<string> = [];
  let proven = false;
  for (const proof of mutant.proofs) {
    const by = proofText(proof);
    const healthy = baseline(proof);
    if (healthy.said !== "passed") {
      notes.push(`${by}: proves nothing, without the mutant it ${describeOutcome(healthy)}`);
      continue;
    }
    const said = await copy
      .with([site], () => tryProof(proof, copy.root))
      .catch((error: unknown): Said => ({ said: "nothing", why: String(error).slice(0, 300) }));
    if (said.said === "failed") {
      const { said: _, ...found } = said;
      return told({ state: "killed", by, ...found, notes });
    }
    if (said.said === "passed") proven = true;
    notes.push(`${by}: ${describeOutcome(said)}`);
  }
  return told({ state: proven ? "survived" : "error", notes });
};

const describeOutcome = (said: Said): string => {
  if (said.said === "passed") return "passes";
  return said.said === "failed" ? `fails: ${said.what}` : `no result: ${said.why}`;
};

const columns = ["mutant", "breaks", "killed by", "seed", "runs", "s"] as const;

/** Formats the table: killed mutants first, then survivors, then those that could not be tried. */
export const table = (results: ReadonlyArray<MutantResult>): string => {
  const killed = results.filter(({ state }) => state === "killed");
  const rows = killed.map((it) => [
    `${it.area}: ${it.name}`,
    it.breaks,
    `${it.by}${it.byTimeout ? " (by its time limit)" : ""}`,
    String(it.seed ?? ""),
    String(it.runs ?? ""),
    it.seconds.toFixed(1),
  ]);
  const widths = columns.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: ReadonlyArray<string>) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return [
    line(columns),
    ...rows.map(line),
    ...results.filter(({ state }) => state === "survived").map((it) => formatRemaining("SURVIVED", it)),
    ...results.filter(({ state }) => state === "error").map((it) => formatRemaining("ERROR", it)),
    `${results.length} mutants: ${killed.length} killed, ${count(results, "survived")} survived, ${count(results, "error")} errors`,
  ].join("\n");
};

const formatRemaining = (word: string, { area, breaks, name, notes }: MutantResult): string =>
  [`${word}  ${area}: ${name} (${breaks})`, ...notes.map((note) => `    ${note}`)].join("\n");

const count = (results: ReadonlyArray<MutantResult>, state: MutantResult["state"]): number =>
  results.filter((it) => it.state === state).length;
