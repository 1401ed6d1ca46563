/**
 * Plays runtimes over Chat Completions: one that is careful, and ones that each lack one thing.
 */
import type { ConformanceRuntime, ConformanceTask } from "../../../src/testing/index.ts";

/** What a runtime does; the careful one needs all of it. */
export interface Habits {
  /** Knows that an answer without a finish reason is cut. */
  readonly knowsTheEnd: boolean;
  /** Repeats a request that broke. */
  readonly repeats: boolean;
  /** Takes back what a broken answer showed. */
  readonly withdraws: boolean;
  /** Waits for the end of the answer before it runs a tool. */
  readonly waitsForTheEnd: boolean;
  /** Runs a tool with arguments that do not parse, as text. */
  readonly runsAnything: boolean;
  /** Gives calls that do not parse back to the model. */
  readonly tellsTheModel: boolean;
  /** Longest time for a request, in milliseconds. */
  readonly patienceMs: number;
}

/** A runtime that does everything right. */
export const careful: Habits = {
  knowsTheEnd: true,
  repeats: true,
  withdraws: true,
  waitsForTheEnd: true,
  runsAnything: false,
  tellsTheModel: false,
  patienceMs: 60_000,
};

/** A runtime of such habits. */
export const runtimeOf = (habits: Partial<Habits>): ConformanceRuntime => ({
  name: "test",
  protocols: ["openai-chat"],
  turn: (task) => turn(task, { ...careful, ...habits }),
});

/** Most requests of a turn: all that a fault needs, and no loop for ever. */
const requestsMax = 4;

const turn = async (task: ConformanceTask, habits: Habits): Promise<void> => {
  const messages: Array<object> = [{ role: "user", content: task.prompt }];
  for (let request = 1; request <= requestsMax; request += 1) {
    const before = task.screen.text();
    try {
      const call = await ask(task, habits, messages);
      if (call === undefined) return;
      messages.push({ role: "tool", content: call });
    } catch (error) {
      if (!habits.repeats || task.signal.aborted || request === requestsMax) throw error;
      if (habits.withdraws) task.screen.replace(before);
    }
  }
};

/** One request. Gives what the model is to be told of its call, or nothing when the turn is over. */
const ask = async (task: ConformanceTask, habits: Habits, messages: ReadonlyArray<object>) => {
  const signal = AbortSignal.any([task.signal, AbortSignal.timeout(habits.patienceMs)]);
  const body = JSON.stringify({ model: task.model, stream: true, messages });
  const response = await fetch(task.endpoint, { method: "POST", body, headers: task.headers, signal });
  if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
  const tool = task.tools[0];
  let call = "";
  let ran = false;
  let finish: unknown;
  for await (const data of events(response.body)) {
    const { choices, error } = JSON.parse(data);
    if (error !== undefined) throw new Error("the provider says an error");
    const delta = choices[0]?.delta;
    if (delta?.content) task.screen.write(delta.content);
    call += delta?.tool_calls?.[0]?.function?.arguments ?? "";
    finish ??= choices[0]?.finish_reason;
    if (!habits.waitsForTheEnd && !ran && parses(call)) ran = (await tool?.execute(call)) !== undefined;
  }
  if (habits.knowsTheEnd && finish === null) throw new Error("the answer was cut");
  if (call === "") return undefined;
  if (!ran && (parses(call) || habits.runsAnything)) return tool?.execute(call);
  return habits.tellsTheModel && !ran ? "your arguments are no JSON" : undefined;
};

const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let held = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    held += text;
    const frames = held.split("\n\n");
    held = frames.pop() ?? "";
    for (const frame of frames) if (frame.startsWith("data: {")) yield frame.slice("data: ".length);
  }
}
