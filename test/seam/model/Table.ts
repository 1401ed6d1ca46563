/**
 * Prints what a campaign of seams has found, by kind.
 */
import type { Report, Row } from "./Campaign.ts";
import type { Judgement } from "./Judge.ts";

/** The bars of a campaign. */
export interface Bars {
  readonly twice: number;
  readonly missing: number;
  readonly tooLate: number;
  readonly honest: number;
  readonly whole: number;
  /** Refused because they repeat what was shown; of those the ones in texts that were made to. */
  readonly repeats: number;
  readonly onPurpose: number;
  readonly lost: number;
  readonly extraMedian: number;
  readonly extraMost: number;
  readonly extraMax: number;
}

const quantile = (numbers: ReadonlyArray<number>, part: number): number =>
  numbers[Math.floor(numbers.length * part)] ?? 0;

const sum = (rows: Iterable<Row>, of: (row: Row) => number): number =>
  [...rows].reduce((before, row) => before + of(row), 0);

/** Honest ways, those of a provider with a prefill among them. */
const isHonest = ({ group, kind }: Row): boolean => group === "honest" || /^(straight on|an echo)/.test(kind);

/** Counts what the bars are about. */
export const barsOf = ({ extra, extraOfLines, lost, rows }: Report): Bars => {
  const all = [...rows.values()];
  const honest = all.filter(isHonest);
  const judged = (from: ReadonlyArray<Row>, judgement: Judgement) => sum(from, (row) => row.judged.get(judgement) ?? 0);
  return {
    twice: judged(all, "twice"),
    missing: judged(all, "missing"),
    tooLate: judged(all, "too late"),
    honest: sum(honest, ({ count }) => count),
    whole: judged(honest, "whole"),
    repeats: sum(honest, ({ repeats }) => repeats),
    onPurpose: sum(honest, ({ lost, repeats }) => repeats + lost) - lost.length,
    lost: lost.length,
    extraMedian: quantile(extra, 0.5),
    extraMost: quantile(extra, 0.95),
    extraMax: Math.max(extra.at(-1) ?? 0, extraOfLines.at(-1) ?? 0),
  };
};

const columns: ReadonlyArray<readonly [string, (row: Row) => number]> = [
  ["played", ({ count }) => count],
  ["whole", ({ judged }) => judged.get("whole") ?? 0],
  ["own text", ({ judged }) => (judged.get("own words") ?? 0) + (judged.get("own message") ?? 0)],
  ["refused", ({ judged }) => judged.get("refused") ?? 0],
  ["late", ({ judged }) => judged.get("refused late") ?? 0],
  ["twice", ({ judged }) => judged.get("twice") ?? 0],
  ["missing", ({ judged }) => judged.get("missing") ?? 0],
];

const line = (name: string, cells: ReadonlyArray<string>): string =>
  name.padEnd(54) + cells.map((cell) => cell.padStart(9)).join("");

const titles: ReadonlyArray<readonly [Row["group"], string]> = [
  ["honest", "goes on as asked, behind an anchor"],
  ["clumsy", "does not go on as asked"],
  ["prefill", "goes on behind a prefill"],
];

const percent = (part: number, of: number): string => `${((100 * part) / Math.max(1, of)).toFixed(2)} %`;

/** The table of a campaign. */
export const tableOf = (report: Report): string => {
  const bars = barsOf(report);
  const groups = titles.flatMap(([group, title]) => [
    line(
      title,
      columns.map(([name]) => name),
    ),
    ...[...report.rows.values()]
      .filter((row) => row.group === group)
      .map((row) =>
        line(
          `  ${row.kind}`,
          columns.map(([, of]) => String(of(row) || "")),
        ),
      ),
    "",
  ]);
  const refusals = [...report.refusals].map(([reason, count]) => `${reason} ${count}`).join(", ");
  return [
    ...groups,
    `${report.breaks} breaks from seed ${report.seed}, in ${report.texts} texts; no anchor: ${refusals || "none"}`,
    `${bars.whole} of ${bars.honest - bars.onPurpose} honest continuations whole (${percent(bars.whole, bars.honest - bars.onPurpose)}); told apart: ${bars.onPurpose} refused in texts that repeat themselves`,
    `twice ${bars.twice}, missing ${bars.missing}, refused later than 8 characters ${bars.tooLate}`,
    `characters that come again: median ${bars.extraMedian}, p95 ${bars.extraMost} where a text has sentences or lines, at most ${bars.extraMax}`,
    ...report.wrong.slice(0, 20).map(tell),
    ...report.lost.slice(0, 20).map(tell),
  ].join("\n");
};

const tell = ({ judgement, kind, number, played, said, seed, shape, shown }: Report["wrong"][number]): string =>
  [
    `${judgement}: ${kind}, ${shape} (--seed ${seed} --only ${number})`,
    `  shown    … ${JSON.stringify(shown.slice(-160))}`,
    `  said     ${JSON.stringify(said.slice(0, 240))} …`,
    `  ${played.verdict.padEnd(8)} ${JSON.stringify(played.released.slice(0, 120))} ${played.fault ?? ""}`,
  ].join("\n");
