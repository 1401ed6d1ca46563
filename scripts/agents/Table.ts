/**
 * Formats the turns as one table per measure, with a row for each agent and way.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { agents } from "./Agents.ts";
import { awayMs, type Measure, measures } from "./Faults.ts";
import { type Cell, findWorst, type Letter } from "./Letter.ts";
import type { Way } from "./Turn.ts";

/** A turn that was played. */
export interface Played {
  readonly agent: string;
  readonly way: Way;
  readonly measure: Measure;
  readonly fault: string;
  /** One cell for each play. */
  readonly cells: readonly [Cell, ...Array<Cell>];
}

/** The turns and the environment they were played in. */
export interface Report {
  readonly command: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly isolation: string;
  readonly turns: ReadonlyArray<Played>;
}

const legend =
  "R recovered, or nothing was wrong · N recovered by a second request that does not stream · D the user sees text twice · T " +
  "silent truncation or lost call, exit 0 · E error · Q error without a reason on the screen, for a fault that never stops · M " +
  "broken call not run, reported to the model · **X command ran twice** · **XT cut command ran** · H no end before the time limit. The " +
  "number counts the requests that the provider received; an empty cell was not played.";

/** Letters that must not pass for success. They are printed in bold. */
const grave: ReadonlyArray<Letter> = ["T", "X", "XT"];

const titles: Readonly<Record<Measure, string>> = {
  once: "The fault hits the first request:",
  always: "The fault hits every request of the turn:",
  away: `The provider cannot be reached for ${awayMs / 1000} s from the moment that the column names. For a dead provider, the gateway has a second one:`,
  continue:
    "Shown text breaks once. The gateway has `--continue-text auto`, and the provider continues its answer on request. Each cell also shows the gateway's decision:",
  held: "Healthy responses that take longer than the agent's timeout, which is 5 s if the agent has a setting for it:",
};

const wayNames: Readonly<Record<Way, string>> = {
  direct: "direct",
  live: "gateway `live`",
  on_complete: "gateway `on_complete`",
};

/** Formats the report as Markdown: the tables, their notes, and the environment. */
export const markdown = (report: Report): string => {
  const versions = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`);
  const times = Math.min(...report.turns.map(({ cells }) => cells.length));
  return [
    legend,
    "",
    ...measures.flatMap((measure) =>
      table(
        report.turns.filter((it) => it.measure === measure),
        measure,
      ),
    ),
    ...formatNotes(report.turns),
    `The last command: \`${report.command.replace(/--keep \S+/, "--keep FILE")}\` · ${versions.join(" · ")} · ${report.isolation} · each turn played at least ${times} time${times === 1 ? "" : "s"}; the table shows the worst result`,
  ].join("\n");
};

const table = (turns: ReadonlyArray<Played>, measure: Measure): ReadonlyArray<string> => {
  if (turns.length === 0) return [];
  const columns = [...new Set(turns.map(({ fault }) => fault))];
  const rows = [...new Map(turns.map((it) => [`${it.agent}, ${it.way}`, it])).values()];
  return [
    titles[measure],
    "",
    `| agent | ${columns.join(" | ")} |`,
    `| --- |${" --- |".repeat(columns.length)}`,
    ...rows.map(({ agent, way }) => {
      const cells = columns.map((fault) =>
        formatCell(turns.find((it) => it.agent === agent && it.way === way && it.fault === fault)),
      );
      return `| ${agent}, ${wayNames[way]} | ${cells.join(" | ")} |`;
    }),
    "",
    ...formatCauses(turns),
  ];
};

/** Counts the plays by the gateway's handling of shown text. */
const formatCauses = (turns: ReadonlyArray<Played>): ReadonlyArray<string> => {
  const told = turns.flatMap(({ cells, measure, way }) =>
    measure === "continue" && way !== "direct"
      ? cells.map(({ cause, letter }) => `${cause ?? "no seam"} (${letter})`)
      : [],
  );
  const counts = [...Map.groupBy(told, (cause) => cause)].map(([cause, all]) => `${cause} ${all.length}`);
  return counts.length === 0 ? [] : [`Of ${told.length} plays through the gateway: ${counts.sort().join(" · ")}.`, ""];
};

