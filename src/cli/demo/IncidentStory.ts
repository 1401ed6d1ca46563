/** Tells one incident in plain words: the break, the facts, the decision and its reason, and the command that decides it again. */
import { isDeepStrictEqual } from "node:util";
import { fresh as freshFacts } from "../../domain/AttemptFacts.ts";
import { defaultBudget, fresh as freshRun } from "../../domain/RunFacts.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import { protocols } from "../../provider/Protocols.ts";
import { factSentences } from "../../story/FactWords.ts";
import { incidentWords, retryWords } from "../../story/RunStory.ts";
import { formatTimes } from "../../story/Times.ts";
import type { Ink } from "../terminal/Ink.ts";
import { paragraph } from "../terminal/Prose.ts";
import type { JudgedRun } from "./scenarios/Judge.ts";
import type { PlayedRun } from "./scenarios/Player.ts";

/** A run with an incident to tell. */
export interface ToldRun {
  readonly row: JudgedRun;
  readonly outcome: PlayedRun;
  readonly incident: RunIncident;
}

/** Chooses the incident of the scenario `favourite`, in which a tool call was complete before the break, or else the first incident. */
export const choose = (
  played: ReadonlyArray<{ readonly row: JudgedRun; readonly outcome: PlayedRun }>,
): ToldRun | undefined => {
  const stories = played.flatMap(({ outcome, row }): ReadonlyArray<ToldRun> => {
    const incident = outcome.incidents[0];
    return incident === undefined ? [] : [{ row, outcome, incident }];
  });
  return stories.find((it) => it.row.name === favourite) ?? stories[0];
};

const favourite = "call-complete-then-cut";

/** Maximum width of the story, in characters. */
const columns = 96;

/**
 * Formats the story of one incident as titled paragraphs, followed by the command that decides the incident again.
 *
 * @param program the command that starts this program
 */
export const formatStory = ({ incident, outcome, row }: ToldRun, program: string, ink: Ink): string => {
  const { broke, why } = incidentWords(incident);
  const { decision } = incident;
  const retry = retryWords(incident);
  const paragraphs: ReadonlyArray<readonly [string, string]> = [
    ["What broke", `${broke}.`],
    ["What was known", factSentences(incident.facts).join(" ")],
    ["The decision", `${decision.action} by rule ${decision.rule}${retry === undefined ? "" : `, ${retry}`}.`],
    ["Why", why],
    ["What came next", describeOutcome(row, outcome)],
  ];
  return [
    ink("strong", `One of them in plain words: ${row.fault} (${protocols.get(row.protocol).name}, ${row.name})`),
    "",
    ...paragraphs.map(([title, text]) => storyParagraph(title, text, ink)),
    "",
    "To decide it again from the facts alone:",
    "",
    `echo '${JSON.stringify(toDocument(incident))}' | ${program} decide --explain`,
  ].join("\n");
};

/** Returns the decision input of an incident, without counters and the defaults that `decide` fills in. */
export const toDocument = ({ budget, facts, failure, jitter, run }: RunIncident): object => {
  const { counters: _, ...deciding } = facts;
  const { fingerprint: _name, ...named } = failure;
  return {
    facts: withoutDefaults(deciding, freshFacts),
    failure: named,
    ...formatSection("run", withoutDefaults(run, freshRun)),
    ...formatSection("budget", withoutDefaults(budget, defaultBudget)),
    jitter: Number(jitter.toFixed(3)),
  };
};

const withoutDefaults = <A extends object>(value: A, byDefault: object): object => {
  const defaults = new Map(Object.entries(byDefault));
  return Object.fromEntries(Object.entries(value).filter(([key, it]) => !isDeepStrictEqual(it, defaults.get(key))));
};

const formatSection = (name: string, fields: object): object =>
  Object.keys(fields).length === 0 ? {} : { [name]: fields };

const describeOutcome = (row: JudgedRun, outcome: PlayedRun): string => {
  const took = row.recovery_ms === null ? "" : ` ${(row.recovery_ms / 1_000).toFixed(2)} s after the break`;
  const end = outcome.completed
    ? `Attempt ${row.attempts} brought new content${took}, and the response is complete.`
    : `The run ended there, and the caller received the reason.`;
  const tools = row.tool_runs === 0 ? "No tool ran." : `Tools ran ${formatTimes(row.tool_runs)}.`;
  const formatCount = (number: number) => (number === 0 ? "nothing" : String(number));
  return `${end} ${tools} The server counted ${row.requests} request${row.requests === 1 ? "" : "s"}; ${formatCount(row.duplicates)} arrived twice, ${formatCount(row.lost)} was lost.`;
};

const storyParagraph = (title: string, text: string, ink: Ink): string =>
  paragraph(title, text, { columns, indent: 2, margin: 16 }, ink);
