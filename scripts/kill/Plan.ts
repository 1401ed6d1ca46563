/**
 * Draws the runs of the kill test from a seed, so that a failed batch can be repeated.
 */
import { Schema } from "effect";
import { protocols } from "../../src/provider/Protocols.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import { seeded } from "../../test/Seeded.ts";

/** One run: its protocol, the abilities of its runtime, and the duration of its tool. */
export const Plan = Schema.Struct({
  run: Schema.String,
  protocol: Schema.Literals(protocols.ids),
  canContinue: Schema.Boolean,
  /** True if the tool can verify that a call happened. */
  verifies: Schema.Boolean,
  reveal: Schema.Literals(["live", "on_complete"]),
  /** Time between the tool's two marks, in milliseconds. */
  toolMs: Schema.Natural,
});
export type Plan = typeof Plan.Type;

/** A batch of runs that share one process at a time. */
export interface Batch {
  readonly seed: number;
  readonly plans: ReadonlyArray<Plan>;
  readonly script: FaultScriptInput;
  /** Lifetime of each process that is killed, in milliseconds. One more process then runs to the end. */
  readonly kills: ReadonlyArray<number>;
}

/** Maximum lifetime of a process that is killed, in milliseconds. The runs of a batch take about as long. */
const lifeMsMax = 700;

/**
 * Draws a batch.
 *
 * @param runs number of runs
 */
export const draw = (seed: number, runs: number): Batch => {
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const scripts: Record<string, NonNullable<FaultScriptInput["answers"]>> = {};
  const plans = Array.from({ length: runs }, (_, index): Plan => {
    const run = `kill-${seed}-${index}`;
    // The last response repeats. It is whole, so a client that asks often enough gets one.
    scripts[run] = [
      answer(random),
      answer(random),
      { content: [{ tool: "append", input: { line: "x" } }], delay_ms: 10 },
    ];
    // A continuation already has the tool's result, so the model only writes text.
    scripts[`${run}-on`] = [{ content: [{ text: 3 + below(5) }], delay_ms: below(30) }];
    return {
      run,
      protocol: protocols.ids[below(protocols.ids.length)] ?? "openai-chat",
      canContinue: random() < 0.6,
      verifies: random() < 0.3,
      reveal: random() < 0.8 ? "live" : "on_complete",
      toolMs: below(120),
    };
  });
  const kills = Array.from({ length: 1 + below(3) }, () => 20 + below(lifeMsMax));
  return { seed, plans, script: { answers: [{ content: [{ text: 1 }] }], scripts }, kills };
};

const answer = (random: () => number): NonNullable<FaultScriptInput["answers"]>[number] => {
  const text = { text: 1 + Math.floor(random() * 4) };
  const call = { tool: "append", input: { line: "x" } };
  const content = random() < 0.3 ? [call] : random() < 0.5 ? [text, call] : [text, call, { text: 2 }];
  const delay_ms = 5 + Math.floor(random() * 35);
  const fate = random();
  if (fate < 0.4) return { content, delay_ms };
  const kind = fate < 0.6 ? "rst" : fate < 0.8 ? "fin" : "end";
  const at = random() < 0.5 ? "terminal" : "event";
  return { content, delay_ms, break: at === "terminal" ? { kind, at } : { kind, at, n: 1 + Math.floor(random() * 6) } };
};
