/**
 * Puts a question: what happened, what may be answered, and what each answer does.
 */
import type { Choice } from "../../domain/Decision.ts";
import type { RunIncident } from "../../domain/RunIncident.ts";
import * as Repeats from "../../policy/Repeats.ts";
import type { QuestionRecord, RunRecord } from "../../recorder/RunRecord.ts";
import { type Html, html, label, none } from "./Html.ts";
import { choices, relative } from "./Words.ts";

/** Most calls that are named one by one. */
const namedMax = 6;

/** Where a question stands. */
export interface QuestionPlace {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  /** Whether it can be answered from here; a file can only show it. */
  readonly answers: boolean;
  /** Whether what happened is told here; beside the break it stands already. */
  readonly tells: boolean;
}

/**
 * A question that is open, or its answer.
 *
 * @param incident what it is about; undefined where the record has dropped it
 * @param open whether it is the run's open question
 */
export const questionBox = (
  record: RunRecord,
  question: QuestionRecord,
  incident: RunIncident | undefined,
  open: boolean,
  place: QuestionPlace,
): Html => {
  if (!open) return answeredBox(question);
  const unattended = question.default_choice ?? "stop";
  const expiry =
    question.expires_at === undefined
      ? "It stays open until somebody answers."
      : `Unanswered it takes “${choices[unattended].title}” ${relative(question.expires_at, place.now)}.`;
  const repeats = incident === undefined ? none : mayRepeat(incident);
  const risky = (choice: Choice) => choice === "retry" && incident !== undefined && Repeats.of(incident).length > 0;
  return html`<section class="question" aria-label="Question ${question.revision} of run ${record.run_id}">
    <h3>Your word is needed</h3>
    ${place.tells && html`<p class="sentence">${incident?.message ?? `The rule ${question.rule} asks.`}</p>`}
    <ul class="choices">${inOrder(question.choices, risky).map((choice) => {
      const asksTwice = risky(choice);
      return html`<li>${place.answers ? button(record, question, choice, asksTwice && incident !== undefined ? spokenRepeats(incident) : undefined) : html`<b>${choices[choice].title}</b>`}
        <span>${choices[choice].does}${asksTwice && html` <em class="risk">May run again: ${repeats}</em>`}</span></li>`;
    })}</ul>
    <p class="hint">${expiry}</p>
  </section>`;
};

/** What may repeat something stands behind what cannot, and the end last. */
const inOrder = (offered: ReadonlyArray<Choice>, risky: (choice: Choice) => boolean): ReadonlyArray<Choice> => {
  const rank = (choice: Choice) => (choice === "stop" ? 2 : risky(choice) ? 1 : 0);
  return offered.toSorted((a, b) => rank(a) - rank(b));
};

const button = (record: RunRecord, { revision }: QuestionRecord, choice: Choice, confirm: string | undefined): Html =>
  html`<button type="button" class="choice${confirm !== undefined && " risky"}${choice === "stop" && " plain"}" id="answer-${record.run_id}-${choice}" data-run="${record.run_id}" data-revision="${revision}" data-choice="${choice}"${
    confirm === undefined ? none : html` data-confirm="${confirm}"`
  }>${choices[choice].title}</button>`;

const answeredBox = ({ answer, answered_by, choices: offered, revision }: QuestionRecord): Html => {
  const who = { person: "A person", expiry: "Its expiry", program: "The program" }[answered_by ?? "program"];
  return html`<p class="answered"><b>Question ${revision}</b> offered ${offered.map((it) => choices[it].title).join(", ")}. ${
    answer === undefined ? "It was not answered." : html`${who} said <b>${choices[answer].title}</b>.`
  }</p>`;
};

/** What a repeat could run again. */
const mayRepeat = (incident: RunIncident): Html => {
  const { named, rest } = repeated(incident);
  return html`${named.map(({ call, tool }, index) => html`${index > 0 && ", "}${tool === undefined ? call : html`${label(tool)} (${call})`}`)}${rest > 0 && ` and ${rest} more`}`;
};

const spokenRepeats = (incident: RunIncident): string => {
  const { named, rest } = repeated(incident);
  const names = named.map(({ call, tool }) => (tool === undefined ? call : `${tool} (${call})`));
  return `${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
};

interface Repeated {
  readonly named: ReadonlyArray<{ readonly call: string; readonly tool: string | undefined }>;
  /** Those that are not named. */
  readonly rest: number;
}

const repeated = (incident: RunIncident): Repeated => {
  const all = Repeats.of(incident);
  const named = all.slice(0, namedMax).map((call) => ({
    call,
    tool: incident.decision.calls?.find((it) => it.call === call)?.tool,
  }));
  return { named, rest: all.length - named.length };
};
