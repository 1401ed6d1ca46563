/**
 * Plays legal but slow streams, none of which may be aborted, questioned or requested again.
 */
import { type Answer, type Cell, callsOf, modes, none, protocols, type ToolState, waiting, whole } from "../Cell.ts";
import { talk } from "./Healthy.ts";

interface Slow extends Pick<Cell, "clocks" | "callerMs" | "tools"> {
  readonly name: string;
  readonly answer: Answer;
}

/** Each pause is longer than the watchdog that it must not trigger. The delay of a busy machine stays far below it. */
const slow: ReadonlyArray<Slow> = [
  {
    name: "a slow prefill before the head",
    tools: none,
    clocks: { first_progress: 1_500, idle: 250 },
    answer: { content: talk, head_delay_ms: 600 },
  },
  {
    name: "a slow prefill after the head",
    tools: none,
    clocks: { first_progress: 1_500, idle: 250 },
    answer: { content: talk, first_delay_ms: 600 },
  },
  {
    name: "a slow prefill with keep-alive comments",
    tools: none,
    clocks: { first_progress: 1_500, idle: 250, silence: 400 },
    answer: { content: talk, first_delay_ms: 700, keep_alive: { every_ms: 50 } },
  },
  {
    name: "a slow prefill with keep-alive events",
    tools: none,
    clocks: { first_progress: 1_500, idle: 250, silence: 400 },
    answer: { content: talk, first_delay_ms: 700, keep_alive: { every_ms: 50, style: "event" } },
  },
  {
    name: "slow reasoning",
    tools: none,
    clocks: { first_progress: 1_000, idle: 700 },
    answer: { content: [{ reasoning: 12 }, { text: 2 }], delay_ms: 60 },
  },
  {
    name: "slow text",
    tools: none,
    clocks: { first_progress: 1_000, idle: 700 },
    answer: { content: [{ text: 14 }], delay_ms: 60 },
  },
  {
    name: "slow arguments",
    tools: waiting[0] ?? none,
    clocks: { first_progress: 1_000, idle: 700 },
    answer: { content: [...callsOf(waiting[0] ?? none), ...callsOf(waiting[0] ?? none)], delay_ms: 60 },
  },
  {
    name: "slow text with keep-alives between",
    tools: none,
    clocks: { first_progress: 1_000, idle: 1_000, silence: 400 },
    answer: { content: [{ text: 12 }], delay_ms: 90, keep_alive: { every_ms: 30 } },
  },
  {
    name: "a slow caller",
    tools: none,
    callerMs: 550,
    clocks: { first_progress: 1_500, idle: 500 },
    answer: { content: [{ text: 4 }] },
  },
];

export const slowCells = (): ReadonlyArray<Cell> =>
  protocols.flatMap((protocol) =>
    modes.flatMap((mode) =>
      slow.map(({ answer, name, ...rest }) => ({
        name: `${protocol}/${name}/${mode}`,
        group: name,
        protocol,
        mode,
        ...rest,
        answers: () => [answer],
        expect: { ...whole, keeps: saysNothing(rest.tools) ? [] : [1] },
      })),
    ),
  );

const saysNothing = (tools: ToolState): boolean => tools.runtime !== undefined;
