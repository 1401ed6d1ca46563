/**
 * Formats a judged world as lines of text.
 */
import type { Diary } from "./Diary.ts";
import type { Judgement } from "./Judge.ts";

/** Summarises a play in one line. */
export const summary = ({ departures, probes, refusals, runs, sleeps, unprobed }: Diary): string => {
  const all = [...runs.values()];
  const sent = all.reduce((sum, it) => sum + it.requests.length, 0);
  const refused = all.reduce((sum, it) => sum + it.requests.filter((request) => request.refused).length, 0);
  const ends = ["whole", "asked", "lost", "open"].map((end) => `${all.filter((it) => it.end === end).length} ${end}`);
  return [
    `${all.length} runs (${ends.join(", ")})`,
    `${sent} requests`,
    `${departures.length} outages`,
    `${refused} refusals (${refusals.length} announced)`,
    `${sleeps.length} sleeps`,
    `${probes} probes`,
    ...(unprobed.size === 0 ? [] : [`${unprobed.size} paths without probes`]),
  ].join(", ");
};

/** Formats one line for each judgement, followed by the first violation if it fails. */
export const lines = (judgements: ReadonlyArray<Judgement>): ReadonlyArray<string> =>
  judgements.flatMap(({ first, found, most, name, unit }) => {
    const held = found <= most;
    const line = `${held ? "ok    " : "BROKEN"} ${name}: ${formatRounded(found)} ${unit} (at most ${most})`;
    return held || first === undefined ? [line] : [line, `       first: ${first}`];
  });

const formatRounded = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(4));
