/** Generates the provider's behaviour in one attempt: a head, a body of parts and calls, and one of many ends. */
import type { Failure, FailureKind } from "../../src/domain/Failure.ts";
import type { Dice } from "./Dice.ts";
import type { AttemptScript, PartStep, Step, ToolSpec } from "./Scenario.ts";

type IdStyle = "unique" | "empty" | "zero" | "repeated";

/**
 * Generates one attempt.
 *
 * @param ids the naming scheme of the provider's calls
 * @param index number of the attempt, from 0
 */
export const attemptScript = (
  dice: Dice,
  tools: ReadonlyArray<ToolSpec>,
  ids: IdStyle,
  index: number,
): AttemptScript => {
  const calls = new Calls(dice, tools, ids, index);
  const body = dice.times(dice.between(0, 6), () => bodyStep(dice, calls));
  // Early attempts usually break, so that runs have several attempts.
  const whole = dice.chance(index < 3 ? 0.12 : 0.5);
  return {
    steps: chunked(dice, [...head(dice), ...body.flat(), ...(whole ? wholeTail(calls) : tail(dice, calls))]),
    closes: dice.weighted<number | "hang">([
      [12, 0],
      [1, 300],
      [1, 5_000],
      [1, "hang"],
    ]),
    factoryThrows: dice.chance(0.01),
  };
};

const head = (dice: Dice): ReadonlyArray<Step> => [
  ...(dice.chance(0.12) ? [{ delivery: "not_sent" } as const] : []),
  ...(dice.chance(0.3) ? [waits(dice)] : []),
  ...(dice.chance(0.08) ? [{ delivery: dice.pick(["ambiguous", "accepted"] as const) }] : []),
  ...(dice.chance(0.75) ? [{ say: "start" } as const] : []),
];

const bodyStep = (dice: Dice, calls: Calls): ReadonlyArray<Step> =>
  dice.weighted<() => ReadonlyArray<Step>>([
    [6, () => [{ say: "text" }]],
    [3, () => [{ say: "reasoning" }]],
    [5, () => calls.step()],
    [1.2, () => calls.provider()],
    [3, () => [waits(dice)]],
    [1, () => [{ say: "ping" }]],
    [0.5, () => [{ say: "ping" }, { wait: 500 }, { say: "ping" }]],
    [0.5, () => [{ say: "usage" }]],
    [0.5, () => [{ bytes: 100 }]],
    [0.4, () => [{ stubborn: dice.pick([10, 1_500, 400_000]) }]],
  ])();

const waits = (dice: Dice): Step => ({
  wait: dice.weighted([
    [6, 1],
    [4, 20],
    [3, 600],
    [1, 3_000],
    [0.7, 100_000],
    [0.5, 200_000],
    [0.3, 1_300_000],
  ]),
});

const wholeTail = (calls: Calls): ReadonlyArray<Step> => [...calls.rest(), { say: "terminal" }];

const tail = (dice: Dice, calls: Calls): ReadonlyArray<Step> =>
  dice.weighted<() => ReadonlyArray<Step>>([
    [4, () => wholeTail(calls)],
    [4, () => [...calls.rest(), { say: "terminal" }, { say: "usage" }, { fail: failure(dice) }]],
    [
      2,
      () => [
        { say: "terminal" },
        { wait: 700 },
        { say: "text" },
        { say: "error", failure: failure(dice), terminal: false },
      ],
    ],
    [5, () => [...calls.rest(), { say: "terminal_at_end", text: dice.chance(0.5) }]],
    [2, () => [{ say: "terminal_at_end", text: true }, { say: "text" }]],
    [2, () => [{ say: "terminal_at_end", text: true }, { fail: failure(dice) }]],
    [26, () => [{ fail: failure(dice) }]],
    [8, () => [{ wait: 1 }, { fail: failure(dice) }]],
    [7, () => [{ say: "error", failure: failure(dice), terminal: false }]],
    [4, () => [{ say: "error", failure: failure(dice), terminal: false }, { say: "text" }, { say: "terminal" }]],
    [3, () => [{ die: true }]],
    [4, () => [{ interrupt: true }]],
    [6, () => []],
    [5, () => [{ never: true }]],
    [4, () => [malformed(dice)]],
    [2, () => [...calls.rest(), malformed(dice), { say: "text" }]],
    [1, () => [{ say: "terminal" }, { never: true }]],
    [1, () => [{ stubborn: 400_000 }, { say: "text" }]],
  ])();

/** A finish whose content is malformed but which is still the marker. */
const malformed = (dice: Dice): PartStep => ({
  say: "error",
  failure: { kind: dice.pick(["invalid_tool_input", "empty"]) },
  terminal: true,
});

const kinds: readonly [FailureKind, ...Array<FailureKind>] = [
  "transport",
  "transport",
  "transport",
  "truncated",
  "stalled",
  "rate_limited",
  "overloaded",
  "server_error",
  "rejected",
  "protocol",
  "invalid_tool_input",
  "empty",
  "cancelled",
  "caller_failed",
  "crashed",
  "unknown",
];

