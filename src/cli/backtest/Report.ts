/**
 * Prints the changes that another policy or budget would make, the risk of these changes, and any stored decision that cannot be
 * reproduced.
 */
import type { Ink, Tone } from "../terminal/Ink.ts";
import { wrap } from "../terminal/Prose.ts";
import { quoteForShell, type Screen } from "../terminal/Screen.ts";
import { cut } from "../terminal/Table.ts";
import { type Consequence, consequences } from "./Redecision.ts";
import type { DecisionSummary, Group, Totals, Violation } from "./Tally.ts";

/** Maximum groups printed; `--json` prints them all. */
const groupsMax = 25;

/** Maximum violations printed; `--json` prints up to 100. */
const violationsMax = 10;

/** Maximum length of a policy name or id in a violation line, in characters. */
const nameCharactersMax = 48;

/**
 * Formats the totals of a backtest as the text of its report.
 *
 * @param against the policy's name and the changed limits
 */
export const backtestText = (totals: Totals, against: string, screen: Screen): string =>
  [
    `${count(totals.incidents, "incident")} of ${count(totals.runs, "run")}, decided again.`,
    "",
    ...record(totals, screen),
    "",
    ...changeLines(totals, against, screen),
  ].join("\n");

const record = (totals: Totals, { columns, ink }: Screen): ReadonlyArray<string> => {
  const { other_version, same, unknown_policy, versions, violations } = totals;
  const formatLines = (text: string) => wrap(text, columns - 2);
  const verdict =
    violations === 0
      ? `${ink("good", "✓")} The record holds: every stored incident, decided again by its own policy, gives its stored decision (${same} of ${totals.incidents}).`
      : `${ink("bad", "✗")} The record does not hold: ${count(violations, "stored decision")} cannot be reproduced from the stored facts (${same} of ${totals.incidents} can).`;
  return [
    ...formatLines(verdict),
    ...(other_version === 0
      ? []
      : formatLines(
          `${ink("careful", "!")} ${count(other_version, "decision")} differ${other_version === 1 ? "s" : ""} because the version of the rules has changed since (then ${versions.join(", ")}).`,
        )),
    ...(unknown_policy === 0
      ? []
      : formatLines(
          `${ink("careful", "!")} ${count(unknown_policy, "incident")} ${unknown_policy === 1 ? "was" : "were"} decided by a custom policy, which this program does not know and cannot check.`,
        )),
    ...totals.violations_named.slice(0, violationsMax).map((violation) => violationLine(violation, ink)),
    ...(violations > violationsMax ? [`  and ${violations - violationsMax} more`] : []),
  ];
};

const violationLine = ({ again, incident, policy, policy_version, stored }: Violation, ink: Ink): string =>
  `  ${ink("strong", cut(incident, nameCharactersMax))}: stored ${decisionWords(stored)}, again ${decisionWords(again)} (policy ${cut(policy, nameCharactersMax)}, version ${policy_version})`;

const changeLines = (totals: Totals, against: string, screen: Screen): ReadonlyArray<string> => {
  const { changed, groups, incidents } = totals;
  if (changed === 0) return [`With ${against}, nothing would change.`];
  const listed = groups.slice(0, groupsMax);
  return [
    `With ${against}, ${changed} of ${count(incidents, "decision")} would change:`,
    ...listed.flatMap((group) => ["", ...groupLines(group, screen)]),
    ...(groups.length > listed.length ? ["", `and ${count(groups.length - listed.length, "smaller group")}`] : []),
    "",
    screen.ink("strong", "Consequences of the change"),
    ...consequences.map((consequence) => totalLine(consequence, totals.consequences[consequence], screen.ink)),
  ];
};

const groupLines = (
  { before, consequences: of, examples, incidents, now }: Group,
  screen: Screen,
): ReadonlyArray<string> => {
  const { ink } = screen;
  const meant = consequences
    .filter((consequence) => of[consequence] > 0)
    .map((consequence) => ink(sentences[consequence].tone, `${of[consequence]} ${sentences[consequence].short}`));
  return [
    `${ink("strong", String(incidents).padStart(6))}  ${colourDecision(before, ink)}`,
    `     →  ${colourDecision(now, ink)}`,
    ...(meant.length === 0 ? [] : [`        ${meant.join(", ")}`]),
    `        ${ink("quiet", cut(`runs show ${examples.map(quoteForShell).join(" · ")}`, screen.columns - 8))}`,
  ];
};

const colourDecision = (decision: DecisionSummary, ink: Ink): string =>
  ink(tones[decision.action], decisionWords(decision));

const decisionWords = ({ action, mode, rule }: DecisionSummary): string =>
  `${action}${mode === undefined ? "" : ` (${mode})`} by ${rule}`;

const tones: Readonly<Record<DecisionSummary["action"], Tone>> = {
  auto_retry_once: "good",
  ask_user: "careful",
  do_not_retry: "quiet",
};

const sentences: Readonly<
  Record<Consequence, { readonly short: string; readonly long: string; readonly tone: Tone; readonly risk: boolean }>
> = {
  tool_may_repeat: {
    short: "replayed although a tool may have run",
    long: "replays although a tool that changes something may have run",
    tone: "bad",
    risk: true,
  },
  text_twice: {
    short: "replayed although text was shown",
    long: "replays after text was shown: the text is withdrawn and generated again",
    tone: "careful",
    risk: true,
  },
  question_saved: { short: "without the question", long: "questions saved", tone: "good", risk: false },
  question_added: { short: "with a question", long: "questions added", tone: "careful", risk: false },
  recovery_added: { short: "retried unasked", long: "retries added", tone: "good", risk: false },
  recovery_lost: { short: "no longer retried", long: "retries lost", tone: "careful", risk: false },
};

/** Formats the total of a consequence. A risk of zero is green, because that is good. */
const totalLine = (consequence: Consequence, number: number, ink: Ink): string => {
  const { long, risk, tone } = sentences[consequence];
  const shown = number === 0 ? (risk ? "good" : "quiet") : tone;
  return `  ${ink(shown, String(number).padStart(6))}  ${long}`;
};

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
