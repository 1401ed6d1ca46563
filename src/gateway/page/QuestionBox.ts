/**
 * Renders a question: the incident and the choices with their effects, or the answer.
 */

import type { Choice } from "../../domain/Decision.ts";
import type { Prices } from "../../domain/Prices.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import type { Absence } from "../../story/AbsenceWords.ts";
import { amounts } from "../../story/FactWords.ts";
import { describeChoice } from "../../story/FailureWords.ts";
import { describeRepeats, type OpenQuestion, type RepeatableCalls } from "../../story/Question.ts";
import type { AnswerStory } from "../../story/RunStory.ts";
import { refusalText } from "../../story/SeamWords.ts";
import { formatLasting, formatRelative, formatUtc } from "../../story/Times.ts";
import { capitalize, choices, phases } from "../../story/Words.ts";
import { type Html, html, label, none } from "./Html.ts";

/** The context in which a question is rendered. */
export interface QuestionPlace {
  /** Wall clock, in milliseconds since the epoch. */
  readonly now: number;
  /** True if the question can be answered here. An exported file can only show it. */
  readonly answers: boolean;
  /** True to describe the incident. False next to the failure, where the description is already shown. */
  readonly tells: boolean;
  /** Prices of models, if known. */
  readonly prices?: Prices;
  /** Time for which the run continues without its client; undefined if the client is connected. */
  readonly absence?: Absence;
}

/** Renders an open question in a list, with its model and run. */
export const questionCard = (record: RunRecord, open: OpenQuestion, now: number): Html => {
  const { provider, run_id } = record;
  return html`<article class="card" id="question-${run_id}" aria-labelledby="asks-${run_id}"><h3 id="asks-${run_id}"><span>${label(provider.model ?? provider.id)}</span> <a class="mono" href="./?run=${encodeURIComponent(run_id)}">${label(run_id)}</a></h3>
    ${questionBox(record, open, { now, answers: true, tells: true })}</article>`;
};

/** Renders an open question with its choices. */
export const questionBox = (record: RunRecord, open: OpenQuestion, place: QuestionPlace): Html => {
  const { message, question, refusal, repeats } = open;
  const isRisky = (choice: Choice) => choice === "retry" && repeats !== undefined;
  return html`<section class="question" aria-label="Question ${question.revision} of run ${record.run_id}">
    ${!place.tells && html`<h3>Your answer is needed</h3>`}
    ${questionDetails(record, open, place.now)}
    ${place.tells && html`<p class="sentence">${message}</p>`}
    ${place.tells && refusal !== undefined && html`<p class="refusal">${refusalText(refusal)}</p>`}
    <ul class="choices">${sortChoices(question.choices, isRisky).map((choice) => {
      const risk = isRisky(choice) ? repeats : undefined;
      return html`<li>${place.answers ? button(record, open, choice, risk) : html`<b>${choices[choice].title}</b>`}
        <span id="does-${record.run_id}-${choice}">${capitalize(describeChoice(choice, open.incident))}.${risk !== undefined && html` <em class="risk">May run again: ${repeatList(risk)}</em>`}</span></li>`;
    })}</ul>
  </section>`;
};

/** Renders the times and the calls of a question. */
const questionDetails = (record: RunRecord, open: OpenQuestion, now: number): Html => {
  const { incident, question } = open;
  const at = question.asked_at ?? incident?.at;
  const calls = incident?.decision.calls ?? [];
  const had = incident === undefined ? [] : amounts(incident.facts);
  return html`<dl class="asks">
      ${at !== undefined && html`<div><dt>Asked</dt><dd><time title="${formatUtc(at)}">${formatRelative(at, now)}</time>, ${formatLasting(Math.max(0, at - record.started_at))} into the run</dd></div>`}
      <div><dt>${question.expires_at === undefined ? "Open" : "Expires"}</dt><dd${isSoon(question.expires_at, now) && html` class="soon"`}>${
        question.expires_at === undefined
          ? "until a person answers"
          : html`<time title="${formatUtc(question.expires_at)}">${formatRelative(question.expires_at, now)}</time>, then it chooses “${choices[open.unattended].title}”`
      }</dd></div>
      ${calls.length > 0 && html`<div><dt>Calls</dt><dd>${calls.slice(0, callsMax).map(({ call, phase, tool }, index) => html`${index > 0 && ", "}${label(tool)} <span class="mono">${call}</span> ${phases[phase].now}`)}${calls.length > callsMax && ` and ${calls.length - callsMax} more`}</dd></div>`}
      ${had.length > 0 && html`<div><dt>Received</dt><dd>${had.join(" · ")}</dd></div>`}
    </dl>`;
};

/** Maximum number of calls that a question lists. */
const callsMax = 6;

/** Remaining time below which a question is highlighted, in milliseconds. */
const soonMs = 120_000;

const isSoon = (expires: number | undefined, now: number): boolean => expires !== undefined && expires - now < soonMs;

/** Sorts choices: safe ones, then those that may run a call again, then `stop`. */
const sortChoices = (offered: ReadonlyArray<Choice>, isRisky: (choice: Choice) => boolean): ReadonlyArray<Choice> => {
  const rank = (choice: Choice) => (choice === "stop" ? 2 : isRisky(choice) ? 1 : 0);
  return offered.toSorted((a, b) => rank(a) - rank(b));
};

const button = (
  { provider, run_id }: RunRecord,
  { question: { revision } }: OpenQuestion,
  choice: Choice,
  risk: RepeatableCalls | undefined,
): Html =>
  html`<button type="button" class="choice${risk !== undefined && " risky"}${choice === "stop" && " plain"}" id="answer-${run_id}-${choice}" data-run="${run_id}" data-revision="${revision}" data-choice="${choice}" aria-describedby="asks-${run_id} does-${run_id}-${choice}"${
    risk === undefined
      ? none
      : html` data-of="${provider.model ?? provider.id}, run ${run_id}" data-confirm="${describeRepeats(risk)}"`
  }>${choices[choice].title}</button>`;

/** Renders a question that is closed, with its answer. */
export const answerLine = ({ by, question: { answer, choices: offered, revision } }: AnswerStory): Html =>
  html`<p class="answered"><b>Question ${revision}</b> offered ${offered.map((it) => choices[it].title).join(", ")}. ${
    answer === undefined ? "It was not answered." : html`${by} said <b>${choices[answer].title}</b>.`
  }</p>`;

/** Lists the calls that may run again, each label isolated from the direction of the surrounding text. */
const repeatList = ({ more, named }: RepeatableCalls): Html =>
  html`${named.map(({ call, tool }, index) => html`${index > 0 && ", "}${tool === undefined ? call : html`${label(tool)} (${call})`}`)}${more > 0 && ` and ${more} more`}`;
