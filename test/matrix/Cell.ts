/**
 * Describes one cell of the fault matrix: the provider's behaviour, the caller's setup and the expected outcome.
 *
 * Every expectation is written by hand from the tables of the design and never derived from the policy.
 */
import { serverSideState, type ToolEffect } from "../../src/domain/SideEffects.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { ClockOptions } from "../../src/runtime/contract/Clocks.ts";
import { Answers as Answering, type FaultScript } from "../../src/testing/index.ts";
import { allIds, hasLines, ids, samples } from "../samples/index.ts";
import type { Event } from "../samples/Sample.ts";

/** The protocols of the matrix, in the order of its table. */
export const protocols = allIds;

/** The protocols of server-sent events, for cells with bytes that such a protocol alone can have. */
export const sseProtocols = ids.filter((id) => !hasLines(id));

/** True if a protocol can have the content of a cell. Completions have neither thoughts nor calls. */
export const canBePlayed = ({ name, protocol, tools }: Cell): boolean =>
  samples[protocol].has.thoughts || (tools === none && !name.includes("reasoning"));

/** The protocols in which only a clean end after the finish is the terminal marker. */
export const endsClean = (id: ProtocolId): boolean => Answering.needsCleanEnd(id);

/** The protocols in which a call arrives whole, in one event. */
export const hasWholeCalls = (id: ProtocolId): boolean => samples[id].has.calls === "whole";

/** The protocols in which a call is whole only with the finish, because no event ends it. */
export const hasLateCalls = (id: ProtocolId): boolean => id === "openai-chat" || id === "mistral-conversations";

/** Reveal modes: parts as they arrive, parts of an answer proven whole, or plain parts that the caller cannot discard. */
export const modes = ["live", "on_complete", "parts"] as const;
export type Mode = (typeof modes)[number];

/** The answers of a fault script, before their defaults are filled in. */
export type Answers = NonNullable<FaultScript.FaultScriptInput["answers"]>;
export type Answer = Answers[number];
export type Content = NonNullable<Answer["content"]>;

/**
 * Timing and fate of the handler of a call of the first request. `at_end` starts only after the run has completed. `at_once` starts
 * at the hand-over and settles before the break. `running` is at work at the break and settles soon after it. `hanging` works for
 * longer than the drain waits. `dying` dies in the middle.
 */
export type Handling = "at_end" | "at_once" | "running" | "hanging" | "dying";

/** The tools of a request and the fate of its calls. */
export interface ToolState {
  readonly name: string;
  /** The one runtime tool that the request exposes, if any. */
  readonly runtime?: { readonly effect: ToolEffect; readonly guarded: boolean; readonly handling: Handling };
  /** A tool that the provider itself would run. */
  readonly hosted?: { readonly name: string; readonly effect: ToolEffect };
  readonly canContinue?: boolean;
}

/** The expected outcome of a cell. */
export interface Expected {
  /** `asked`: a question was asked and answered with stop. `stopped`: the provider's error reached the caller at once. */
  readonly end: "completed" | "asked" | "stopped";
  /** The rule of every decision, in order; empty if nothing broke. */
  readonly rules: ReadonlyArray<string>;
  /** Requests that the server counts, which equals the run's attempts. */
  readonly requests: number;
  /** The requests whose text or thoughts remain on the screen at the end. */
  readonly keeps: ReadonlyArray<number>;
  /** Bounds of the second request's delay, in milliseconds from the first one's end. */
  readonly waitMs?: readonly [least: number, most: number];
}

/** The caller's progress required before the first break happens. */
export interface Reached {
  /** Events of the answer that the client has decoded. A live caller was handed all of them. */
  readonly events: number;
  /** State of a handler of the first request. */
  readonly tool?: "started" | "settled";
}

export interface Cell {
  /** Unique. */
  readonly name: string;
  /** The row of the table that counts it. */
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
  /** True if a healthy request uses the connection before the run begins. */
  readonly warmUp?: boolean;
  /** Time that the caller needs for every part that shows something, in milliseconds. */
  readonly callerMs?: number;
  /** True if the provider's own marker is among raw bytes, which the server's log does not see. */
  readonly rawMarker?: boolean;
  /** True if the answer has many megabytes. Few such cells run at the same time, so that they do not delay each other past a timeout. */
  readonly heavy?: boolean;
}

/** Name of the runtime tool in every cell. */
export const toolName = "edit";

export const none: ToolState = { name: "none" };

const runtime = (
  name: string,
  effect: ToolEffect,
  guarded: boolean,
  handling: Handling,
  canContinue = false,
): ToolState => ({ name, runtime: { effect, guarded, handling }, canContinue });

/** Calls are handed over and run only after the run's end, so nothing is dispatched before a break. */
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

/** Hosted tools, before and after one of them is seen. */
export const hosted: ReadonlyArray<ToolState> = [
  { name: "hosted, effect unknown", hosted: { name: "mcp", effect: "unknown" } },
  { name: "hosted read-only", hosted: { name: "web_search", effect: "read_only" } },
];

/**
 * A conversation that the provider stores and that grows with each request. The relay declares it as a provider tool; an error inside
 * such a stream is tested in test/gateway/proxy/Conversations.test.ts, because the relay also corrects what such an error proves.
 */
export const stored: ToolState = {
  name: "stored",
  hosted: { name: serverSideState.name, effect: serverSideState.effect },
};

/** Tool states for the protocols whose provider stores conversations. */
export const storedIn = (id: ProtocolId): ReadonlyArray<ToolState> => (id === "mistral-conversations" ? [stored] : []);

/** One tool state of each important kind, for faults whose outcome hardly depends on tools. */
export const fewTools: ReadonlyArray<ToolState> = [
  none,
  ...waiting.filter((tools) => tools.name === "guarded" || tools.name === "unguarded"),
  ...hosted.slice(0, 1),
];

/** Two calls, so that one can be whole while the other is still incomplete. */
export const twoCalls: Content = [
  { tool: toolName, input: { path: "a" } },
  { tool: toolName, input: { path: "b" } },
];

/** The calls of an answer if a runtime tool is exposed. */
export const callsOf = (tools: ToolState): Content => (tools.runtime === undefined ? [] : twoCalls);

/** A completed run that needed one silent retry. */
export const recovered = (rule: string, more: Partial<Expected> = {}): Expected => ({
  end: "completed",
  rules: [rule],
  requests: 2,
  keeps: [2],
  ...more,
});

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

/** Raw bytes in a script, which no protocol writes. */
export const bytes = (text: string | Uint8Array): Content[number] => ({
  bytes: Buffer.from(text).toString("base64"),
});

/** An event of a protocol in its wire format. */
export const framed = (protocol: ProtocolId, data: Event): Content[number] => {
  const { encoding, frame } = samples[protocol];
  return bytes(Buffer.from(frame(data), encoding));
};

/** A frame that no protocol writes, as an event with JSON data. */
export const event = (data: object, name?: string): Content[number] =>
  bytes(`${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
