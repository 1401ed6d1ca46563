/**
 * Runs the Quint simulator over the model of ownership, and reads its traces.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Schema } from "effect";
import { install } from "../packages/Install.ts";

const invariants = [
  "effectsOnce",
  "dispatchedFirst",
  "keepsRun",
  "oneAnswer",
  "freshAnswer",
  "oneEnd",
  "ownEndCounts",
] as const;

/** The model with all guards of the stores. */
export const whole = "holds";

/** Models that lack one guard each, with the seed of a run that violates an invariant. */
export const controls: Readonly<Record<string, string>> = {
  withoutOwnerCheck: "0x1bcc8ec04284c3",
  withoutClaimCheck: "0x1d0df538846b8",
  withoutAnsweredCheck: "0xb2832969a0f6",
  withoutGrownCheck: "0x41f413b681f38",
  withoutDispatch: "0x16e82eb2297bfd",
  withoutQuestion: "0xed9ecff4a823e",
  withoutReopening: "0xc8489efd8f56b",
};

/** Maximum steps of one run of the model. */
const stepsMax = 25;

export interface Checked {
  /** True if no run violated an invariant. */
  readonly holds: boolean;
  /** The seed that repeats the run that violated one. */
  readonly seed: string | undefined;
  /** The simulator's own output. */
  readonly text: string;
}

/**
 * Simulates a model.
 *
 * @param model the whole model or one of the controls
 * @param given.samples runs to simulate
 * @param given.seed seed of the first run; default: a new one
 */
export const simulate = (
  model: string,
  given: { readonly samples: number; readonly seed?: string | undefined; readonly more?: ReadonlyArray<string> },
): Checked => {
  const { more = [], samples, seed } = given;
  const run = quint([
    ...["run", join(import.meta.dirname, "Ownership.qnt"), `--main=${model}`, "--backend=typescript"],
    ...[`--max-samples=${samples}`, `--max-steps=${stepsMax}`, ...(seed === undefined ? [] : [`--seed=${seed}`])],
    ...more,
    ...["--invariants", ...invariants],
  ]);
  const isViolated = run.text.includes("Invariant violated");
  if (run.status !== 0 && !isViolated) throw new Error(`quint failed: ${run.text}`);
  return { holds: !isViolated, seed: /--seed=(0x[0-9a-f]+)/.exec(run.text)?.[1], text: run.text };
};

const quint = (args: ReadonlyArray<string>): { readonly status: number | null; readonly text: string } => {
  const folder = import.meta.dirname;
  install(folder);
  const program = join(folder, "node_modules", "@informalsystems", "quint", "dist", "src", "cli.js");
  const { error, status, stderr, stdout } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });
  if (error !== undefined) throw error;
  return { status, text: `${stdout}${stderr}` };
};

/**
 * One step of a trace: the operation, the process, what it concerns (another process or an answer), and its outcome; then the state,
 * attempts, call, answer and question of run "d", and the state and kind of end of run "v" after it.
 */
export const Step = Schema.Tuple([
  Schema.String,
  Schema.String,
  Schema.String,
  Schema.String,
  Schema.String,
  Schema.Finite,
  Schema.String,
  Schema.String,
  Schema.Finite,
  Schema.String,
  Schema.String,
]);
export type Step = typeof Step.Type;

const State = Schema.Record(Schema.String, Schema.Unknown);
const Trace = Schema.Struct({ states: Schema.Array(State) });

/** The traces that tests replay: how many, and the seed that draws them. */
export const replayed = { count: 40, seed: "0x1" } as const;

/**
 * Draws traces of the whole model, without the steps that no store sees.
 *
 * @returns the traces; each starts with the first operation
 */
export const drawTraces = (count: number, seed: string): ReadonlyArray<ReadonlyArray<Step>> => {
  const folder = mkdtempSync(join(tmpdir(), "model-"));
  try {
    const more = [`--n-traces=${count}`, `--out-itf=${join(folder, "{seq}.json")}`];
    simulate(whole, { samples: 4 * count, seed, more });
    return readdirSync(folder)
      .toSorted()
      .map((file) => {
        const { states } = Schema.decodeUnknownSync(Trace)(JSON.parse(readFileSync(join(folder, file), "utf8")));
        return states.flatMap(stepOf);
      });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** The step that led to a state, if a store takes part in it. */
const stepOf = (state: typeof State.Type): ReadonlyArray<Step> => {
  const part = (name: string): Record<string, unknown> => Object(plain(state[`${whole}::Ownership::${name}`]));
  const [last, d, v] = [part("last"), part("d"), part("v")];
  if (last.op === "init" || last.op === "none") return [];
  const about = last.target === "" ? last.choice : last.target;
  // A store counts a run as live once its question is answered; the model waits until its owner carries the answer out.
  const shown = d.state === "asking" && d.answer !== "" ? "live" : d.state;
  const runs = [shown, d.attempts, d.call, d.answer, d.revision, v.state, v.end];
  return [Schema.decodeUnknownSync(Step)([last.op, last.by, about, last.outcome, ...runs])];
};

/** Replaces the trace format's integers by numbers. */
const plain = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if ("#bigint" in value) return Number(value["#bigint"]);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
};
