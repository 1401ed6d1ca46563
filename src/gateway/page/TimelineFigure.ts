/**
 * Renders a timeline as SVG. Positions are percentages, so that the drawing fits any screen width without scaled text.
 */
import * as Schema from "effect/Schema";
import type { Evidence } from "../../domain/RunIncident.ts";
import { SeamProof } from "../../domain/SeamWords.ts";
import type { AttemptStory } from "../../story/RunStory.ts";
import { formatCharacters } from "../../story/SeamWords.ts";
import { formatCount, formatLasting } from "../../story/Times.ts";
import { events } from "../../story/Words.ts";
import type { Gap, Timeline } from "./geometry/Timeline.ts";
import { type Html, html, none } from "./Html.ts";
import { stitch } from "./TextFigure.ts";

/** Renders a run's timeline: one row per attempt, on a common axis. */
export const timelineFigure = (timeline: Timeline): Html => {
  const { bars } = timeline;
  if (bars.length === 0) return html`<p class="empty">No attempt is on record yet.</p>`;
  return html`<figure class="timeline" aria-label="${ariaLabelOf(timeline)}">
    <div class="lane axis"><span class="who">${formatCount(bars.length, "attempt")}</span>${drawAxis(timeline)}</div>
    ${bars.map((bar) => drawLane(bar, timeline))}
    <figcaption>${drawLegend(timeline)}</figcaption>
  </figure>`;
};

const ariaLabelOf = ({ bars, total }: Timeline): string =>
  `${formatLasting(total)}: ${bars.map((bar) => `attempt ${bar.record.attempt} from ${formatLasting(bar.from)} to ${formatLasting(bar.to)}, ${bar.said.word}`).join("; ")}`;

const drawLane = (bar: AttemptStory, timeline: Timeline): Html => html`<div class="lane">
    <span class="who"><b>${bar.record.attempt}</b> ${bar.record.mode} <span class="took">${formatLasting(bar.to - bar.from)}</span></span>
    <svg class="track" height="30" aria-hidden="true">${drawGrid(timeline)}${gapsAfter(bar, timeline).map((gap) => gapLine(gap, timeline))}${drawBody(bar, timeline)}${bar.evidence.map((it) => markOf(it, bar, timeline))}${breakMark(bar, timeline)}</svg>
  </div>`;

const formatPercent = (place: number): string => `${Math.round(place * 1_000) / 1_000}%`;

const drawAxis = ({ place, ticks }: Timeline): Html =>
  html`<svg class="track" height="20" aria-hidden="true">${ticks.map((ms) => {
    const at = place(ms);
    const anchor = at < 4 ? "start" : at > 94 ? "end" : "middle";
    return html`<text x="${formatPercent(at)}" y="13" text-anchor="${anchor}">${round(ms)}</text>`;
  })}</svg>`;

/** Formats a tick's time without trailing zeros. */
const round = (ms: number): string => {
  if (ms === 0) return "0";
  if (ms < 1_000) return `${ms} ms`;
  return ms < 60_000
    ? `${ms / 1_000} s`
    : formatLasting(ms)
        .replace(/ 0 s$/, "")
        .replace(/ 0 min$/, "");
};

const drawGrid = ({ place, ticks }: Timeline): ReadonlyArray<Html> =>
  ticks.map(
    (ms) => html`<line class="grid" x1="${formatPercent(place(ms))}" x2="${formatPercent(place(ms))}" y1="0" y2="30"/>`,
  );

