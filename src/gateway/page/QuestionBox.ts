/**
 * Draws a question: what happened, what may be answered, and what each answer does; or what it was answered.
 */

import type { Choice } from "../../domain/Decision.ts";
import type { Prices } from "../../domain/Prices.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import type { Absence } from "../../story/AbsenceWords.ts";
import { amounts } from "../../story/FactWords.ts";
import { choiceDoes } from "../../story/FailureWords.ts";
import { type OpenQuestion, type RepeatableCalls, repeatsText } from "../../story/Question.ts";
import type { AnswerStory } from "../../story/RunStory.ts";
import { refusalText } from "../../story/SeamWords.ts";
import { lasting, momentUtc, relative } from "../../story/Times.ts";
import { capital, choices, phases } from "../../story/Words.ts";
import { type Html, html, label, none } from "./Html.ts";

/** Where a question stands. */
export interface QuestionPlace {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** Whether it can be answered from here; a file can only show it. */
  readonly answers: boolean;
  /** Whether what happened is told here; beside the break it stands already. */
  readonly tells: boolean;
  /** What models cost, where that is known. */
  readonly prices?: Prices;
  /** The time in which the run goes on without its client, where it does. */
  readonly absence?: Absence;
}

/** A question that is open, as one of many: with everything that tells it from another one of the same model. */
export const questionCard = (record: RunRecord, open: OpenQuestion, now: number): Html => {
  const { provider, run_id } = record;
  return html`<article class="card" id="question-${run_id}" aria-labelledby="asks-${run_id}"><h3 id="asks-${run_id}"><span>${label(provider.model ?? provider.id)}</span> <a class="mono" href="./?run=${encodeURIComponent(run_id)}">${label(run_id)}</a></h3>
    ${questionBox(record, open, { now, answers: true, tells: true })}</article>`;
};

/** A question that is open. */
export const questionBox = (record: RunRecord, open: OpenQuestion, place: QuestionPlace): Html => {
  const { message, question, refusal, repeats } = open;
  const isRisky = (choice: Choice) => choice === "retry" && repeats !== undefined;
  return html`<section class="question" aria-label="Question ${question.revision} of run ${record.run_id}">
    ${!place.tells && html`<h3>Your answer is needed</h3>`}
    ${asks(record, open, place.now)}
    ${place.tells && html`<p class="sentence">${message}</p>`}
    ${place.tells && refusal !== undefined && html`<p class="refusal">${refusalText(refusal)}</p>`}
    <ul class="choices">${inOrder(question.choices, isRisky).map((choice) => {
      const risk = isRisky(choice) ? repeats : undefined;
      return html`<li>${place.answers ? button(record, open, choice, risk) : html`<b>${choices[choice].title}</b>`}
        <span id="does-${record.run_id}-${choice}">${capital(choiceDoes(choice, open.incident))}.${risk !== undefined && html` <em class="risk">May run again: ${repeatsList(risk)}</em>`}</span></li>`;
    })}</ul>
  </section>`;
};

/** When it was asked, until when, and which calls it is about. */
const asks = (record: RunRecord, open: OpenQuestion, now: number): Html => {
  const { incident, question } = open;
  const at = question.asked_at ?? incident?.at;
  const calls = incident?.decision.calls ?? [];
  const had = incident === undefined ? [] : amounts(incident.facts);
  return html`<dl class="asks">
      ${at !== undefined && html`<div><dt>Asked</dt><dd><time title="${momentUtc(at)}">${relative(at, now)}</time>, ${lasting(Math.max(0, at - record.started_at))} into the run</dd></div>`}
      <div><dt>${question.expires_at === undefined ? "Open" : "Expires"}</dt><dd${soon(question.expires_at, now) && html` class="soon"`}>${
        question.expires_at === undefined
          ? "until a person answers"
          : html`<time title="${momentUtc(question.expires_at)}">${relative(question.expires_at, now)}</time>, then it takes “${choices[open.unattended].title}”`
      }</dd></div>
      ${calls.length > 0 && html`<div><dt>Calls</dt><dd>${calls.slice(0, callsMax).map(({ call, phase, tool }, index) => html`${index > 0 && ", "}${label(tool)} <span class="mono">${call}</span> ${phases[phase].now}`)}${calls.length > callsMax && ` and ${calls.length - callsMax} more`}</dd></div>`}
      ${had.length > 0 && html`<div><dt>Had come</dt><dd>${had.join(" · ")}</dd></div>`}
    </dl>`;
};

/** Most calls that a question names one by one. */
const callsMax = 6;

/** A question that expires within so many milliseconds is marked. */
const soonMs = 120_000;

const soon = (expires: number | undefined, now: number): boolean => expires !== undefined && expires - now < soonMs;

/** A choice that may repeat something stands behind those that cannot, and the end last. */
const inOrder = (offered: ReadonlyArray<Choice>, isRisky: (choice: Choice) => boolean): ReadonlyArray<Choice> => {
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
      : html` data-of="${provider.model ?? provider.id}, run ${run_id}" data-confirm="${repeatsText(risk)}"`
  }>${choices[choice].title}</button>`;

/** A question that is not open any more, and its answer. */
export const answerLine = ({ by, question: { answer, choices: offered, revision } }: AnswerStory): Html =>
  html`<p class="answered"><b>Question ${revision}</b> offered ${offered.map((it) => choices[it].title).join(", ")}. ${
    answer === undefined ? "It was not answered." : html`${by} said <b>${choices[answer].title}</b>.`
  }</p>`;

/** The calls that may run again, each label apart from the direction of the text around it. */
const repeatsList = ({ more, named }: RepeatableCalls): Html =>
  html`${named.map(({ call, tool }, index) => html`${index > 0 && ", "}${tool === undefined ? call : html`${label(tool)} (${call})`}`)}${more > 0 && ` and ${more} more`}`;
