/**
 * Draws what each run of the kill test does: from a seed, so that a run that went wrong can be played again.
 */
import { Schema } from "effect";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import { seeded } from "../../test/Seeded.ts";

const protocols: ReadonlyArray<ProtocolId> = ["anthropic-messages", "openai-chat", "openai-responses", "google-gemini"];

/** One run: what its provider says, what its runtime can do, and how long its tool works. */
export const Plan = Schema.Struct({
  run: Schema.String,
  protocol: Schema.Literals(["anthropic-messages", "openai-chat", "openai-responses", "google-gemini"]),
  canContinue: Schema.Boolean,
  /** The tool can say whether its call happened. */
  verifies: Schema.Boolean,
  reveal: Schema.Literals(["live", "on_complete"]),
  /** How long the tool works between its two marks, in milliseconds. */
  toolMs: Schema.Natural,
});
export type Plan = typeof Plan.Type;

/** A batch of runs that live in one process at a time. */
export interface Batch {
  readonly seed: number;
  readonly plans: ReadonlyArray<Plan>;
  readonly script: FaultScriptInput;
  /** After how many milliseconds of work each process is killed; the one after the last is left alone. */
  readonly kills: ReadonlyArray<number>;
}

/** Longest life of a process that will be killed, in milliseconds: a batch's runs are over in about as much. */
const lifeMsMax = 700;

/**
 * Draws a batch.
 *
 * @param runs how many runs
 */
export const draw = (seed: number, runs: number): Batch => {
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const scripts: Record<string, NonNullable<FaultScriptInput["answers"]>> = {};
  const plans = Array.from({ length: runs }, (_, index): Plan => {
    const run = `kill-${seed}-${index}`;
    // The last response repeats. It is whole, so that a client that asks often enough gets one.
    scripts[run] = [
      answer(random),
      answer(random),
      { content: [{ tool: "append", input: { line: "x" } }], delay_ms: 10 },
    ];
    // A continuation has what the tool did: the model only answers.
    scripts[`${run}-on`] = [{ content: [{ text: 3 + below(5) }], delay_ms: below(30) }];
    return {
      run,
      protocol: protocols[below(protocols.length)] ?? "openai-chat",
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
