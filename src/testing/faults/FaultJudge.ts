/**
 * Compares a caller's transcript with the log of a fault server: finds duplicated, lost, truncated and invented content.
 *
 * Requests with equal bodies are repeats of one request. Of all responses to a request and its repeats, only one may stay visible, and each
 * call may run from only one of them.
 */
import { needsCleanEnd } from "../answers/Answers.ts";
import type { RequestLog } from "./FaultLog.ts";

/** The caller's result, with the log of what the fault server sent. */
export interface Evidence {
  /** All text that the user sees at the end, without withdrawn text. */
  readonly transcript: string;
  /** All reasoning that is visible at the end. Omitted if the caller shows none. */
  readonly reasoning?: string;
  /** Inputs of the tools that ran, in order, as the handlers received them: objects or JSON text. */
  readonly tools?: ReadonlyArray<unknown>;
  /** True if the caller reports that the run completed. */
  readonly completed: boolean;
  readonly log: ReadonlyArray<RequestLog>;
}

/** Faults between server and caller. A clean run has only empty lists and no false success. */
export interface Findings {
  /** Deltas that are visible twice, or whose request has a later response that is visible too. */
  readonly duplicates: ReadonlyArray<string>;
  /** Deltas that a completed run should show but does not. The last response to each request counts, if it is complete. */
  readonly lost: ReadonlyArray<string>;
  /** Visible deltas and tool inputs that the server never sent. */
  readonly invented: ReadonlyArray<string>;
  /** Visible deltas that follow a later delta of the same response. */
  readonly out_of_order: ReadonlyArray<string>;
  /** Calls that ran twice, or from two responses to the same request. */
  readonly repeated_tools: ReadonlyArray<string>;
  /** Calls that ran with a different input than the server sent. */
  readonly truncated_tool_inputs: ReadonlyArray<string>;
  /** Calls that a completed run should have run but did not. The last response to each request counts, if it is complete. */
  readonly lost_tools: ReadonlyArray<string>;
  /** True if the caller reports completion although the last response was never complete. */
  readonly false_success: boolean;
}

/**
 * Judges one run.
 *
 * @param evidence the caller's result; its log must hold only the requests of this run
 * @returns the findings; a run is clean if every list is empty and there is no false success
 */
export const judge = (evidence: Evidence): Findings => {
  const repeats = new Map<string, ReadonlyArray<RequestLog>>();
  for (const row of evidence.log) repeats.set(groupOf(row), [...(repeats.get(groupOf(row)) ?? []), row]);
  const final = [...repeats.values()].flatMap((rows) => rows.slice(-1)).filter(isComplete);
  const text = judgeText(evidence.transcript, "text", evidence, repeats, final);
  const reasoning =
    evidence.reasoning === undefined ? noText : judgeText(evidence.reasoning, "reasoning", evidence, repeats, final);
  const tools = judgeTools(evidence, final);
  const last = evidence.log.at(-1);
  return {
    duplicates: [...text.duplicates, ...reasoning.duplicates],
    lost: [...text.lost, ...reasoning.lost],
    invented: [...text.invented, ...reasoning.invented, ...tools.invented],
    out_of_order: [...text.out_of_order, ...reasoning.out_of_order],
    repeated_tools: tools.repeated,
    truncated_tool_inputs: tools.truncated,
    lost_tools: tools.lost,
    false_success: evidence.completed && last !== undefined && !isComplete(last),
  };
};

/** Returns true if the findings hold no fault. */
export const isClean = (findings: Findings): boolean =>
  !findings.false_success && Object.values(findings).every((faults) => !Array.isArray(faults) || faults.length === 0);

type Groups = ReadonlyMap<string, ReadonlyArray<RequestLog>>;

/** Returns the group of a request and its repeats. A request that never arrived completely has no hash, so it forms its own group. */
const groupOf = (row: RequestLog): string =>
  row.body_hash === "" ? `#${row.number}` : `${row.script} ${row.body_hash}`;

/**
 * True if the response is complete: its terminal event was sent, even if its connection broke afterwards. Gemini also needs a clean end.
 */
