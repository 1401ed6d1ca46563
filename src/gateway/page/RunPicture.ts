/**
 * Renders one run, for the page and for `runs show --html`. The result depends only on the run's record and the given time.
 */
import { none as noPrices, type Prices } from "../../domain/Prices.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { type Absence, absenceStory } from "../../story/AbsenceWords.ts";
import { waitOf } from "../../story/PathWords.ts";
import { openQuestionOf } from "../../story/Question.ts";
import { runStatuses } from "../../story/RunStatus.ts";
import { type CallStory, type RunStory, runStory } from "../../story/RunStory.ts";
import { tokensOf, tokenWords } from "../../story/RunTokens.ts";
import { formatLasting, formatRelative, formatTimes, formatUtc } from "../../story/Times.ts";
import { capitalize } from "../../story/Words.ts";
import { attemptView } from "./AttemptView.ts";
import { timelineOf } from "./geometry/Timeline.ts";
import { type Html, html, label, none } from "./Html.ts";
import { runAddress } from "./Overview.ts";
import { type QuestionPlace, questionBox } from "./QuestionBox.ts";
import { textFigures } from "./TextFigure.ts";
import { timelineFigure } from "./TimelineFigure.ts";

/**
 * Renders a run.
 *
 * @param record the recorded run: facts, lengths and labels, but no text of the response
 * @param place the current time, and if the question can be answered here
 * @param link builds the address of another run; undefined in a file
 */
export const runPicture = (record: RunRecord, place: QuestionPlace, link?: (runId: string) => string): Html => {
  const story = runStory(record, place.now);
  return html`<article class="run" data-state="${record.state}">
    ${head(record, story, place, link)}
    ${orphanedQuestion(record, story, place)}
    <section aria-label="Timeline" class="card">${timelineFigure(timelineOf(story))}</section>
    ${story.texts.length > 0 && html`<section aria-label="Text" class="card"><h2>Where the text continues</h2>${textFigures(story)}</section>`}
    <h2>What happened</h2>
    ${omittedNote(story)}
    <ol class="attempts">${story.attempts.map((attempt) => attemptView(record, attempt, place))}</ol>
    ${callWords(story)}
  </article>`;
};

const head = (
  record: RunRecord,
  { lasted, status, unknown, why }: RunStory,
  { absence, now, prices }: QuestionPlace,
  link: ((runId: string) => string) | undefined,
): Html => {
  const { end, policy, provider, resumes, retry_of, run_id, started_at, waited_ms } = record;
  const wait = waitOf(record, now);
  const alone = record.state === "live" ? absenceStory(absence, now) : undefined;
  const spent = tokenWords(tokensOf(record, prices));
  const { mark, title, tone, word } = runStatuses[status];
  return html`<header class="run-head">
    <h1><span class="model">${label(provider.model ?? provider.id)}</span> <span class="chip ${tone}"${end === undefined && html` title="${title}"`}>${mark} ${word}</span></h1>
    <dl class="facts">
      <div><dt>Run</dt><dd class="mono">${label(run_id)}</dd></div>
      <div><dt>Provider</dt><dd>${label(provider.id)}</dd></div>
      <div><dt>Started</dt><dd>${formatUtc(started_at)} <small>${formatRelative(started_at, now)}</small></dd></div>
      <div><dt>${end === undefined ? "Since then" : "Took"}</dt><dd>${formatLasting(lasted)}</dd></div>
      ${spent !== undefined && html`<div><dt>Tokens</dt><dd>${spent}</dd></div>`}
      ${end !== undefined && html`<div><dt>End</dt><dd>${status === "cancelled" ? status : html`${end.state} <code>${end.reason}</code>`}${why !== undefined && html` <small>${why}</small>`}</dd></div>`}
      ${unknown !== undefined && html`<div><dt>Not known</dt><dd>${label(capitalize(unknown))}.</dd></div>`}
      ${policy !== undefined && policy !== "default" && html`<div><dt>Policy</dt><dd>${label(policy)}</dd></div>`}
      ${wait !== undefined && html`<div><dt>Now</dt><dd><b class="waits">${wait.said}</b> <small>${wait.times}</small></dd></div>`}
      ${alone !== undefined && html`<div><dt>Client</dt><dd><b class="waits">${alone.said}</b> <small>${alone.times}</small></dd></div>`}
      ${(waited_ms ?? 0) > 0 && html`<div><dt>Waited</dt><dd>${formatLasting(waited_ms ?? 0)} <small>until the provider could be reached, or for its announced cooldown</small></dd></div>`}
      ${resumes > 0 && html`<div><dt>Taken over</dt><dd>${formatTimes(resumes)}</dd></div>`}
      ${retry_of !== undefined && html`<div><dt>Client’s retry of</dt><dd class="mono">${link === undefined ? label(retry_of) : html`<a href="${link(retry_of)}">${label(retry_of)}</a>`}</dd></div>`}
    </dl>
  </header>`;
};

/** Renders a question separately if the record no longer has its incident or attempt. */
const orphanedQuestion = (record: RunRecord, { attempts }: RunStory, place: QuestionPlace): Html => {
  const open = openQuestionOf(record);
  return open === undefined || attempts.some(({ asks }) => asks)
    ? none
    : questionBox(record, open, { ...place, tells: true });
};

const omittedNote = ({ omitted }: RunStory): Html =>
  omitted.length === 0 ? none : html`<p class="hint">Not kept: ${omitted.join(", ")}.</p>`;

/** Lists the calls with an unknown outcome that an answer has settled, and who answered. */
const callWords = ({ calls }: RunStory): Html => {
  const settled = calls.flatMap(callWord);
  return settled.length === 0
    ? none
    : html`<section class="card"><h2>Calls that were settled by an answer</h2><ul class="plain">${settled}</ul></section>`;
};

const callWord = ({ record: { attempt, call, tool }, word }: CallStory): ReadonlyArray<Html> =>
  word === undefined
    ? []
    : [html`<li>${label(tool)} (attempt ${attempt}, call ${call}): <b>${word.said}</b>, according to ${word.by}.</li>`];

/** Renders the button that cancels the run in its user's name, after a confirmation. */
const cancelButton = ({ provider, run_id }: RunRecord): Html =>
  html`<button type="button" class="cancel" id="cancel" data-cancel="${run_id}" data-of="${provider.model ?? provider.id}, run ${run_id}">Cancel run</button> · `;

/**
 * Renders the view of a run on the page, with its downloads.
 *
 * @param now wall clock, in milliseconds since the epoch
 * @param prices prices of models, if known
 * @param absence time for which the run continues without its client; undefined if the client is connected
 */
export const runView = (record: RunRecord, now: number, prices: Prices = noPrices, absence?: Absence): Html => {
  const id = encodeURIComponent(record.run_id);
  return html`<nav class="crumbs" aria-label="This run"><a href="./">← All runs</a><span>${record.state !== "ended" && cancelButton(record)}<a id="export" href="api/runs/${id}/export" download="run.json">Export (JSON)</a> · <a id="picture" href="picture.html?run=${id}" download="run.html">Save picture</a></span></nav>
    ${runPicture(record, { now, answers: true, tells: false, prices, ...(absence === undefined ? {} : { absence }) }, runAddress)}`;
};
