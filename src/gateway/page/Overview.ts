/**
 * Renders the overview: totals, then open questions with the most urgent first, then runs with the newest first.
 */
import { Result } from "effect";
import type { PathStatus } from "../../paths/Paths.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { type Absence, absenceStory } from "../../story/AbsenceWords.ts";
import { cooldownWords, describeDown, pathStanding, pathStandings, waitOf } from "../../story/PathWords.ts";
import { type OpenQuestion, openQuestionOf } from "../../story/Question.ts";
import { runStatuses } from "../../story/RunStatus.ts";
import { runStory } from "../../story/RunStory.ts";
import { attemptsOf, lastRuleOf } from "../../story/RunSummary.ts";
import { formatCount, formatLasting, formatRelative, formatUtc, groupDigits } from "../../story/Times.ts";
import type { ApiInvalid } from "../api/Api.ts";
import { isDisturbed, sortPaths } from "../api/PathList.ts";
import { type Found, scannedRunsMax } from "../api/RunSearch.ts";
import type { Totals } from "../api/Totals.ts";
import { timelineOf } from "./geometry/Timeline.ts";
import { type Html, html, label, none } from "./Html.ts";
import { questionCard } from "./QuestionBox.ts";
import { type Asked, type Filter, filters, isNarrowed, listAddress, searchForm } from "./SearchForm.ts";
import { sparkline } from "./TimelineFigure.ts";
import { totalsTables, totalsTiles } from "./TotalsBoard.ts";

/** The data that the overview shows. */
export interface OverviewModel {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  readonly totals: Totals;
  /** Paths that this process knows. */
  readonly paths: ReadonlyArray<PathStatus>;
  /** Runs that continue without their client, by id. */
  readonly absences: ReadonlyMap<string, Absence>;
  /** Runs with an open question. */
  readonly asking: ReadonlyArray<RunRecord>;
  /** True if there are more open questions than were read. */
  readonly asksMore: boolean;
  readonly asked: Asked;
  /** A page of runs, newest first, or an error that names the invalid form field. */
  readonly found: Result.Result<Found, ApiInvalid>;
}

/** Maximum questions shown; the list of runs has all of them. */
export const questionsMax = 10;

/** Renders the overview. */
export const overview = (model: OverviewModel): Html => html`
  ${totalsTiles(model.totals)}
  ${model.asked.before === undefined && questions(model)}
  ${pathBoard(model.paths, model.now)}
  ${runSection(model)}
  ${totalsTables(model.totals)}`;

/** Returns the address of a run's view, relative to the page. */
export const runAddress = (runId: string): string => `./?run=${encodeURIComponent(runId)}`;

const runSection = ({ absences, asked, found, now, totals }: OverviewModel): Html => {
  const page = Result.getOrElse(found, () => undefined);
  return html`<section aria-labelledby="runs-title" id="runs"><h2 id="runs-title">Runs</h2>
    ${searchForm(asked, totals, Result.isFailure(found) ? found.failure : undefined)}
    <nav class="filters" aria-label="Which runs">${filters.map((it) => filterLink(it, asked))}</nav>
    ${page !== undefined && drawList(page, asked, { absences, now })}
  </section>`;
};

const drawList = ({ cut, next, runs }: Found, asked: Asked, moment: Moment): Html => html`
    ${runs.length === 0 ? html`<p class="card empty">${emptyText(asked, cut)}</p>` : html`<ul class="runs">${runs.map((run) => drawRow(run, moment))}</ul>`}
    ${cut && runs.length > 0 && html`<p class="hint">${groupDigits(scannedRunsMax)} runs were searched for this page.</p>`}
    <p class="more">${asked.before !== undefined && html`<a href="${listAddress({ ...asked, before: undefined })}">Newest runs</a> `}${next !== undefined && html`<a href="${listAddress({ ...asked, before: next })}">Older runs</a>`}</p>`;

const emptyText = (asked: Asked, cut: boolean): string => {
  if (cut) return `None of the newest ${groupDigits(scannedRunsMax)} runs match the search. Older ones may.`;
  if (asked.before !== undefined) return "There are no older runs of this kind.";
  return isNarrowed(asked) ? "No run on record matches the search." : empty[asked.filter];
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
  live: "No run is in progress.",
  parked: "No run waits to be taken up.",
  ended: "No run has ended yet.",
};

const filterLink = (filter: Filter, asked: Asked): Html =>
  html`<a href="${listAddress({ ...asked, filter, before: undefined })}"${filter === asked.filter && html` aria-current="page"`}>${titles[filter]}</a>`;

const questions = ({ asking, asksMore, now }: OverviewModel): Html => {
  const open = asking
    .flatMap((record) => {
      const question = openQuestionOf(record);
      return question === undefined ? [] : [{ record, question }];
    })
    .toSorted((a, b) => urgencyOf(a) - urgencyOf(b) || askTimeOf(b) - askTimeOf(a));
  const [first] = open;
  if (first === undefined) return none;
  const { expires_at } = first.question.question;
  const more = asksMore || open.length > questionsMax;
  return html`<section aria-labelledby="questions-title" class="asked"><h2 id="questions-title">${asksMore ? "Many questions are open" : `${formatCount(open.length, "question")} ${open.length === 1 ? "is" : "are"} open`}${expires_at !== undefined && html` <small>${open.length === 1 ? "it" : "the first"} expires ${formatRelative(expires_at, now)}</small>`}</h2>
    ${open.slice(0, questionsMax).map(({ question, record }) => questionCard(record, question, now))}
    ${more && html`<p class="more"><a href="${listAddress({ filter: "asking", before: undefined, sent: {} })}">All runs with open questions</a></p>`}
  </section>`;
};

