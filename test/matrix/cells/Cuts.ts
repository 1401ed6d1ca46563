/**
 * Cuts answers: protocol × kind of break × moment × reveal mode × tool state.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { Answers as Rendered } from "../../../src/testing/index.ts";
import { samples } from "../../samples/index.ts";
import {
  type Cell,
  type Content,
  callsOf,
  dispatched,
  endsClean,
  hasLateCalls,
  hasWholeCalls,
  hosted,
  type Mode,
  modes,
  none,
  protocols,
  settled,
  storedIn,
  type ToolState,
  waiting,
} from "../Cell.ts";
import { expectCut } from "./CutRules.ts";

/** Kinds of cut: reset, FIN in the middle of the body, a proper end of the body, silence, endless keep-alives. */
const kinds = ["rst", "fin", "end", "stall", "keep_alive"] as const;
type Kind = (typeof kinds)[number];

/** Moments of the cut. */
type Moment =
  | "before head"
  | "after head"
  | "after reasoning"
  | "after text"
  | "inside arguments"
  | "after a call"
  | "after all calls"
  | "after dispatch"
  | "after settle"
  | "after a hosted call"
  | "after the marker";

/** Content before the calls: nothing, thoughts, or text. */
const shapes = ["bare", "thoughts", "spoken"] as const;
type Shape = (typeof shapes)[number];

/** One cut, before it is a cell. */
export interface Cut {
  readonly protocol: ProtocolId;
  readonly kind: Kind;
  readonly moment: Moment;
  readonly mode: Mode;
  readonly shape: Shape;
  readonly tools: ToolState;
}

export const cuts = (): ReadonlyArray<Cell> => allCuts().map(cellOf);

/** All possible cuts. Impossible ones (a clean end before the head) are left out. */
export const allCuts = (): ReadonlyArray<Cut> =>
  protocols.flatMap((protocol) =>
    kinds.flatMap((kind) =>
      modes.flatMap((mode) =>
        placed(protocol, mode)
          .map((place): Cut => ({ protocol, kind, mode, ...place }))
          .filter(canHappen),
      ),
    ),
  );

type Place = Pick<Cut, "moment" | "shape" | "tools">;

const placed = (protocol: ProtocolId, mode: Mode): ReadonlyArray<Place> => {
  const places: Array<Place> = [];
  const add = (tools: ToolState, shapes: ReadonlyArray<Shape>, moments: ReadonlyArray<Moment>) => {
    for (const shape of shapes) for (const moment of moments) places.push({ tools, shape, moment });
  };
  add(none, ["thoughts"], ["before head", "after head", "after reasoning", "after text", "after the marker"]);
  add(none, ["bare"], ["after text"]);
  for (const tools of waiting) {
    add(tools, ["thoughts"], ["before head", "after head", "after reasoning"]);
    add(tools, ["spoken"], ["after text"]);
    add(tools, shapes, ["inside arguments", "after a call", "after all calls"]);
    add(tools, ["bare"], ["after the marker"]);
  }
  for (const tools of samples[protocol].has.hosted ? hosted : []) {
    add(tools, ["thoughts"], ["before head", "after head", "after reasoning", "after text", "after the marker"]);
    // Gemini's code execution runs in a throw-away container, so its effect is always read-only.
    if (!endsClean(protocol) || tools.hosted?.effect === "read_only") add(tools, shapes, ["after a hosted call"]);
  }
  for (const tools of storedIn(protocol))
    add(tools, ["thoughts"], ["before head", "after head", "after reasoning", "after text", "after the marker"]);
  // A late call is whole only with the finish, and held parts are not handed over, so no call can run earlier.
  if (hasLateCalls(protocol) || mode !== "live") return places;
  for (const tools of settled) add(tools, shapes, ["after settle"]);
  for (const tools of dispatched) add(tools, shapes, ["after dispatch"]);
  return places;
};

