/**
 * Describes one cell of the fault matrix: what the provider does, how the caller is wired, and what must come of it.
 *
 * Every expectation is written by hand from the tables of the design; nothing here asks the policy what it would say.
 */
import type { ToolEffect } from "../../src/domain/SideEffects.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { ClockOptions } from "../../src/runtime/contract/Clocks.ts";
import type { FaultScript } from "../../src/testing/index.ts";

/** The protocols of the matrix, in the order of its table. */
export const protocols = [
  "openai-chat",
  "openai-responses",
  "anthropic-messages",
  "google-gemini",
] as const satisfies ReadonlyArray<ProtocolId>;

/** How the caller takes parts: as they come, once they are proven whole, or as plain parts that it cannot throw away. */
export const modes = ["live", "on_complete", "parts"] as const;
export type Mode = (typeof modes)[number];

/** The answers of a fault script, before their defaults are filled in. */
export type Answers = NonNullable<FaultScript.FaultScriptInput["answers"]>;
export type Answer = Answers[number];
export type Content = NonNullable<Answer["content"]>;

/**
 * When a handler runs, and what it does with a call of the first request: `at_end` not before the run has completed;
 * `at_once` at the hand-over, settled before the break; `running` still at work at the break, settled soon after it;
 * `hanging` at work for longer than the drain waits; `dying` dead in the middle.
 */
export type Handling = "at_end" | "at_once" | "running" | "hanging" | "dying";

/** The tools of a request and what happens to its calls. */
export interface ToolState {
  readonly name: string;
  /** The one runtime tool that the request exposes; none where left out. */
  readonly runtime?: { readonly effect: ToolEffect; readonly guarded: boolean; readonly handling: Handling };
  /** A tool that the provider itself would run. */
  readonly hosted?: { readonly name: string; readonly effect: ToolEffect };
  readonly canContinue?: boolean;
}

/** What must come of a cell. */
export interface Expected {
  /** `asked`: a question came, and was answered with stop. `stopped`: the provider's error reached the caller at once. */
  readonly end: "completed" | "asked" | "stopped";
  /** The rule of every decision, in order; empty where nothing broke. */
  readonly rules: ReadonlyArray<string>;
  /** Requests that the server counts; the run says the same number of attempts. */
  readonly requests: number;
  /** The requests whose text or thoughts stand on the screen at the end. */
  readonly keeps: ReadonlyArray<number>;
  /** How long the second request may wait for, in milliseconds from the first one's end. */
  readonly waitMs?: readonly [least: number, most: number];
}

/** How far the caller must have come before the first break happens. */
export interface Reached {
  /** Events of the answer that the client has decoded; a live caller was handed all of them. */
  readonly events: number;
  /** A handler of the first request is at work, or has settled. */
  readonly tool?: "started" | "settled";
}

/** One cell. */
export interface Cell {
  /** Unique. */
  readonly name: string;
  /** The row of the table that it counts in. */
  readonly group: string;
  readonly protocol: ProtocolId;
  readonly mode: Mode;
  readonly tools: ToolState;
  /** `nowMs` is the wall clock at the start, for dates. The last answer repeats. */
  readonly answers: (nowMs: number) => Answers;
  readonly expect: Expected;
  readonly reached?: Reached;
  readonly clocks?: ClockOptions;
  readonly emptyIsFailure?: boolean;
  readonly canRefresh?: boolean;
  readonly choices?: number;
  /** A healthy request goes over the connection before the run begins. */
  readonly warmUp?: boolean;
  /** Milliseconds that the caller needs for every part that shows something. */
  readonly callerMs?: number;
  /** The provider's own marker stands among raw bytes, where the server's log does not see it. */
  readonly rawMarker?: boolean;
  /** Many megabytes: played with few others at the same time, so that no clock of theirs waits for it. */
  readonly heavy?: boolean;
}

/** The name of the runtime tool in every cell. */
export const toolName = "edit";