const failure = (dice: Dice): Failure => {
  const flags = {
    ...(dice.chance(0.08) ? { retryable: dice.chance(0.5) } : {}),
    ...(dice.chance(0.08) ? { not_processed: dice.chance(0.5) } : {}),
    ...(dice.chance(0.05) ? { in_band: true } : {}),
    ...(dice.chance(0.08) ? { retry_after_ms: dice.pick([0, 10, 3_000, 90_000]) } : {}),
  };
  const kind = dice.pick(kinds);
  switch (kind) {
    case "stalled":
      return { kind, clock: dice.pick(["connect", "first_progress", "idle", "silence", "attempt", "run"]), ...flags };
    case "rejected":
      return { kind, reason: dice.pick(["auth", "auth", "quota", "invalid_request", "context_overflow"]), ...flags };
    case "protocol":
      return { kind, reason: dice.pick(["damaged_frame", "oversize", "not_a_stream"]), ...flags };
    case "cancelled":
      return { kind, by: "provider", ...flags };
    case "server_error":
      return { kind, status: dice.pick([500, 501, 503]), ...flags };
    default:
      return { kind, ...flags };
  }
};

/** The calls of one attempt: each begins, gets its arguments and becomes whole, in any interleaving. */
class Calls {
  readonly #dice: Dice;
  readonly #tools: ReadonlyArray<ToolSpec>;
  readonly #ids: IdStyle;
  readonly #index: number;
  #ordinal = 0;
  #open: Array<{ readonly ordinal: number; readonly tool: string; readonly id: string; said: number }> = [];

  constructor(dice: Dice, tools: ReadonlyArray<ToolSpec>, ids: IdStyle, index: number) {
    this.#dice = dice;
    this.#tools = tools;
    this.#ids = ids;
    this.#index = index;
  }

  /** The next event of a call, either a new or a pending one. */
  step(): ReadonlyArray<Step> {
    const dice = this.#dice;
    if (this.#open.length === 0 || dice.chance(0.3)) {
      const ordinal = this.#ordinal++;
      const [first, ...more] = this.#tools.filter((tool) => tool.executor === "runtime").map(({ name }) => name);
      const known = first !== undefined && !dice.chance(0.06);
      const tool = known ? dice.pick([first, ...more]) : "mystery";
      if (!known && !dice.chance(0.3)) return [{ say: "text" }];
      const call = { ordinal, tool, id: this.#id(ordinal), said: 0 };
      // Some protocols send a call in one piece.
      if (dice.chance(0.4)) return [part(call, "ready")];
      this.#open.push(call);
    }
    const at = dice.between(0, this.#open.length - 1);
    const call = this.#open[at];
    if (call === undefined) return [];
    call.said += 1;
    if (call.said === 3) this.#open.splice(at, 1);
    return [part(call, call.said === 1 ? "input_started" : call.said === 2 ? "input_complete" : "ready")];
  }

  /** A call that the provider runs itself. */
  provider(): ReadonlyArray<Step> {
    const dice = this.#dice;
    const [first, ...more] = this.#tools.filter((tool) => tool.executor === "provider").map(({ name }) => name);
    if (first === undefined) return [];
    const tool = dice.pick([first, ...more]);
    const call = { ordinal: this.#ordinal++, tool, id: "p" };
    const begun = part(call, "input_started", "provider");
    return dice.chance(0.5) ? [begun] : [begun, part(call, "settled", "provider")];
  }

  /** Completes the pending calls: a model that finishes has finished its calls. */
  rest(): ReadonlyArray<Step> {
    const open = this.#open;
    this.#open = [];
    return open.map((call) => part(call, "ready"));
  }

  #id(ordinal: number): string {
    switch (this.#ids) {
      case "unique":
        return `call_${this.#index}_${ordinal}`;
      case "empty":
        return "";
      case "zero":
        return "0";
      case "repeated":
        return `call_${ordinal}`;
    }
  }
}

const part = (
  call: { readonly ordinal: number; readonly tool: string; readonly id: string },
  phase: "input_started" | "input_complete" | "ready" | "settled",
  executor: "runtime" | "provider" = "runtime",
): PartStep => ({ say: "call", phase, ordinal: call.ordinal, id: call.id, tool: call.tool, executor });

/** Joins neighbouring parts into chunks, because sources hand over whatever has arrived. */
const chunked = (dice: Dice, steps: ReadonlyArray<Step>): ReadonlyArray<Step> => {
  const joins = dice.chance(0.5) ? 0.4 : 0;
  const out: Array<Step> = [];
  let chunk: Array<PartStep> = [];
  const flush = () => {
    const [only] = chunk;
    if (only !== undefined) out.push(chunk.length === 1 ? only : { chunk });
    chunk = [];
  };
  for (const step of steps) {
    if (!("say" in step)) {
      flush();
      out.push(step);
      continue;
    }
    if (chunk.length > 0 && !dice.chance(joins)) flush();
    chunk.push(step);
  }
  flush();
  return out;
};
