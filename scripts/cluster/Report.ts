/**
 * Tells a verdict as a table.
 */
import type { Diary } from "./Diary.ts";
import type { Program } from "./Gateways.ts";
import { holds, type Verdict } from "./Judge.ts";

/** Most cases that are told of what must be none. */
const casesMax = 5;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** What is told of gateways that were rolled from one version to the other, and back. */
const rolledRows = (
  { byVersion, refusedAtStops }: Verdict,
  { schema, stops, versions }: Diary,
): ReadonlyArray<readonly [string, string | number]> => {
  if (!versions.flat().includes("older")) return [];
  const restarts = versions.flatMap((all) => all.slice(1));
  const to = (wanted: Program["version"]) => restarts.filter((version) => version === wanted).length;
  return [
    ["gateways rolled to the newer version", to("newer")],
    ["gateways rolled back to the older one", to("older")],
    ["of them told to end", stops.length],
    ["requests that these took no more", refusedAtStops],
    ["whole from the older version, from the newer", `${byVersion.older}, ${byVersion.newer}`],
    ["version of the tables, and at the end", `${schema.first}, ${schema.last}`],
  ];
};

/** The table, and the first cases against each bar that is broken. */
export const lines = (verdict: Verdict, diary: Diary): ReadonlyArray<string> => {
  const rows: ReadonlyArray<readonly [string, string | number]> = [
    ["streams", verdict.streams],
    ["whole at their client", verdict.whole],
    ["faults of the provider that no client saw", verdict.unseen],
    ["broken by the provider behind shown text", verdict.brokenByProvider],
    ["broken by the kills", `${verdict.streamsBroken} (${verdict.brokenByKills} responses)`],
    ["recovered by their client's repeat", verdict.recovered],
    ["asked: told to ask no more", verdict.told.length],
    ["questions that anybody was asked", verdict.questions],
    ...rolledRows(verdict, diary),
    ["runs of dead gateways", verdict.deadRuns],
    ["the latest of them decided after", seconds(verdict.latestMs)],
    ["times as slow as a quiet machine", diary.slowness.toFixed(1)],
    ...verdict.bars.map(({ found, what }) => [what, found.length] as const),
  ];
  const width = Math.max(...rows.map(([what]) => what.length));
  const table = rows.map(([what, value]) => `${what.padEnd(width)}  ${value}`);
  const broken = verdict.bars.filter(({ found }) => found.length > 0);
  const cases = broken.flatMap(({ found, what }) => [
    "",
    `${what}:`,
    ...found.slice(0, casesMax).map((one) => `  ${one}`),
  ]);
  const told =
    verdict.told.length === 0 ? [] : ["", "asked:", ...verdict.told.slice(0, casesMax).map((one) => `  ${one}`)];
  return [...table, ...told, ...cases, "", holds(verdict) ? "every bar is kept" : "a bar is broken"];
};