/** Draws the bar of an attempt: first the time in which all output was withheld, then the phases by the kind of output that was shown. */
const drawBody = (bar: AttemptStory, timeline: Timeline): Html => {
  const stops = bar.evidence.filter(({ event }) => event === "shown");
  const phases = [
    { from: bar.from, kind: "held" },
    ...stops.map(({ at_ms, detail }) => ({ from: Math.max(at_ms, bar.from), kind: kindOf(detail) })),
  ];
  const pieces = phases.map((phase, index) => ({ ...phase, to: phases[index + 1]?.from ?? bar.to }));
  return html`<rect class="bar ${bar.end} held" x="${formatPercent(timeline.place(bar.from))}" y="6" width="4" height="18" rx="2"/>${pieces.map(
    ({ from, kind, to }) =>
      html`<rect class="bar ${bar.end} ${kind}" x="${formatPercent(timeline.place(from))}" y="6" width="${formatPercent(
        Math.max(0, timeline.place(to) - timeline.place(from)),
      )}" height="18" rx="2"><title>${titles[kind]} ${formatLasting(from)} to ${formatLasting(to)}</title></rect>`,
  )}`;
};

type Kind = "held" | "reasoning" | "text";

const kindOf = (detail: string | undefined): Kind => (detail === "text" || detail === "reasoning" ? detail : "held");

const titles: Readonly<Record<string, string>> = {
  held: "Nothing shown:",
  reasoning: "Reasoning shown:",
  text: "Text shown:",
};

const marked: ReadonlyArray<Evidence["event"]> = [
  "seam",
  "terminal_candidate",
  "watchdog",
  "suspended",
  "late_part_refused",
  "late_settle",
  "abandoned",
  "cancel",
  "close",
];

const markOf = (it: Evidence, bar: AttemptStory, timeline: Timeline): Html => {
  if (!marked.includes(it.event)) return none;
  const x = formatPercent(timeline.place(Math.min(Math.max(it.at_ms, bar.from), timeline.total)));
  if (it.event === "seam") return isProof(it.detail) ? seamMark(it, bar, x) : none;
  const title = html`<title>${events[it.event]} ${it.detail} at ${formatLasting(it.at_ms)}</title>`;
  const shape =
    it.event === "watchdog"
      ? html`<circle class="mark clock" cx="-16" cy="15" r="6.5"/><path class="hands" d="M-16 11.5V15l2.5 1.5"/>`
      : html`<path class="mark ${it.event === "terminal_candidate" ? "terminal" : "other"}" d="M0 0l5 5-5 5-5-5z"/>`;
  return html`<svg x="${x}" overflow="visible">${title}${shape}</svg>`;
};

const isProof = Schema.is(SeamProof);

/** Marks the time from which the output of this attempt was appended to the text already shown. */
const seamMark = ({ at_ms }: Evidence, { seam }: AttemptStory, x: string): Html =>
  html`<svg x="${x}" overflow="visible"><title>${seam === undefined ? events.seam : `continues after ${formatCharacters(seam.at)}`} at ${formatLasting(at_ms)}</title>${stitch}</svg>`;

const breakMark = (bar: AttemptStory, { place }: Timeline): Html =>
  bar.end === "broke"
    ? html`<svg x="${formatPercent(place(bar.to))}" overflow="visible"><title>broke at ${formatLasting(bar.to)}</title><circle class="break" cx="0" cy="15" r="7"/><path class="cross" d="M-3 12l6 6M3 12l-6 6"/></svg>`
    : none;

const gapsAfter = (bar: AttemptStory, { gaps }: Timeline): ReadonlyArray<Gap> =>
  gaps.filter(({ from }) => from === bar.to);

const gapLine = (gap: Gap, { place }: Timeline): Html => {
  const [from, to] = [place(gap.from), place(gap.to)];
  const what = gap.what === "question" ? "asked" : "waited";
  const text = `${gap.open ? (gap.what === "question" ? "waits for an answer" : "waits") : what} ${formatLasting(gap.to - gap.from)}`;
  const break_ = gap.shortened
    ? html`<svg x="${formatPercent((from + to) / 2)}" overflow="visible"><path class="cut" d="M-4 20l4-10M0 20l4-10"/></svg>`
    : none;
  return html`<line class="gap ${gap.what}" x1="${formatPercent(from)}" x2="${formatPercent(to)}" y1="15" y2="15"><title>${text}</title></line>${break_}`;
};

/** Explains the symbols that occur in the drawing. */
const drawLegend = ({ bars, gaps }: Timeline): ReadonlyArray<Html> => {
  const evidence = bars.flatMap((bar) => bar.evidence);
  const has = (name: Evidence["event"], detail?: string) =>
    evidence.some((it) => it.event === name && (detail === undefined || it.detail === detail));
  const rows: ReadonlyArray<readonly [boolean, string, string]> = [
    [true, "held", "nothing shown yet"],
    [has("shown", "reasoning"), "reasoning", "reasoning shown"],
    [has("shown", "text"), "text", "text shown"],
    [bars.some(({ end }) => end === "broke"), "break", "broke"],
    [evidence.some((it) => it.event === "seam" && isProof(it.detail)), "seam", "continues the shown text"],
    [has("terminal_candidate"), "terminal", "provider’s end marker"],
    [has("watchdog"), "clock", `timed out: ${clocksOf(evidence)}`],
    [gaps.some(({ what }) => what === "wait"), "wait", "waited"],
    [gaps.some(({ what }) => what === "question"), "question", "asked a person"],
  ];
  return rows.filter(([drawn]) => drawn).map(([, key, text]) => html`<span class="key ${key}"><i></i>${text}</span>`);
};

const clocksOf = (evidence: ReadonlyArray<Evidence>): string =>
  [...new Set(evidence.filter(({ event }) => event === "watchdog").map(({ detail }) => detail ?? "unnamed"))]
    .map((clock) => clock.replaceAll("_", " "))
    .join(", ");

/** Renders a run as one line of a list: its bars and breaks, without an axis. */
export const sparkline = (timeline: Timeline): Html =>
  html`<svg class="spark" height="14" role="img" aria-label="${timeline.bars
    .map((bar) => `${bar.sent}: ${bar.said.word}`)
    .join("; ")}">${timeline.gaps.map(
    ({ from, to, what }) =>
      html`<line class="gap ${what}" x1="${formatPercent(timeline.place(from))}" x2="${formatPercent(timeline.place(to))}" y1="7" y2="7"/>`,
  )}${timeline.bars.map(
    (bar) =>
      html`<rect class="bar ${bar.end} text" x="${formatPercent(timeline.place(bar.from))}" y="3" width="3" height="8" rx="1.5"/><rect class="bar ${bar.end} text" x="${formatPercent(timeline.place(bar.from))}" y="3" width="${formatPercent(timeline.place(bar.to) - timeline.place(bar.from))}" height="8" rx="1.5"/>`,
  )}${timeline.bars
    .filter(({ end }) => end === "broke")
    .map((bar) => html`<circle class="break" cx="${formatPercent(timeline.place(bar.to))}" cy="7" r="4"/>`)}</svg>`;
