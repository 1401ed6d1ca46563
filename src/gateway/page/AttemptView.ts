/**
 * Renders one attempt: its facts, its calls, its failure, and the decision with the rule behind it.
 */

import * as Schema from "effect/Schema";
import { type AttemptFacts, ToolPhase, type ToolRow } from "../../domain/AttemptFacts.ts";
import { Evidence } from "../../domain/RunIncident.ts";
import { SeamFault } from "../../domain/SeamWords.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { type Grown, growth } from "../../story/FactWords.ts";
import { openQuestionOf } from "../../story/Question.ts";
import type { AttemptStory, IncidentStory } from "../../story/RunStory.ts";
import { refusalText } from "../../story/SeamWords.ts";
import { formatLasting } from "../../story/Times.ts";
import { effects, events, phases } from "../../story/Words.ts";
import { type Html, html, label, none } from "./Html.ts";
import { answerLine, type QuestionPlace, questionBox } from "./QuestionBox.ts";

/** Maximum number of calls listed per attempt. The others are only counted. */
const callsMax = 40;

/** Renders an attempt, with the open question if this attempt has caused it. */
export const attemptView = (record: RunRecord, story: AttemptStory, place: QuestionPlace): Html => {
  const { facts } = story.record;
  const { tone, word } = story.said;
  const open = story.asks ? openQuestionOf(record) : undefined;
  return html`<li class="attempt ${tone}" id="attempt-${story.record.attempt}">
    <header><h3>Attempt ${story.record.attempt} <small>${story.sent}</small></h3><p><span class="chip ${tone}">${word}</span> <span class="took">${formatLasting(story.to - story.from)}</span></p></header>
    ${meters(facts)}
    <p class="counts">${story.amounts.join(" · ")}</p>
    ${story.seam !== undefined && html`<p class="seam ${story.seam.proven ? "proven" : "open"}">${story.seam.said}</p>`}
    ${facts.tools.length > 0 && ledger(facts.tools)}
    ${anchors(story)}
    ${story.incidents.map(breakBox)}
    ${story.answers.map(answerLine)}
    ${open !== undefined && questionBox(record, open, place)}
  </li>`;
};

/** Shows each fact as a level. Levels only grow within an attempt. */
const meters = (facts: AttemptFacts): Html => html`<dl class="meters">
    ${growth(facts).map(meter)}
  </dl>`;

const meter = ({ name, reached, steps, value }: Grown): Html =>
  html`<div><dt>${name}</dt><dd><span class="steps" aria-hidden="true">${Array.from({ length: steps }, (_, index) => html`<i class="${index < reached ? "on" : "off"}"></i>`)}</span>${value}</dd></div>`;

const ledger = (tools: ReadonlyArray<ToolRow>): Html =>
  html`<ul class="ledger" aria-label="Calls">${tools
    .slice(0, callsMax)
    .map(callRow)}${tools.length > callsMax && html`<li>and ${tools.length - callsMax} more</li>`}</ul>`;

const callRow = ({ call, effect, executor, phase, tool }: ToolRow): Html => {
  const steps = executor === "provider" ? providerPhases : runtimePhases;
  const reached = steps.indexOf(phase === "outcome_unknown" ? "dispatched" : phase);
  return html`<li class="${phases[phase].tone}"><span class="tool">${label(tool)}</span> <span class="call">${call}</span><span class="effect">${effects[effect]}${executor === "provider" && ", run by the provider"}</span><span class="phase"><span class="steps" aria-hidden="true">${steps.map((_, index) => html`<i class="${index <= reached ? "on" : "off"}"></i>`)}</span>${phases[phase].now}</span></li>`;
};

const runtimePhases: ReadonlyArray<string> = ToolPhase.literals.filter((it) => it !== "outcome_unknown");
const providerPhases: ReadonlyArray<string> = ["input_started", "input_complete", "settled"];

/** Lists the recorded evidence of the attempt, each item with its time. */
const anchors = ({ evidence, from }: AttemptStory): Html =>
  evidence.length === 0
    ? none
    : html`<ol class="anchors" aria-label="What is on record">${evidence.map(
        (it) =>
          html`<li class="${isLoud(it) ? "loud" : "low"}"><time>+${formatLasting(Math.max(0, it.at_ms - from))}</time> ${events[it.event]}${it.detail !== undefined && html`: ${label(it.detail.replaceAll("_", " "))}`}</li>`,
      )}</ol>`;

/** True for evidence of a failure. Such evidence is highlighted. */
const isLoud = ({ detail, event }: Evidence): boolean =>
  loud.includes(event) || (event === "seam" && detail !== undefined && isFault(detail));

const isFault = Schema.is(SeamFault);

const loud: ReadonlyArray<string> = Evidence.fields.event.literals.filter(
  (it) => it === "failure" || it === "watchdog" || it === "abandoned" || it === "late_part_refused",
);

const breakBox = ({ action, failure, incident, next, policy, became, refusal, title }: IncidentStory): Html =>
  html`<section class="break ${action.tone}" aria-label="${title}">
    <p class="failure"><b>${title}</b> <bdi>${failure}</bdi></p>
    <p class="sentence">${incident.message}</p>
    ${refusal !== undefined && html`<p class="refusal"><code>${refusal.reason}</code> ${refusalText(refusal)}</p>`}
    <p class="decision"><span class="chip ${action.tone}">${action.word}</span> <code title="The rule that decided">${incident.decision.rule}</code>${next !== undefined && html` <span class="mode">${next}</span>`}</p>
    <p class="because"><span>because</span> ${incident.decision.because.map((fact) => html`<code>${fact}</code> `)}</p>
    <p class="hint">${became}${policy !== undefined && html` Policy ${label(policy)}.`}</p>
  </section>`;
