/**
 * Draws a question: what happened, what may be answered, and what each answer does; or what it was answered.
 */
import type { Choice } from "../../domain/Decision.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { expiryOf, type OpenQuestion, type RepeatableCalls, repeatsText } from "../../story/Question.ts";
import type { AnswerStory } from "../../story/RunStory.ts";
import { capital, choices } from "../../story/Words.ts";
import { type Html, html, label, none } from "./Html.ts";

/** Where a question stands. */
export interface QuestionPlace {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** Whether it can be answered from here; a file can only show it. */
  readonly answers: boolean;
  /** Whether what happened is told here; beside the break it stands already. */
  readonly tells: boolean;
}

/** A question that is open. */
export const questionBox = (record: RunRecord, open: OpenQuestion, place: QuestionPlace): Html => {
  const { message, question, repeats } = open;
  const isRisky = (choice: Choice) => choice === "retry" && repeats !== undefined;
  return html`<section class="question" aria-label="Question ${question.revision} of run ${record.run_id}">
    <h3>Your answer is needed</h3>
    ${place.tells && html`<p class="sentence">${message}</p>`}
    <ul class="choices">${inOrder(question.choices, isRisky).map((choice) => {
      const risk = isRisky(choice) ? repeats : undefined;
      return html`<li>${place.answers ? button(record, open, choice, risk) : html`<b>${choices[choice].title}</b>`}
        <span>${capital(choices[choice].does)}.${risk !== undefined && html` <em class="risk">May run again: ${repeatsList(risk)}</em>`}</span></li>`;
    })}</ul>
    <p class="hint">${expiryOf(open, place.now, (choice) => `“${choices[choice].title}”`)}</p>
  </section>`;
};

/** A choice that may repeat something stands behind those that cannot, and the end last. */
const inOrder = (offered: ReadonlyArray<Choice>, isRisky: (choice: Choice) => boolean): ReadonlyArray<Choice> => {
  const rank = (choice: Choice) => (choice === "stop" ? 2 : isRisky(choice) ? 1 : 0);
  return offered.toSorted((a, b) => rank(a) - rank(b));
};

const button = (
  { run_id }: RunRecord,
  { question: { revision } }: OpenQuestion,
  choice: Choice,
  risk: RepeatableCalls | undefined,
): Html =>
  html`<button type="button" class="choice${risk !== undefined && " risky"}${choice === "stop" && " plain"}" id="answer-${run_id}-${choice}" data-run="${run_id}" data-revision="${revision}" data-choice="${choice}"${
    risk === undefined ? none : html` data-confirm="${repeatsText(risk)}"`
  }>${choices[choice].title}</button>`;

/** A question that is not open any more, and its answer. */
export const answerLine = ({ by, question: { answer, choices: offered, revision } }: AnswerStory): Html =>
  html`<p class="answered"><b>Question ${revision}</b> offered ${offered.map((it) => choices[it].title).join(", ")}. ${
    answer === undefined ? "It was not answered." : html`${by} said <b>${choices[answer].title}</b>.`
  }</p>`;

/** The calls that may run again, each label apart from the direction of the text around it. */
const repeatsList = ({ more, named }: RepeatableCalls): Html =>
  html`${named.map(({ call, tool }, index) => html`${index > 0 && ", "}${tool === undefined ? call : html`${label(tool)} (${call})`}`)}${more > 0 && ` and ${more} more`}`;
