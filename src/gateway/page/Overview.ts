/**
 * Draws what runs and ran: open questions first, then totals, then runs, newest first.
 */
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { openQuestionOf } from "../../story/Question.ts";
import { runStatuses } from "../../story/RunStatus.ts";
import { runStory } from "../../story/RunStory.ts";
import { attemptsOf, lastRuleOf } from "../../story/RunSummary.ts";
import { counted, lasting, momentUtc, relative } from "../../story/Times.ts";
import type { Totals } from "../api/Totals.ts";
import { type Html, html, label, none } from "./Html.ts";
import { questionBox } from "./QuestionBox.ts";
import { timelineOf } from "./Timeline.ts";
import { sparkline } from "./TimelineFigure.ts";
import { totalsBoard } from "./TotalsBoard.ts";

/** What a list of runs may be narrowed to. */
export const filters = ["all", "broken", "asking", "live", "parked", "ended"] as const;
/** One of `filters`. */
export type Filter = (typeof filters)[number];

/** What the overview shows. */
export interface OverviewModel {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  readonly totals: Totals;
  /** Runs with an open question, newest first. */
  readonly asking: ReadonlyArray<RunRecord>;
  /** A page of runs, newest first. */
  readonly runs: ReadonlyArray<RunRecord>;
  readonly filter: Filter;
  /** The run that this page begins behind; left out on the first page. */
  readonly before?: string;
  /** Whether there are older runs. */
  readonly more: boolean;
}

/** Most questions that are put out at once; the list has all of them. */
export const questionsMax = 10;

/** The overview. */
export const overview = (model: OverviewModel): Html => html`
  ${model.before === undefined && questions(model)}
  ${totalsBoard(model.totals)}
  <section aria-labelledby="runs-title"><h2 id="runs-title">Runs</h2>
    <nav class="filters" aria-label="Which runs">${filters.map((it) => filterLink(it, model.filter))}</nav>
    ${model.runs.length === 0 ? html`<p class="card empty">${empty[model.filter]}</p>` : html`<ul class="runs">${model.runs.map((run) => row(run, model.now))}</ul>`}
    ${model.more && html`<p class="more"><a href="${address({ filter: model.filter, before: model.runs.at(-1)?.run_id })}">Older runs</a></p>`}
  </section>`;

/** The address of a run's picture, relative to the page. */
export const runAddress = (runId: string): string => `./?run=${encodeURIComponent(runId)}`;

const address = ({ before, filter }: { readonly filter: Filter; readonly before: string | undefined }): string => {
  const query = [
    ...(filter === "all" ? [] : [`filter=${filter}`]),
    ...(before === undefined ? [] : [`before=${encodeURIComponent(before)}`]),
  ].join("&");
  return query === "" ? "./" : `./?${query}`;
};

const titles: Readonly<Record<Filter, string>> = {
  all: "All",
  broken: "Broken",
  asking: "Asking",
  live: "Running",
  parked: "Waiting",
  ended: "Ended",
};

const empty: Readonly<Record<Filter, string>> = {
  all: "No run is on record yet. Send a request through the gateway and it appears here.",
  broken: "No run has broken.",
  asking: "No question is open.",
  live: "No run is under way.",
  parked: "No run waits to be taken up.",
  ended: "No run has ended yet.",
};

const filterLink = (filter: Filter, current: Filter): Html =>
  html`<a href="${address({ filter, before: undefined })}"${filter === current && html` aria-current="page"`}>${titles[filter]}</a>`;

const questions = ({ asking, now }: OverviewModel): Html => {
  if (asking.length === 0) return none;
  return html`<section aria-label="Open questions" class="asked">${asking.slice(0, questionsMax).map((record) => {
    const open = openQuestionOf(record);
    if (open === undefined) return none;
    return html`<div class="card" id="question-${record.run_id}"><h2>${label(record.provider.model ?? record.provider.id)} <small><a href="${runAddress(record.run_id)}">its picture</a> · ${relative(record.started_at, now)}</small></h2>${questionBox(record, open, { now, answers: true, tells: true })}</div>`;
  })}${asking.length > questionsMax && html`<p class="more"><a href="${address({ filter: "asking", before: undefined })}">More questions</a></p>`}</section>`;
};

const row = (record: RunRecord, now: number): Html => {
  const story = runStory(record, now);
  const { mark, title, tone, word } = runStatuses[story.status];
  const { provider, run_id, started_at } = record;
  const attempts = attemptsOf(record);
  const rule = lastRuleOf(record);
  return html`<li id="run-${run_id}"><a href="${runAddress(run_id)}">
    <span class="state"><span class="chip ${tone}"${record.end === undefined && html` title="${title}"`}>${mark} ${word}</span></span>
    <span class="who"><b>${label(provider.model ?? provider.id)}</b>${provider.model !== undefined && html` <small>${label(provider.id)}</small>`}</span>
    ${sparkline(timelineOf(story))}
    <span class="what">${attempts > 1 && html`${counted(attempts, "attempt")} · `}${lasting(story.lasted)}${rule !== undefined && html` · <code>${rule}</code>`}</span>
    <time class="when" title="${momentUtc(started_at)}">${relative(started_at, now)}</time>
  </a></li>`;
};
