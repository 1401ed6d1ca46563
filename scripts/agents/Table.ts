/**
 * Prints what became of the turns: a row for each agent and way.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { type Fault, faults } from "./Faults.ts";
import { type Cell, type Letter, worst } from "./Letter.ts";
import type { Way } from "./Turn.ts";

/** A turn that was played. */
export interface Played {
  readonly agent: string;
  readonly way: Way;
  readonly fault: string;
  /** One for each time that it was played. */
  readonly cells: readonly [Cell, ...Array<Cell>];
}

/** What was run, where. */
export interface Report {
  readonly command: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly isolation: string;
  /** How often each turn was played. */
  readonly times: number;
  readonly turns: ReadonlyArray<Played>;
}

const legend =
  "R recovered, or nothing was wrong · N recovered by a second request that does not stream · D the user sees text twice · T " +
  "silent truncation or lost call, exit 0 · E error · M broken call not run, the model was told · **X command ran twice** · " +
  "**XT cut command ran** · H nothing until the limit. The number is the requests that the provider saw.";

/** What must not pass for success, and stands in bold. */
const grave: ReadonlyArray<Letter> = ["T", "X", "XT"];

/** The report as Markdown: the table, what is wrong in it in numbers, and what it was measured with. */
export const markdown = (report: Report): string => {
  const columns = faults.filter(({ title }) => report.turns.some(({ fault }) => fault === title));
  const rows = [...new Map(report.turns.map((it) => [`${it.agent}, ${it.way}`, it])).values()];
  const versions = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `| agent | ${columns.map(({ title }) => title).join(" | ")} |`,
    `| --- |${" --- |".repeat(columns.length)}`,
    ...rows.map(
      ({ agent, way }) => `| ${agent}, ${wayNames[way]} | ${cells(report, columns, agent, way).join(" | ")} |`,
    ),
    "",
    legend,
    ...notes(report),
    "",
    `\`${report.command}\` · ${versions.join(" · ")} · ${report.isolation} · the worst of ${report.times} plays of each turn`,
  ].join("\n");
};

const wayNames: Readonly<Record<Way, string>> = {
  direct: "direct",
  live: "gateway `live`",
  on_complete: "gateway `on_complete`",
};

const cells = (report: Report, columns: ReadonlyArray<Fault>, agent: string, way: Way): ReadonlyArray<string> =>
  columns.map(({ title }) => {
    const found = report.turns.find((it) => it.agent === agent && it.way === way && it.fault === title);
    if (found === undefined) return "";
    const cell = worst(found.cells);
    const letter = nameOf(cell);
    return grave.includes(cell.letter) ? `**${letter}**` : letter;
  });

const nameOf = ({ letter, requests }: Cell): string => `${letter}${requests}`;

/** Where the plays of a turn differ, and what the agents said where one failed. */
const notes = ({ turns }: Report): ReadonlyArray<string> => {
  const differing = turns.filter(({ cells }) => new Set(cells.map(({ letter }) => letter)).size > 1);
  const failed = turns.filter(({ cells }) => ["E", "H"].includes(worst(cells).letter) && worst(cells).note !== "");
  return [
    ...list("Where one turn came out differently:", differing, ({ cells }) => cells.map(nameOf).join(", ")),
    ...list(
      "What the agents said where a turn failed:",
      failed,
      ({ cells }) => `\`${worst(cells).note.replaceAll("`", "'")}\``,
    ),
  ];
};

const list = (title: string, turns: ReadonlyArray<Played>, text: (turn: Played) => string): ReadonlyArray<string> =>
  turns.length === 0
    ? []
    : ["", title, "", ...turns.map((it) => `- ${it.agent}, ${wayNames[it.way]}, ${it.fault}: ${text(it)}`)];

/** Turns through the gateway that are worse than the design allows. */
export const faulty = ({ turns }: Report): ReadonlyArray<Played> =>
  turns.filter(
    ({ cells, way }) =>
      (way === "live" && [...grave, "H"].includes(worst(cells).letter)) ||
      (way === "on_complete" && worst(cells).letter !== "R"),
  );

const between = /(<!-- agents -->\n)[\s\S]*?(<!-- \/agents -->)/;

/**
 * Writes the report into a document, between the markers `<!-- agents -->` and `<!-- /agents -->`.
 *
 * @throws Error where the document has no markers
 */
export const write = (file: URL, report: Report): void => {
  const document = readFileSync(file, "utf8");
  if (!between.test(document))
    throw new Error(`${file.pathname} has no line <!-- agents --> with <!-- /agents --> after it`);
  writeFileSync(
    file,
    document.replace(between, (_, from: string, to: string) => `${from}${markdown(report)}\n${to}`),
  );
};
