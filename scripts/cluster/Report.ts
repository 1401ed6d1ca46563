/**
 * Formats a verdict as a table.
 */
import type { Diary } from "./Diary.ts";
import type { Program } from "./Gateways.ts";
import { holds, type Verdict } from "./Judge.ts";

/** Maximum violations listed for each bar. */
const casesMax = 5;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Rows about rolling the gateways between the two versions. */
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
    ["of them by SIGTERM", stops.length],
    ["requests that these refused", refusedAtStops],
    ["whole from the older and from the newer version", `${byVersion.older}, ${byVersion.newer}`],
    ["schema version at the start and at the end", `${schema.first}, ${schema.last}`],
  ];
};

/** Formats the table, followed by the first violations of each broken bar. */
export const lines = (verdict: Verdict, diary: Diary): ReadonlyArray<string> => {
  const rows: ReadonlyArray<readonly [string, string | number]> = [
    ["streams", verdict.streams],
    ["received whole by their client", verdict.whole],
    ["faults of the provider that no client noticed", verdict.unseen],
    ["broken by the provider after text was shown", verdict.brokenByProvider],
    ["broken by kills", `${verdict.streamsBroken} (${verdict.brokenByKills} responses)`],
    ["recovered by a retry of their client", verdict.recovered],
    ["told not to retry", verdict.told.length],
    ["questions asked", verdict.questions],
    ...rolledRows(verdict, diary),
    ["runs of dead gateways", verdict.deadRuns],
    ["maximum time to their decision", seconds(verdict.latestMs)],
    ["slowdown against a quiet machine", diary.slowness.toFixed(1)],
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
    verdict.told.length === 0
      ? []
      : ["", "told not to retry:", ...verdict.told.slice(0, casesMax).map((one) => `  ${one}`)];
  return [...table, ...told, ...cases, "", holds(verdict) ? "every bar is met" : "a bar is missed"];
};