const formatCell = (turn: Played | undefined): string => {
  if (turn === undefined) return "";
  const cell = findWorst(turn.cells);
  const name = grave.includes(cell.letter) ? `**${nameOf(cell)}**` : nameOf(cell);
  return cell.cause === undefined ? name : `${name} ${cell.cause}`;
};

/** Formats a cell as one word. */
export const nameOf = ({ letter, requests }: Cell): string => `${letter}${requests}`;

/** Lists turns whose plays differ, and each agent's own message for the first turn of a measure that failed behind the gateway. */
const formatNotes = (turns: ReadonlyArray<Played>): ReadonlyArray<string> => {
  const differing = turns.filter(({ cells }) => new Set(cells.map(({ letter }) => letter)).size > 1);
  const failed = turns.filter(
    ({ cells, way }) =>
      way !== "direct" && ["E", "Q", "H"].includes(findWorst(cells).letter) && findWorst(cells).note !== "",
  );
  const first = [...new Map(failed.toReversed().map((it) => [`${it.agent}, ${it.measure}`, it])).values()].toReversed();
  return [
    ...list("Turns whose plays had different outcomes:", differing, ({ cells }) => cells.map(nameOf).join(", ")),
    ...list(
      "Each agent's message about the first turn of each table that failed through the gateway:",
      first,
      ({ cells }) => `\`${findWorst(cells).note.replaceAll("`", "'")}\``,
    ),
  ];
};

const list = (title: string, turns: ReadonlyArray<Played>, text: (turn: Played) => string): ReadonlyArray<string> =>
  turns.length === 0 ? [] : ["", title, "", ...turns.map((it) => `- ${placeOf(it)}: ${text(it)}`)];

/** Names a turn by its place in the tables. */
export const placeOf = ({ agent, fault, measure, way }: Played): string =>
  `${agent}, ${wayNames[way]}, ${fault}${measure === "once" ? "" : ` (${measure})`}`;

/** Merges two reports. Turns that the later one did not play are kept, and agents stay in order. */
export const merge = (earlier: ReadonlyArray<Played>, later: ReadonlyArray<Played>): ReadonlyArray<Played> => {
  const all = new Map([...earlier, ...later].map((it) => [placeOf(it), it]));
  const place = ({ agent }: Played) => agents.findIndex(({ name }) => name === agent);
  return [...all.values()].sort((a, b) => place(a) - place(b));
};

/** Reads the turns of a report that was saved as JSON; empty if the file does not exist. */
export const readReport = (file: string): ReadonlyArray<Played> =>
  // Safe: `keep` wrote the file.
  existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Report).turns : [];

/** Saves a report as JSON. */
export const saveReport = (file: string, report: Report): void => writeFileSync(file, JSON.stringify(report, null, 1));

/** The markers of a report. Continued text has its own, because it is run separately. */
const markersOf = ({ turns }: Report): string =>
  turns.every(({ measure }) => measure === "continue") ? "agents continue-text" : "agents";

/**
 * Writes the report into a document, between the markers `<!-- agents -->` and `<!-- /agents -->`, or between those of
 * `agents continue-text` if it contains only continued text.
 *
 * @throws Error if the document has no such markers
 */
export const write = (file: URL, report: Report): void => {
  const document = readFileSync(file, "utf8");
  const name = markersOf(report);
  const between = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!between.test(document))
    throw new Error(`${file.pathname} needs a line <!-- ${name} --> and <!-- /${name} --> after it`);
  writeFileSync(
    file,
    document.replace(between, (_, from: string, to: string) => `${from}${markdown(report)}\n${to}`),
  );
};
