/**
 * Tells one attempt: how far its facts grew, what its calls did, how it broke, and what was decided by which rule.
 */
import { type AttemptFacts, Delivery, Progress, Shown, ToolPhase, type ToolRow } from "../../domain/AttemptFacts.ts";
import { Evidence, type RunIncident } from "../../domain/RunIncident.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import { type Html, html, label, none } from "./Html.ts";
import { type QuestionPlace, questionBox } from "./QuestionBox.ts";
import type { Bar } from "./Timeline.ts";
import { actions, counts, effects, event, failure, lasting, phases, retries, sent, statuses } from "./Words.ts";

/** Most calls of an attempt that are listed; what is more is counted. */
const callsMax = 40;

/** The story of an attempt. */
export const attemptStory = (record: RunRecord, bar: Bar, place: QuestionPlace): Html => {
  const { attempt, facts } = bar.record;
  const { tone, word } = ends[bar.end];
  const open = openQuestion(record);
  return html`<li class="attempt ${tone}" id="attempt-${attempt}">
    <header><h3>Attempt ${attempt} <small>${sent(bar.record)}</small></h3><p><span class="chip ${tone}">${word}</span> <span class="took">${lasting(bar.to - bar.from)}</span></p></header>
    ${meters(facts)}
    <p class="counts">${[...counts(facts), ...(facts.terminal_seen ? ["end marker seen"] : [])].join(" · ")}</p>
    ${facts.tools.length > 0 && ledger(facts.tools)}
    ${anchors(bar)}
    ${bar.incidents.map((incident, index) => breakBox(record, incident, index > 0, incident.id === open?.incident))}
    ${bar.questions.map((question) =>
      questionBox(
        record,
        question,
        bar.incidents.find(({ id }) => id === question.incident),
        question === open,
        place,
      ),
    )}
  </li>`;
};

const ends = {
  broke: { word: "broke", tone: "bad" },
  completed: { word: "completed", tone: "good" },
  running: { word: "running", tone: "run" },
  unknown: { word: "no end on record", tone: "quiet" },
} as const;

/** How far each fact grew: it never shrinks within an attempt. */
const meters = ({ delivery, progress, shown }: AttemptFacts): Html => html`<dl class="meters">
    ${meter("Request", Delivery.literals, delivery)}${meter("Answer", Progress.literals, progress)}${meter("Shown", Shown.literals, shown)}
  </dl>`;

const meter = (name: string, steps: ReadonlyArray<string>, value: string): Html => {
  const reached = steps.indexOf(value);
  return html`<div><dt>${name}</dt><dd><span class="steps" aria-hidden="true">${steps.slice(1).map((_, index) => html`<i class="${index < reached ? "on" : "off"}"></i>`)}</span>${value.replaceAll("_", " ")}</dd></div>`;
};

const ledger = (tools: ReadonlyArray<ToolRow>): Html =>
  html`<ul class="ledger" aria-label="Calls">${tools
    .slice(0, callsMax)
    .map(callRow)}${tools.length > callsMax && html`<li>and ${tools.length - callsMax} more</li>`}</ul>`;

const callRow = ({ call, effect, executor, phase, tool }: ToolRow): Html => {
  const steps = executor === "provider" ? providerPhases : runtimePhases;
  const reached = steps.indexOf(phase === "outcome_unknown" ? "dispatched" : phase);
  return html`<li class="${phaseTones[phase] ?? "quiet"}"><span class="tool">${label(tool)}</span> <span class="call">${call}</span><span class="effect">${effects[effect]}${executor === "provider" && ", run by the provider"}</span><span class="phase"><span class="steps" aria-hidden="true">${steps.map((_, index) => html`<i class="${index <= reached ? "on" : "off"}"></i>`)}</span>${phases[phase]}</span></li>`;
};

const runtimePhases: ReadonlyArray<string> = ToolPhase.literals.filter((it) => it !== "outcome_unknown");
const providerPhases: ReadonlyArray<string> = ["input_started", "input_complete", "settled"];

const phaseTones: Readonly<Record<string, string>> = { settled: "good", dispatched: "ask", outcome_unknown: "bad" };

/** What is on record of the attempt, at its time: the anchors that facts are judged by. */
const anchors = ({ evidence, from }: Bar): Html =>
  evidence.length === 0
    ? none
    : html`<ol class="anchors" aria-label="What is on record">${evidence.map(
        (it) =>
          html`<li class="${loud.includes(it.event) ? "loud" : "low"}"><time>+${lasting(Math.max(0, it.at_ms - from))}</time> ${event(it)}${it.detail !== undefined && html`: ${label(it.detail.replaceAll("_", " "))}`}</li>`,
      )}</ol>`;

const loud: ReadonlyArray<string> = Evidence.fields.event.literals.filter(
  (it) => it === "failure" || it === "watchdog" || it === "abandoned" || it === "late_part_refused",
);

/** The break, the decision and its rule. */
const breakBox = (record: RunRecord, incident: RunIncident, anew: boolean, waits: boolean): Html => {
  const { decision, message, policy, status } = incident;
  const { tone, word } = actions[decision.action];
  const mode =
    decision.action === "auto_retry_once" && decision.mode !== undefined
      ? html` <span class="mode">${retries[decision.mode]}${decision.delay_ms > 0 && ` after ${lasting(decision.delay_ms)}`}</span>`
      : none;
  return html`<section class="break ${tone}" aria-label="${anew ? "Decided anew" : "The break and its decision"}">
    <p class="failure"><b>${anew ? "Decided anew" : "It broke"}</b> <bdi>${failure(incident.failure)}</bdi></p>
    <p class="sentence">${message}</p>
    <p class="decision"><span class="chip ${tone}">${word}</span> <code title="The rule that decided">${decision.rule}</code>${mode}</p>
    <p class="because"><span>because</span> ${decision.because.map((fact) => html`<code>${fact}</code> `)}</p>
    <p class="hint">${waits ? "It waits for an answer." : statuses[status]}${policy !== record.policy && record.policy !== undefined && html` Policy ${label(policy)}.`}</p>
  </section>`;
};