/** No tools are exposed. */
export const none: ToolState = { name: "none" };

const runtime = (
  name: string,
  effect: ToolEffect,
  guarded: boolean,
  handling: Handling,
  canContinue = false,
): ToolState => ({ name, runtime: { effect, guarded, handling }, canContinue });

/** Calls are handed over and wait for the run's end: nothing is dispatched before a break. */
export const waiting: ReadonlyArray<ToolState> = [
  runtime("guarded", "mutating", true, "at_end"),
  runtime("guarded + continue", "mutating", true, "at_end", true),
  runtime("guarded read-only", "read_only", true, "at_end"),
  runtime("unguarded", "mutating", false, "at_once"),
  runtime("unguarded read-only", "read_only", false, "at_once"),
];

/** Calls have settled before the break. */
export const settled: ReadonlyArray<ToolState> = [
  runtime("settled read-only", "read_only", true, "at_once"),
  runtime("settled read-only + continue", "read_only", true, "at_once", true),
  runtime("settled mutating", "mutating", true, "at_once"),
  runtime("settled mutating + continue", "mutating", true, "at_once", true),
  runtime("settled, effect unknown", "unknown", true, "at_once"),
];

/** Calls are at work when it breaks. */
export const dispatched: ReadonlyArray<ToolState> = [
  runtime("running read-only", "read_only", true, "running"),
  runtime("running mutating", "mutating", true, "running"),
  runtime("running mutating + continue", "mutating", true, "running", true),
  runtime("hanging read-only", "read_only", true, "hanging"),
  runtime("hanging mutating", "mutating", true, "hanging"),
  runtime("dying read-only", "read_only", true, "dying"),
  runtime("dying mutating", "mutating", true, "dying"),
  runtime("dying mutating + continue", "mutating", true, "dying", true),
];

/** Nothing of the provider's own tools is seen yet, or some was. */
export const hosted: ReadonlyArray<ToolState> = [
  { name: "hosted, effect unknown", hosted: { name: "mcp", effect: "unknown" } },
  { name: "hosted read-only", hosted: { name: "web_search", effect: "read_only" } },
];

/** One tool state of each important kind, for faults whose outcome tools can hardly change. */
export const fewTools: ReadonlyArray<ToolState> = [
  none,
  ...waiting.filter((tools) => tools.name === "guarded" || tools.name === "unguarded"),
  ...hosted.slice(0, 1),
];

/** Two calls, so that one can be whole while the other is still on its way. */
export const twoCalls: Content = [
  { tool: toolName, input: { path: "a" } },
  { tool: toolName, input: { path: "b" } },
];

/** The calls of an answer where a runtime tool is exposed. */
export const callsOf = (tools: ToolState): Content => (tools.runtime === undefined ? [] : twoCalls);

/** A completed run that needed one silent retry. */
export const recovered = (rule: string, more: Partial<Expected> = {}): Expected => ({
  end: "completed",
  rules: [rule],
  requests: 2,
  keeps: [2],
  ...more,
});

/** A run in which nothing went wrong. */
export const whole: Expected = { end: "completed", rules: [], requests: 1, keeps: [1] };

/** A run that ended with a question. */
export const asked = (rule: string, keeps: ReadonlyArray<number>): Expected => ({
  end: "asked",
  rules: [rule],
  requests: 1,
  keeps,
});

/** A run that ended with the provider's error. */
export const stopped = (rule: string, keeps: ReadonlyArray<number> = []): Expected => ({
  end: "stopped",
  rules: [rule],
  requests: 1,
  keeps,
});

/** Bytes of a script that no protocol writes. */
export const bytes = (text: string | Uint8Array): Content[number] => ({
  bytes: Buffer.from(text).toString("base64"),
});

/** A frame that no protocol writes, as an event with JSON data. */
export const event = (data: object, name?: string): Content[number] =>
  bytes(`${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
