/**
 * Draws what the chats of a batch meet: answers that break, tools that take their time, and when their process is killed.
 */
import { Schema } from "effect";
import { protocols } from "../../../src/provider/Protocols.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { Dice } from "../../simulation/Dice.ts";

/** One chat: what it speaks, and whether text that broke off is gone on with unasked. */
export const Plan = Schema.Struct({
  chat: Schema.String,
  protocol: Schema.Literals(["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"]),
  continueText: Schema.Literals(["ask", "auto"]),
});
export type Plan = typeof Plan.Type;

/** What the worker is told. */
export const Work = Schema.Struct({
  url: Schema.String,
  /** The folder of the chats. */
  at: Schema.String,
  /** The store of their runs; left out, a file of that folder. */
  db: Schema.optionalKey(Schema.String),
  plans: Schema.Array(Plan),
});
export type Work = typeof Work.Type;

/** Chats that live in one process at a time. */
export interface Batch {
  readonly seed: number;
  readonly plans: ReadonlyArray<Plan>;
  readonly script: FaultScriptInput;
  /** After how many milliseconds of work each process is killed; the one after the last is left alone. */
  readonly kills: ReadonlyArray<number>;
}

/** Longest life of a process that will be killed, in milliseconds: the chats of a batch are done in about as much. */
const lifeMsMax = 900;

/** The line that a shell call appends: once a call, and only if it runs. */
const mark = { tool: "shell", input: { command: "echo mark >> marks; sleep 0.08" } } as const;

const note = { tool: "write_file", input: { path: "a.txt", content: "noted" } } as const;

/** Draws a batch of chats from a seed. */
export const draw = (seed: number, chats: number, kills: number): Batch => {
  const rolled = new Dice(seed);
  const random = () => rolled.next();
  const below = (limit: number) => Math.floor(random() * limit);
  const scripts: Record<string, NonNullable<FaultScriptInput["answers"]>> = {};
  const plans = Array.from({ length: chats }, (_, index): Plan => {
    const chat = `kill-${seed}-${index}`;
    // The last response repeats. It is whole, so that a client that asks often enough gets one.
    const answers = Array.from({ length: 2 + below(3) }, () => answer(random));
    scripts[chat] = [...answers, { content: [{ text: 3 }], delay_ms: 10 }];
    return {
      chat,
      protocol: protocols.ids[below(protocols.ids.length)] ?? "openai-chat",
      continueText: random() < 0.5 ? "auto" : "ask",
    };
  });
  const lives = Array.from({ length: kills }, () => 30 + below(lifeMsMax));
  return { seed, plans, script: { answers: [{ content: [{ text: 1 }] }], scripts }, kills: lives };
};

const answer = (random: () => number): NonNullable<FaultScriptInput["answers"]>[number] => {
  const text = { text: 1 + Math.floor(random() * 4) };
  const call = random() < 0.7 ? mark : note;
  const content = random() < 0.3 ? [call] : random() < 0.5 ? [text, call] : [text, call, { text: 2 }, mark];
  const delay_ms = 5 + Math.floor(random() * 30);
  const fate = random();
  if (fate < 0.5) return { content, delay_ms };
  const kind = fate < 0.7 ? "rst" : fate < 0.85 ? "fin" : "end";
  return random() < 0.4
    ? { content, delay_ms, break: { kind, at: "terminal" } }
    : { content, delay_ms, break: { kind, at: "event", n: 1 + Math.floor(random() * 14) } };
};