interface Open {
  readonly record: RunRecord;
  readonly question: OpenQuestion;
}

/** Sort key: the earliest expiry first, then questions without one. */
const urgencyOf = ({ question: { question } }: Open): number => question.expires_at ?? Number.MAX_SAFE_INTEGER;

const askTimeOf = ({ question: { question }, record }: Open): number => question.asked_at ?? record.started_at;

/** The time at which a row is rendered, and the runs without a client. */
type Moment = Pick<OverviewModel, "absences" | "now">;

const drawRow = (record: RunRecord, { absences, now }: Moment): Html => {
  const story = runStory(record, now);
  const { mark, title, tone, word } = runStatuses[story.status];
  const { provider, run_id, started_at } = record;
  const attempts = attemptsOf(record);
  const rule = lastRuleOf(record);
  const code = record.incidents.at(-1)?.failure.code;
  const wait = waitOf(record, now);
  const alone = record.state === "live" ? absenceStory(absences.get(run_id), now) : undefined;
  return html`<li id="run-${run_id}"><a href="${runAddress(run_id)}">
    <span class="state"><span class="chip ${tone}"${record.end === undefined && html` title="${title}"`}>${mark} ${word}</span></span>
    <span class="who"><b>${label(provider.model ?? provider.id)}</b><small>${provider.model !== undefined && html`${label(provider.id)} · `}<span class="mono">${label(run_id)}</span></small></span>
    ${sparkline(timelineOf(story))}
    <span class="what">${wait !== undefined && html`<b class="waits">${wait.said}</b> ${wait.times} · `}${alone !== undefined && html`<b class="waits">${alone.said}</b> ${alone.times} · `}${attempts > 1 && html`${formatCount(attempts, "attempt")} · `}${formatLasting(story.lasted)}${rule !== undefined && html` · <code>${rule}</code>`}${code !== undefined && html` · ${label(code)}`}</span>
    <time class="when" title="${formatUtc(started_at)}">${formatRelative(started_at, now)}</time>
  </a></li>`;
};

/** Maximum paths shown, and cooldowns per path; the API lists all. */
const pathsMax = 10;
const cooldownsMax = 6;

/**
 * Renders the section of the paths.
 *
 * @param now wall clock, milliseconds since the epoch
 */
const pathBoard = (paths: ReadonlyArray<PathStatus>, now: number): Html => {
  const shown = sortPaths(paths.filter(isDisturbed));
  if (shown.length === 0) return none;
  const more = shown.length - pathsMax;
  return html`<section aria-labelledby="paths-title" class="paths"><h2 id="paths-title">Paths to providers</h2>
    ${shown.slice(0, pathsMax).map((path) => drawCard(path, now))}
    ${more > 0 && html`<p class="hint">And ${formatCount(more, "more path")}; see <a href="api/paths">the API</a>.</p>`}
  </section>`;
};

const drawCard = (path: PathStatus, now: number): Html => {
  const standing = pathStanding(path);
  const { mark, means, tone, word } = pathStandings[standing];
  const id = `path-${encodeURIComponent(path.path)}`;
  return html`<article class="card ${tone}" id="${id}" aria-labelledby="${id}-name"><h3 id="${id}-name"><span class="mono">${label(path.path)}</span> <span class="chip ${tone}" title="${means}">${mark} ${word}</span>${standing === "down" && tryButton(path.path, id)}</h3>
    <dl class="asks">
      ${path.state !== "up" && html`<div><dt>${path.state === "down" ? "Down" : "Back"} since</dt><dd><time title="${formatUtc(path.since)}">${formatRelative(path.since, now)}</time></dd></div>`}
      ${standing === "down" && path.code !== undefined && html`<div><dt>Why</dt><dd>${label(describeDown(path.code))}${describeDown(path.code) !== path.code && html` <code>${path.code}</code>`}</dd></div>`}
      ${standing === "down" && html`<div><dt>Probed</dt><dd>${probeText(path, now)}</dd></div>`}
      <div><dt>Waiting</dt><dd>${path.waiting === 0 ? "no run" : formatCount(path.waiting, "run")}</dd></div>
    </dl>
    ${path.cooldowns.length > 0 && html`<ul class="plain">${path.cooldowns.slice(0, cooldownsMax).map((it) => cooldown(it, now))}</ul>`}
    ${path.cooldowns.length > cooldownsMax && html`<p class="hint">And ${formatCount(path.cooldowns.length - cooldownsMax, "cooldown")} more.</p>`}
  </article>`;
};

const tryButton = (path: string, id: string): Html =>
  html`<button type="button" class="choice" id="${id}-try" data-path="${path}" aria-describedby="${id}-name">Try now</button>`;

const probeText = ({ nextProbeAt, probes: made }: PathStatus, now: number): Html => {
  const asked = made === 0 ? "not yet" : made === 1 ? "once" : `${made} times`;
  return nextProbeAt === undefined ? html`${asked}` : html`${asked}, next ${formatRelative(nextProbeAt, now)}`;
};

const cooldown = ({ credential, kind, model, until }: PathStatus["cooldowns"][number], now: number): Html =>
  html`<li>${model === undefined ? "every model" : label(model)}: ${cooldownWords[kind]}, ${until <= now ? "over" : html`for <time title="${formatUtc(until)}">${formatLasting(until - now)}</time> more`}${credential !== undefined && credential !== "" && html` <small>credential <span class="mono">${credential}</span></small>`}</li>`;