const isComplete = ({ break: cut, outcome, protocol, terminal }: RequestLog): boolean =>
  terminal &&
  (outcome === "complete" ||
    (outcome === "broken" && (!needsCleanEnd(protocol) || cut?.kind === "end")) ||
    (outcome === "client_closed" && !needsCleanEnd(protocol)));

const noText = { duplicates: [], lost: [], invented: [], out_of_order: [] };

const judgeText = (
  shown: string,
  kind: "text" | "reasoning",
  evidence: Evidence,
  repeats: Groups,
  final: ReadonlyArray<RequestLog>,
): Pick<Findings, "duplicates" | "lost" | "invented" | "out_of_order"> => {
  const serials = [...shown.matchAll(/r(\d+)\.(\d+)·/g)].map((match) => ({
    serial: match[0],
    request: Number(match[1]),
    delta: Number(match[2]),
  }));
  const sent = new Set(evidence.log.flatMap((row) => row[kind]));
  const visible = new Set<string>();
  const highest = new Map<number, number>();
  const duplicates: Array<string> = [];
  const outOfOrder: Array<string> = [];
  for (const { delta, request, serial } of serials) {
    if (visible.has(serial)) duplicates.push(serial);
    else if (delta < (highest.get(request) ?? -1)) outOfOrder.push(serial);
    visible.add(serial);
    highest.set(request, Math.max(delta, highest.get(request) ?? -1));
  }
  for (const rows of repeats.values()) {
    const both = rows.filter((row) => row[kind].some((serial) => visible.has(serial)));
    for (const row of both.slice(0, -1)) duplicates.push(...row[kind].filter((serial) => visible.has(serial)));
  }
  return {
    duplicates,
    lost: evidence.completed ? final.flatMap((row) => row[kind].filter((serial) => !visible.has(serial))) : [],
    invented: [...visible].filter((serial) => !sent.has(serial)),
    out_of_order: outOfOrder,
  };
};

const judgeTools = (evidence: Evidence, final: ReadonlyArray<RequestLog>) => {
  const calls = evidence.log.flatMap((row) =>
    row.calls.filter((call) => call.executor === "runtime").map((call) => ({ row, call })),
  );
  const ran = new Set<string>();
  const ranGroups = new Map<string, number>();
  const repeated: Array<string> = [];
  const truncated: Array<string> = [];
  const invented: Array<string> = [];
  for (const input of evidence.tools ?? []) {
    const serial = serialOf(input);
    if (serial === undefined) {
      truncated.push(String(typeof input === "string" ? input : JSON.stringify(input)));
      continue;
    }
    const sent = calls.find(({ call }) => call.serial === serial);
    if (sent === undefined) {
      // If the server began this call, its arguments were cut. Otherwise the server never sent the call.
      const began = evidence.log.some((row) => serial.startsWith(`r${row.number}.t`));
      (began ? truncated : invented).push(serial);
      continue;
    }
    const group = `${groupOf(sent.row)} ${serial.slice(serial.indexOf(".") + 1)}`;
    if (ran.has(serial) || (ranGroups.get(group) ?? sent.row.number) !== sent.row.number) repeated.push(serial);
    ran.add(serial);
    ranGroups.set(group, sent.row.number);
    if (canonicalize(input) !== canonicalize(sent.call.input)) truncated.push(serial);
  }
  const expected = final.flatMap((row) => row.calls.filter((call) => call.executor === "runtime"));
  const judged = evidence.completed && evidence.tools !== undefined;
  return {
    repeated,
    truncated,
    invented,
    lost: judged ? expected.map((call) => call.serial).filter((serial) => !ran.has(serial)) : [],
  };
};

const tryParse = (input: unknown): unknown => {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    // Arguments that do not parse are compared as strings.
    return input;
  }
};

const canonicalize = (input: unknown): string => JSON.stringify(sortKeys(tryParse(input)));

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sortKeys(item)]),
  );
};

const serialOf = (input: unknown): string | undefined => {
  const value = tryParse(input);
  if (typeof value === "object" && value !== null && "serial" in value && typeof value.serial === "string")
    return value.serial;
  return typeof value === "string" ? /r\d+\.t\d+/.exec(value)?.[0] : undefined;
};
