/**
 * Computes the layout of a run on a time axis: attempts, the gaps between them, and events.
 */
import type { AttemptStory, RunStory } from "../../../story/RunStory.ts";

/** A period without an attempt in flight. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** `wait`: a backoff. `question`: an open question to a person. */
  readonly what: "wait" | "question";
  /** True if the gap has not ended. */
  readonly open: boolean;
  /** True if the gap is drawn shorter than its duration. */
  readonly shortened: boolean;
}

/** The layout of a run on the axis. */
export interface Timeline {
  /** The attempts. Their times are in milliseconds since the start of the run. */
  readonly bars: ReadonlyArray<AttemptStory>;
  readonly gaps: ReadonlyArray<Gap>;
  /** Labelled times on the axis, in milliseconds since the start. */
  readonly ticks: ReadonlyArray<number>;
  /** Length of the run, in milliseconds. */
  readonly total: number;
  /** Maps a time to a position, in percent of the width. */
  readonly place: (ms: number) => number;
}

/** Maximum drawn length of a gap, as a share of the attempts' total time. A question may be open for days. */
const gapShareMax = 0.3;

/** Maximum number of labels on the axis, so that they fit on a phone. */
const ticksMax = 7;

/** Computes the layout of a run from its story. */
export const timelineOf = (story: RunStory): Timeline => {
  const { attempts: bars } = story;
  const busy = bars.reduce((sum, { from, to }) => sum + to - from, 0);
  const longest = Math.max(busy * gapShareMax, 1);
  const gaps = gapsOf(story).map((gap) => ({ ...gap, shortened: gap.to - gap.from > longest }));
  const total = Math.max(1, ...bars.map(({ to }) => to), ...gaps.map(({ to }) => to));
  const drawnWidth = (gap: Gap) => (gap.shortened ? longest : gap.to - gap.from);
  const flatPlace = (ms: number) =>
    gaps.reduce((at, gap) => {
      const inside = Math.min(Math.max(ms - gap.from, 0), gap.to - gap.from);
      return at - inside + (gap.to === gap.from ? 0 : (inside / (gap.to - gap.from)) * drawnWidth(gap));
    }, ms);
  const width = Math.max(flatPlace(total), 1);
  const place = (ms: number) => (Math.min(Math.max(flatPlace(ms), 0), width) / width) * 100;
  return { bars, gaps, ticks: ticksOf(total, gaps, flatPlace), total, place };
};

const gapsOf = ({ attempts, end, lasted, status }: RunStory): ReadonlyArray<Omit<Gap, "shortened">> =>
  attempts.flatMap((attempt, index) => {
    const next = attempts[index + 1];
    const asked = attempt.asks || attempt.answers.length > 0;
    const what = asked ? ("question" as const) : ("wait" as const);
    if (next !== undefined)
      return next.from > attempt.to ? [{ from: attempt.to, to: next.from, what, open: false }] : [];
    if (end !== undefined || attempt.end !== "broke" || lasted <= attempt.to) {
      return asked && lasted > attempt.to ? [{ from: attempt.to, to: lasted, what, open: false }] : [];
    }
    return [{ from: attempt.to, to: lasted, what, open: status === "asking" || status === "live" }];
  });

/** Chooses round times for labels. Labels keep a minimum distance and avoid shortened gaps. */
const ticksOf = (total: number, gaps: ReadonlyArray<Gap>, flat: (ms: number) => number): ReadonlyArray<number> => {
  const width = Math.max(flat(total), 1);
  const step = steps.find((it) => width / it <= ticksMax - 1) ?? Math.ceil(width / (ticksMax - 1));
  const cuts = gaps.filter(({ shortened }) => shortened);
  const pieces = [...cuts, undefined].map((cut, index) => ({
    from: cuts[index - 1]?.to ?? 0,
    to: cut?.from ?? total,
  }));
  const ticks: Array<number> = [];
  for (const { from, to } of pieces.filter((it) => it.to > it.from)) {
    for (let ms = Math.ceil(from / step) * step; ms <= to && ticks.length < ticksMax; ms += step) {
      const before = ticks.at(-1);
      if (before === undefined || flat(ms) - flat(before) >= step * tickShareMin) ticks.push(ms);
    }
  }
  return ticks;
};

/** Minimum distance between two labels, as a share of their regular distance (`step`). */
const tickShareMin = 0.7;

const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 86_400_000,
];
