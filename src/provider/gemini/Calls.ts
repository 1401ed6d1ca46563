/**
 * Gathers the calls of one Gemini candidate: the caller's functions, and the tools that Google runs itself.
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import type { Executor } from "../../domain/SideEffects.ts";
import * as GeminiArguments from "./Arguments.ts";

/** Maximum calls of one candidate. */
export const callsMax = 512;

/** A call as gathered so far. `open` is true while more of its arguments, or the result of a tool that Google runs, may follow. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly executor: Executor;
  readonly open: boolean;
  readonly args: unknown;
  readonly pieces: ReadonlyArray<GeminiArguments.Piece>;
}

/** The calls of a candidate and the signals of one chunk, gathered in place while the chunk is read. */
export interface Gathering {
  readonly candidate: number;
  calls: ReadonlyArray<Call>;
  readonly signals: Array<CallSignal>;
  /** Argument text in this chunk, in UTF-16 code units. */
  characters: number;
  /** True if the arguments of a call cannot be built. */
  invalid: boolean;
}

/**
 * Gathers a part of a candidate's content.
 *
 * @returns undefined if the part is not about a call; `ordinal` is set for a function of the caller
 */
export const take = (gathering: Gathering, part: Json.JsonRecord): { readonly ordinal?: number } | undefined => {
  const called = Json.record(part.functionCall);
  const ordinal = called === undefined ? undefined : takeFunction(gathering, called);
  const code = Json.record(part.executableCode);
  if (code !== undefined) beginHosted(gathering, "code_execution", Json.string(code.id));
  const result = Json.record(part.codeExecutionResult);
  if (result !== undefined) settleHosted(gathering, "code_execution", Json.string(result.id));
  const tool = Json.record(part.toolCall);
  if (tool !== undefined) beginHosted(gathering, hostedName(Json.string(tool.toolType)), Json.string(tool.id));
  const response = Json.record(part.toolResponse);
  if (response !== undefined)
    settleHosted(gathering, hostedName(Json.string(response.toolType)), Json.string(response.id));
  if ([called, code, result, tool, response].every((found) => found === undefined)) return undefined;
  return ordinal === undefined ? {} : { ordinal };
};

/** Records a tool of Google that appears only in its results. The call begins and settles at once, at most once per candidate and tool. */
export const takeSettled = (gathering: Gathering, tool: string): void => {
  if (gathering.calls.some((call) => call.executor === "provider" && call.tool === tool)) return;
  settleHosted(gathering, tool, "");
};

/** True if a function call waits for the rest of its arguments. */
export const isOpen = (calls: ReadonlyArray<Call>): boolean =>
  calls.some((call) => call.open && call.executor === "runtime");

const takeFunction = (gathering: Gathering, called: Json.JsonRecord): number | undefined => {
  const tool = Json.string(called.name);
  const partial = Json.list(called.partialArgs);
  const open = called.willContinue === true;
  const ordinal = tool === "" ? gathering.calls.findLastIndex((call) => call.open && call.executor === "runtime") : -1;
  const known = gathering.calls[ordinal];
  // This piece belongs to no call. `functionCall: {}` closes the previous call, but there is none.
  if (known === undefined && tool === "") return undefined;
  const before: Call = known ?? {
    id: Json.string(called.id),
    tool,
    executor: "runtime",
    open: true,
    args: undefined,
    pieces: [],
  };
  const pieces = GeminiArguments.gather(before.pieces, partial);
  const call: Call = { ...before, open, args: called.args ?? before.args, pieces };
  gathering.characters += called.args === undefined && partial.length === 0 ? 0 : JSON.stringify(called).length;
  const at = known === undefined ? gathering.calls.length : ordinal;
  gathering.calls = known === undefined ? [...gathering.calls, call] : gathering.calls.with(at, call);
  if (known === undefined) gathering.signals.push(signal(gathering, at, "input_started"));
  if (open) return at;
  const input = pieces.length > GeminiArguments.piecesMax ? undefined : GeminiArguments.build(call.args, pieces);
  if (input === undefined) gathering.invalid = true;
  gathering.signals.push(
    input === undefined ? signal(gathering, at, "input_complete") : { ...signal(gathering, at, "ready"), input },
  );
  return at;
};

const beginHosted = (gathering: Gathering, tool: string, id: string): void => {
  const call: Call = { id, tool, executor: "provider", open: true, args: undefined, pieces: [] };
  gathering.calls = [...gathering.calls, call];
  const at = gathering.calls.length - 1;
  gathering.signals.push(signal(gathering, at, "input_started"), signal(gathering, at, "input_complete"));
};

const settleHosted = (gathering: Gathering, tool: string, id: string): void => {
  const isIt = (call: Call) => call.executor === "provider" && call.open && call.tool === tool;
  const byId = id === "" ? -1 : gathering.calls.findLastIndex((call) => isIt(call) && call.id === id);
  let at = byId === -1 ? gathering.calls.findIndex(isIt) : byId;
  if (at === -1) {
    beginHosted(gathering, tool, id);
    at = gathering.calls.length - 1;
  }
  const call = gathering.calls[at];
  if (call !== undefined) gathering.calls = gathering.calls.with(at, { ...call, open: false });
  gathering.signals.push(signal(gathering, at, "settled"));
};

/** Maps `toolType` to the names of the hosted-tool table. GOOGLE_SEARCH_WEB and GOOGLE_SEARCH_IMAGE are the same tool. */
const hostedName = (toolType: string): string => {
  const name = toolType.toLowerCase();
  return name.startsWith("google_search") ? "google_search" : name;
};

const signal = (gathering: Gathering, ordinal: number, phase: CallSignal["phase"]): CallSignal => {
  const call = gathering.calls[ordinal];
  return {
    choice: gathering.candidate,
    ordinal,
    executor: call?.executor ?? "runtime",
    phase,
    ...(call === undefined || call.id === "" ? {} : { id: label(call.id) }),
    ...(call === undefined || call.tool === "" ? {} : { tool: label(call.tool) }),
  };
};
