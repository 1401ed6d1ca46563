/**
 * Prints paths as a table, followed by the cooldowns that providers announced.
 */
import type { PathView } from "../../gateway/api/PathList.ts";
import { cooldownWords, describeDown, pathStanding, pathStandings } from "../../story/PathWords.ts";
import { formatLasting, formatRelative } from "../../story/Times.ts";
import type { Screen } from "../terminal/Screen.ts";
import { type Cell, type Column, formatTable } from "../terminal/Table.ts";

const columns: ReadonlyArray<Column> = [
  { head: "PATH", shrinksTo: 24 },
  { head: "STATE" },
  { head: "SINCE" },
  { head: "WAITING", align: "right" },
  { head: "ASKED" },
  { head: "WHY", shrinksTo: 10 },
];

/** Formats paths as a table, one row per path. */
export const pathTable = (paths: ReadonlyArray<PathView>, screen: Screen): string =>
  formatTable(
    columns,
    paths.map((path) => cells(path, screen.now)),
    screen.ink,
    screen.fits ? screen.columns : undefined,
  );

const cells = (path: PathView, now: number): ReadonlyArray<Cell> => {
  const { mark, tone, word } = pathStandings[pathStanding(path)];
  const isDown = path.state === "down";
  const next = path.next_probe_at === undefined ? "" : `, next ${formatRelative(path.next_probe_at, now)}`;
  return [
    { text: replaceControls(path.path), tone: "strong" },
    { text: `${mark} ${word}`, tone },
    { text: formatRelative(path.since, now), tone: "quiet" },
    { text: String(path.waiting) },
    { text: isDown ? `${path.probes} times${next}` : "" },
    { text: whyOf(path) },
  ];
};

const whyOf = ({ code, reached, state }: PathView): string => {
  if (state === "down" && code !== undefined) return replaceControls(`${describeDown(code)} (${code})`);
  return reached ? "" : "not reached yet";
};

/** Formats the cooldowns of all paths, one per line after an empty line. */
export const cooldownLines = (paths: ReadonlyArray<PathView>, { now }: Screen): ReadonlyArray<string> => {
  const lines = paths.flatMap(({ cooldowns, path }) =>
    cooldowns.map(({ credential, kind, model, until }) => {
      const whose = credential === undefined || credential === "" ? "" : `, credential ${credential}`;
      const left = until <= now ? "over" : `for ${formatLasting(until - now)} more`;
      return replaceControls(`  ${path}: ${model ?? "every model"}${whose}: ${cooldownWords[kind]}, ${left}`);
    }),
  );
  return lines.length === 0 ? [] : ["", "Cooldowns that providers have announced:", ...lines];
};

/** Replaces control and format characters, which a terminal would interpret, because the text is from another process. */
const replaceControls = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, "\ufffd");
