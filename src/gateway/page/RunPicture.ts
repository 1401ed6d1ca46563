/**
 * Draws one run: the picture that the page shows and that `runs show --html` writes. A pure function of its record.
 */
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import { attemptStory } from "./AttemptStory.ts";
import { type Html, html, label, none } from "./Html.ts";
import { type QuestionPlace, questionBox } from "./QuestionBox.ts";
import { timelineOf } from "./Timeline.ts";
import { timelineFigure } from "./TimelineFigure.ts";
import { lasting, moment, relative, standing } from "./Words.ts";

/**
 * The picture of a run.
 *
 * @param record what the recorder gives; it has facts, lengths and labels, never text
 * @param place when it is drawn, and whether its question can be answered there
 * @param link where another run stands; none in a file
 */
export const runPicture = (record: RunRecord, place: QuestionPlace, link?: (runId: string) => string): Html => {
  const timeline = timelineOf(record, place.now);
  return html`<article class="run" data-state="${record.state}">
    ${head(record, place, link)}
    ${orphanedQuestion(record, place)}
    <section aria-label="Timeline" class="card">${timelineFigure(timeline)}</section>
    <h2>What happened</h2>
    ${omitted(record)}
    <ol class="attempts">${timeline.bars.map((bar) => attemptStory(record, bar, place))}</ol>
    ${verdicts(record)}
  </article>`;
};

const head = (record: RunRecord, { now }: QuestionPlace, link: ((runId: string) => string) | undefined): Html => {
  const { end, policy, provider, resumes, retry_of, run_id, started_at } = record;
  const { mark, tone, word } = standing(record);
  const took = (end?.at ?? now) - started_at;
  return html`<header class="run-head">
    <h1><span class="model">${label(provider.model ?? provider.id)}</span> <span class="chip ${tone}">${mark} ${word}</span></h1>
    <dl class="facts">
      <div><dt>Run</dt><dd class="mono">${label(run_id)}</dd></div>
      <div><dt>Provider</dt><dd>${label(provider.id)}</dd></div>
      <div><dt>Started</dt><dd>${moment(started_at)} <small>${relative(started_at, now)}</small></dd></div>
      <div><dt>${end === undefined ? "Since then" : "Took"}</dt><dd>${lasting(Math.max(0, took))}</dd></div>
      ${end !== undefined && html`<div><dt>End</dt><dd>${end.state} <code>${end.reason}</code></dd></div>`}
      ${policy !== undefined && policy !== "default" && html`<div><dt>Policy</dt><dd>${label(policy)}</dd></div>`}
      ${resumes > 0 && html`<div><dt>Taken over</dt><dd>${resumes === 1 ? "once" : `${resumes} times`}</dd></div>`}
      ${retry_of !== undefined && html`<div><dt>Client’s retry of</dt><dd class="mono">${link === undefined ? label(retry_of) : html`<a href="${link(retry_of)}">${label(retry_of)}</a>`}</dd></div>`}
    </dl>
  </header>`;
};

/** A question whose incident or attempt the record has dropped is put all the same. */
const orphanedQuestion = (record: RunRecord, place: QuestionPlace): Html => {
  const open = openQuestion(record);
  const incident = record.incidents.find(({ id }) => id === open?.incident);
  const told = incident !== undefined && record.attempts.some(({ attempt }) => attempt === incident.attempt);
  return open === undefined || told ? none : questionBox(record, open, incident, true, { ...place, tells: true });
};

const omitted = ({ attempts_omitted, evidence, incidents_omitted }: RunRecord): Html => {
  const left = [
    ...(attempts_omitted === 0 ? [] : [`${attempts_omitted} earlier attempts`]),
    ...(incidents_omitted === 0 ? [] : [`${incidents_omitted} earlier incidents`]),
    ...(evidence.omitted === 0 ? [] : [`${evidence.omitted} records of evidence`]),
  ];
  return left.length === 0 ? none : html`<p class="hint">Not kept: ${left.join(", ")}.</p>`;
};

/** Calls whose outcome nobody knew, and who settled them. */
const verdicts = ({ calls }: RunRecord): Html => {
  const judged = calls.filter(({ verdict }) => verdict !== undefined);
  if (judged.length === 0) return none;
  return html`<section class="card"><h2>Calls that were settled by word</h2><ul class="plain">${judged.map(
    ({ attempt, call, tool, verdict, verdict_by }) =>
      html`<li>${label(tool)} (attempt ${attempt}, call ${call}): <b>${verdict === "it_ran" ? "it ran" : "it did not run"}</b>, says ${verdict_by === "verify" ? "the tool itself" : "a person"}.</li>`,
  )}</ul></section>`;
};