const canHappen = ({ kind, moment, tools }: Cut): boolean => {
  const silent = kind === "stall" || kind === "keep_alive";
  if (moment === "before head") return kind !== "end" && kind !== "keep_alive";
  // After the marker the client waits ten seconds for further events. That timeout has its own test.
  if (moment === "after the marker") return !silent;
  // Watchdogs pause while a tool runs, so nothing can stall.
  return !(silent && (tools.runtime?.handling === "running" || tools.runtime?.handling === "hanging"));
};

const cellOf = (cut: Cut): Cell => {
  const { kind, moment, mode, protocol, shape, tools } = cut;
  const content = contentOf(cut);
  const place = placeOf(cut, content);
  const expect = expectCut(cut);
  const goesOn = expect.rules.some((rule) => rule === "tools_settled" || rule === "text_closed_by_call");
  const tool = moment === "after settle" ? "settled" : moment === "after dispatch" ? "started" : undefined;
  return {
    name: `${protocol}/${kind}/${moment}/${mode}/${shape}/${tools.name}`,
    group: `${kindNames[kind]}, ${moment}`,
    protocol,
    mode,
    tools,
    answers: () => [
      {
        content,
        keep_alive: { every_ms: 40 },
        break: { kind, ...place.at },
      },
      { content: goesOn ? [{ text: 2 }] : content },
    ],
    reached: { events: place.events, ...(tool === undefined ? {} : { tool }) },
    ...clocksOf(cut, place),
    expect,
  };
};

/** Shortens the one watchdog that a silence triggers; the retry has twice as long. A busy machine must not look like a silent provider. */
const clocksOf = ({ kind }: Cut, { events }: BreakPlace): Pick<Cell, "clocks"> => {
  if (kind !== "stall" && kind !== "keep_alive") return {};
  return { clocks: events === 0 ? { first_progress: stallMs } : { first_progress: 10 * stallMs, idle: stallMs } };
};

/** Limit of the watchdog that a cell waits for, in milliseconds. */
const stallMs = 350;

const kindNames: Record<Kind, string> = {
  rst: "reset",
  fin: "FIN",
  end: "clean end",
  stall: "silence",
  keep_alive: "only keep-alives",
};

const contentOf = ({ moment, shape, tools }: Cut): Content => {
  const before: Content = shape === "bare" ? [] : shape === "thoughts" ? [{ reasoning: 2 }] : [{ text: 2 }];
  if (moment === "after a hosted call") return [...before, { provider_tool: tools.hosted?.name ?? "" }, { text: 2 }];
  return tools.runtime === undefined ? [...before, { text: 3 }] : [...before, ...callsOf(tools)];
};

interface BreakPlace {
  readonly at: { readonly at: "before_head" | "after_head" | "event" | "tool_arguments"; readonly n?: number };
  /** Whole events that come before the break. */
  readonly events: number;
}

/** Locates the break among the events, read from the server's own rendering of the answer. */
const placeOf = ({ moment, protocol }: Cut, content: Content): BreakPlace => {
  const events = Rendered.render(protocol, 1, { content });
  const last = (role: Rendered.EventRole) => events.findLastIndex((it) => it.role === role) + 1;
  const behind = (n: number): BreakPlace => ({ at: { at: "event", n }, events: n });
  const firstArguments = events.findIndex((it) => it.role === "arguments");
  const firstWhole = events.findIndex((it) => it.call !== undefined) + 1;
  switch (moment) {
    case "before head":
      return { at: { at: "before_head" }, events: 0 };
    case "after head":
      return { at: { at: "after_head" }, events: 0 };
    case "after reasoning":
      return behind(last("reasoning"));
    case "after text":
      return behind(last("text"));
    case "inside arguments":
      return hasWholeCalls(protocol)
        ? { at: { at: "tool_arguments" }, events: firstArguments }
        : behind(firstArguments + 2);
    case "after a call":
    case "after dispatch":
    case "after settle":
    case "after a hosted call":
      return behind(firstWhole);
    case "after all calls":
      return behind(events.findLastIndex((it) => it.call !== undefined) + 1);
    case "after the marker":
      return behind(events.findIndex((it) => it.role === "terminal") + 1);
  }
};
