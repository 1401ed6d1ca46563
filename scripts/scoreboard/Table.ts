/**
 * Renders the scoreboard: a summary with a row per gateway, then the letters of each SDK.
 */
import { type ConformanceScoreboard, conformanceFaults, conformanceLegend, isSafe } from "../../src/testing/index.ts";

/** One protocol of an SDK, played behind a gateway. */
export interface Played {
  readonly gateway: string;
  readonly sdk: string;
  readonly protocol: string;
  readonly board: ConformanceScoreboard;
}

const unique = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(all)];

/** Names what was unsafe: repeated text or tools, truncations reported as success, or healthy streams that were aborted. */
export const unsafe = (played: ReadonlyArray<Played>): ReadonlyArray<string> =>
  played
    .filter(({ board }) => !isSafe(board))
    .map(({ board, gateway, protocol, sdk }) => {
      const cells = board.cells
        .filter(({ letter }) => !/^[RE]/.test(letter))
        .map((cell) => `${cell.fault} ${cell.letter}`);
      return `${gateway}, ${sdk} ${protocol}: ${cells.join(", ")}`;
    });

const sums: ReadonlyArray<readonly [title: string, field: keyof ConformanceScoreboard["totals"]]> = [
  ["turns", "cells"],
  ["recovered", "recovered"],
  ["errors reported", "errors"],
  ["hung", "hung"],
  ["text twice", "duplicated_text"],
  ["tools twice", "duplicated_tool_runs"],
  ["cut tools run", "truncated_tool_runs"],
  ["cut responses taken for whole", "silent_truncations"],
  ["requests", "requests"],
];

/** Prints the tables. */
export const markdown = (played: ReadonlyArray<Played>, missing: ReadonlyArray<string>): string => {
  const names = unique(played.map(({ gateway }) => gateway));
  const summary = names.map((name) => {
    const boards = played.filter(({ gateway }) => gateway === name).map(({ board }) => board);
    return [name, ...sums.map(([, field]) => String(boards.reduce((sum, { totals }) => sum + totals[field], 0)))];
  });
  const details = unique(played.map(({ protocol, sdk }) => `${sdk}, ${protocol}`)).map((title) => {
    const columns = names.map((name) =>
      played.find(({ gateway, protocol, sdk }) => gateway === name && `${sdk}, ${protocol}` === title),
    );
    const rows = conformanceFaults.map(({ id, title: fault }) => [
      fault,
      ...columns.map((column) => {
        const cell = column?.board.cells.find((it) => it.fault === id);
        return cell === undefined ? "" : `${cell.letter}${cell.requests}${cell.false_abort ? "!" : ""}`;
      }),
    ]);
    return `### ${title}\n\n${table([["fault in the first response", ...names], ...rows])}`;
  });
  const versions = unique(
    played.flatMap(({ board }) => Object.entries(board.versions).map(([name, it]) => `${name} ${it}`)),
  );
  const about = [`Node ${process.versions.node}`, ...versions].join(" · ");
  const skipped = missing.length === 0 ? [] : [`Not installed, so not played: ${missing.join(", ")}.`];
  return [
    table([["behind", ...sums.map(([title]) => title)], ...summary]),
    about,
    ...skipped,
    conformanceLegend,
    ...details,
  ].join("\n\n");
};

const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const [head = [], ...body] = rows.map((row) => `| ${row.join(" | ")} |`);
  return [head, `|${(rows[0] ?? []).map(() => " --- |").join("")}`, ...body].join("\n");
};
