/** Prints runs as a table, followed by the commands that a person may need next. */
import { type RunStatus, runStatuses } from "../../story/RunStatus.ts";
import type { RunSummary } from "../../story/RunSummary.ts";
import { formatDollars, type RunTokens } from "../../story/RunTokens.ts";
import { formatCharacters } from "../../story/SeamWords.ts";
import { formatRelative, formatTimes, groupDigits } from "../../story/Times.ts";
import { modelName } from "../../story/Words.ts";
import { quoteForShell, type Screen } from "../terminal/Screen.ts";
import { type Cell, type Column, formatTable } from "../terminal/Table.ts";

/** Minimum number of characters shown of a random id: one more than git shows of a commit hash. */
const idCharactersMin = 8;

/** Minimum number of characters shown of an id that a program chose, because such an id is meant to be readable. */
const nameCharactersMin = 18;

const random = /^[0-9a-f-]{32,36}$/i;

/** Maximum questions whose command is printed; the rest are counted. */
const hintsMax = 5;

/** A run's summary and status. */
export interface RunRow {
  readonly summary: RunSummary;
  readonly status: RunStatus;
}

/**
 * Formats runs as a table, followed by the commands that answer questions, recover runs and show the next page.
 *
 * @param more the last run of the page, if there may be older ones
 */
export const runTable = (runs: ReadonlyArray<RunRow>, screen: Screen, more: string | undefined): string => {
  const rows = formatTable(
    columnsFor(runs),
    runs.map((run) => cells(run, screen, { tokens: hasTokens(runs), cost: hasCost(runs) })),
    screen.ink,
    widthOf(screen),
  );
  return [rows, ...formatQuestions(runs, screen), ...formatOrphans(runs, screen), ...formatNextPage(more, screen)].join(
    "\n",
  );
};

/** Returns the maximum width of a table; undefined if stdout is not a terminal. */
export const widthOf = (screen: Screen): number | undefined => (screen.fits ? screen.columns : undefined);

const columnsFor = (runs: ReadonlyArray<RunRow>): ReadonlyArray<Column> => [
  { head: "RUN", shrinksTo: shortestPrefixLength(runs.map(({ summary }) => summary.run_id)), typed: true },
  { head: "STARTED" },
  { head: "PROVIDER/MODEL", shrinksTo: 14 },
  { head: "STATE" },
  { head: "TRY", align: "right" },
  ...(hasTokens(runs) ? [{ head: "TOKENS", align: "right" } as const] : []),
  ...(hasCost(runs) ? [{ head: "COST", align: "right" } as const] : []),
  { head: "OUTCOME", shrinksTo: 12 },
];

/** True if any of these runs has used tokens. If none has, the table omits the column. */
const hasTokens = (runs: ReadonlyArray<RunRow>): boolean =>
  runs.some(({ summary: { tokens } }) => tokens.used + tokens.wasted > 0);

const hasCost = (runs: ReadonlyArray<RunRow>): boolean =>
  runs.some(({ summary: { tokens } }) => tokens.cost_usd !== undefined);

/** Used and wasted tokens, for example `1,200+300`. A tilde marks an estimate. */
const tokenCell = ({ estimated, used, wasted }: RunTokens): string =>
  used + wasted === 0
    ? "-"
    : `${estimated ? "~" : ""}${groupDigits(used)}${wasted === 0 ? "" : `+${groupDigits(wasted)}`}`;

const costCell = ({ cost_usd: cost }: RunTokens): string =>
  cost === undefined ? "-" : formatDollars(cost.used + cost.wasted);

/** Returns the shortest length, at least the minimum for these ids, at which all ids of the page have distinct prefixes. */
const shortestPrefixLength = (ids: ReadonlyArray<string>): number => {
  const least = ids.every((id) => random.test(id)) ? idCharactersMin : nameCharactersMin;
  const longest = Math.max(least, ...ids.map((id) => id.length));
  for (let length = least; length < longest; length += 1) {
    if (new Set(ids.map((id) => id.slice(0, length))).size === ids.length) return length;
  }
  return longest;
};

const cells = (
  { status, summary: run }: RunRow,
  screen: Screen,
  columns: { readonly tokens: boolean; readonly cost: boolean },
): ReadonlyArray<Cell> => {
  const { mark, tone, word } = runStatuses[status];
  return [
    { text: run.run_id, tone: "strong" },
    { text: formatRelative(run.started_at, screen.now), tone: "quiet" },
    { text: modelName({ id: run.provider, ...(run.model === undefined ? {} : { model: run.model }) }) },
    { text: `${mark} ${word}`, tone },
    { text: String(run.attempts) },
    ...(columns.tokens ? [{ text: tokenCell(run.tokens) }] : []),
    ...(columns.cost ? [{ text: costCell(run.tokens) }] : []),
    { text: `${run.outcome}${seamsText(run.seams ?? [])}${unknownText(run)}` },
  ];
};

/** Lists tools with an unknown outcome: `, bash unknown`. Empty if the run has an open question, because the question lists these tools. */
const unknownText = ({ question, unknown_outcomes: tools }: RunSummary): string =>
  tools === undefined || question !== undefined ? "" : `, ${tools.join(", ")} unknown`;

/** Describes continued text: `, continued after 412 characters`. */
const seamsText = (seams: NonNullable<RunSummary["seams"]>): string => {
  const last = seams.at(-1);
  if (last === undefined) return "";
  return seams.length === 1
    ? `, continued after ${formatCharacters(last.at)}`
    : `, continued ${formatTimes(seams.length)}`;
};

const formatQuestions = (runs: ReadonlyArray<RunRow>, screen: Screen): ReadonlyArray<string> => {
  const open = runs.flatMap(({ summary }) =>
    summary.question === undefined ? [] : [{ ...summary, question: summary.question }],
  );
  if (open.length === 0) return [];
  const hints = open.slice(0, hintsMax).flatMap(({ question, run_id }) => {
    const expiry =
      question.expires_at === undefined
        ? ""
        : `, ${question.default_choice} ${formatRelative(question.expires_at, screen.now)}`;
    return [
      `  ${screen.ink("strong", screen.type(`runs answer ${quoteForShell(run_id)}`))}`,
      `    ${screen.ink("quiet", `${question.choices.join(" · ")}${expiry}`)}`,
    ];
  });
  const rest = open.length > hintsMax ? [`  and ${open.length - hintsMax} more`] : [];
  return ["", `${waitingText(open.length)} for your answer. To see the question and its answers:`, ...hints, ...rest];
};

const waitingText = (count: number): string => (count === 1 ? "One run waits" : `${count} runs wait`);

const formatOrphans = (runs: ReadonlyArray<RunRow>, screen: Screen): ReadonlyArray<string> => {
  const count = runs.filter(({ status }) => status === "orphan").length;
  if (count === 0) return [];
  const lost = count === 1 ? "The process of one run is gone" : `The processes of ${count} runs are gone`;
  return [
    "",
    `${lost}. To recover ${count === 1 ? "it" : "them"}:`,
    `  ${screen.ink("strong", screen.type("recover"))}`,
  ];
};

const formatNextPage = (more: string | undefined, screen: Screen): ReadonlyArray<string> =>
  more === undefined
    ? []
    : ["", screen.ink("quiet", `Older ones: ${screen.type(`runs list --before ${quoteForShell(more)}`)}`)];
