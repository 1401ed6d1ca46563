/**
 * The loop: asks the model, runs its tools, and asks again until the model calls none.
 *
 * Each request of the loop is a run of `StreamProcessor`, which recovers breaks. A run that a killed process has left open is
 * taken up by its record, and by the journal where its record has ended.
 */
import { randomUUID } from "node:crypto";
import { Effect, Queue, Stream } from "effect";
import {
  type AttemptContext,
  CallOutcomes,
  CrashRecovery,
  type GuardedTool,
  type ReadyCall,
  type RunEvent,
  type RunInterrupted,
  RunRecorder,
  type SettledCall,
  StreamProcessor,
  ToolGuard,
} from "effect-stream-recovery";
import { Continuation, type Part, ProtocolSeam } from "effect-stream-recovery/provider";
import { Seam } from "effect-stream-recovery/stages";
import { type Chat, type OpenRun, resultOf, startOf } from "./Chat.ts";
import { choose, oneLine, Person } from "./Person.ts";
import type { Tool } from "./Tools.ts";

/** Maximum requests of one turn. */
const requestsMax = 25;

/** Ends that leave a run on record for a later process. All others end the turn. */
const keepsOpen: ReadonlySet<RunInterrupted["reason"]> = new Set(["parked", "taken_over", "refused", "record_failed"]);

/** A chat, with the tools that run its calls. */
export interface Agent {
  readonly chat: Chat;
  readonly tools: ReadonlyArray<GuardedTool<ReadyCall, void, never, Person>>;
  /** The user has stopped the turn. */
  isStopped: boolean;
}

/** Makes an agent. Its tools are reached through the guard alone, which records each call before it starts. */
export const make = Effect.fn("Agent.make")(function* (chat: Chat, tools: ReadonlyArray<Tool>) {
  const guard = yield* ToolGuard;
  const guarded = tools.map((tool) =>
    guard.ofEffect(tool.effect)(tool.name, (call: ReadyCall) => handle(chat, tool, call), {
      verify: (call) => verify(chat, tool, call),
    }),
  );
  return { chat, tools: guarded, isStopped: false } satisfies Agent;
});

/** Runs a call: a line before the work, the work, and a line with its result. */
const handle = Effect.fn("Agent.handle")(function* (chat: Chat, tool: Tool, { attempt, call, input = "" }: ReadyCall) {
  const person = yield* Person;
  yield* chat.add({ _tag: "Started", attempt, call, tool: tool.name, input });
  const result = yield* Effect.match(tool.run(input), {
    onSuccess: (output) => ({ output, failed: false }),
    onFailure: ({ message }) => ({ output: message, failed: true }),
  });
  yield* chat.add({ _tag: "Result", attempt, call, ...result });
  yield* person.tell(`  ${result.failed ? "✗" : "✓"} ${oneLine(result.output)}`);
});

/** Says of a call that was cut off if it happened: by the journal, and if that cannot tell, by the tool. */
const verify = ({ run }: Chat, tool: Tool, call: ToolGuard.UnknownCall) => {
  const start = run && startOf(run, call);
  if (run === undefined || start === undefined) return Effect.succeed("it_did_not_run" as const);
  return resultOf(run, call) === undefined ? tool.verify(start.input) : Effect.succeed("it_ran" as const);
};

const runCall = Effect.fn("Agent.runCall")(function* ({ chat, tools }: Agent, ready: ReadyCall) {
  const person = yield* Person;
  const { attempt, call, input = "", tool: name } = ready;
  const tool = tools.find((it) => it.name === name);
  if (tool === undefined) {
    const output = `There is no tool ${name}.`;
    return yield* chat.add({ _tag: "Result", attempt, call, output, failed: true });
  }
  yield* person.tell(`▸ ${name} ${oneLine(input)}`);
  // A call is refused if its attempt was given up, and interrupted if the user stops the run. Neither ends the loop.
  const exit = yield* Effect.exit(tool.run(ready, ready));
  if (exit._tag === "Failure") yield* person.tell(`  ✗ ${name} was not run to its end`);
});

/** Describes a run to the library: how to ask the model, and what its answer proves. */
const requestOf = ({ chat, tools }: Agent, run: OpenRun, reached: Queue.Dequeue<number>) => {
  const { model } = chat;
  const seam = ProtocolSeam.make({ protocol: model.protocol, body: run.first, url: model.url })();
  for (const { part } of chat.response(run).parts) seam.left(part, part.observation);
  const attempt = (context: AttemptContext) =>
    Stream.unwrap(
      Effect.gen(function* () {
        // A request holds what came before it, so it is built once the loop has taken every event up to here.
        yield* Effect.repeat(Queue.take(reached), { until: (started) => started >= context.attempt });
        return model.stream(yield* chat.begin(context), context);
      }),
    );
  return {
    provider: { id: model.protocol, model: model.name },
    tools,
    transcript: JSON.stringify(run.first),
    attempt,
    canContinue: attempt,
    observe: (part: Part) => part.observation,
    continueText: "auto" as const,
    seam: Seam.of(() => seam),
  };
};

type Event = RunEvent.RunEvent<Part>;

/** Takes an event of a run. What it says is written down before it is shown or acted on. */
const take = Effect.fn("Agent.take")(function* (agent: Agent, event: Event, reached: Queue.Enqueue<number>) {
  const person = yield* Person;
  switch (event._tag) {
    case "AttemptStarted":
      yield* Queue.offer(reached, event.attempt);
      return;
    case "Part": {
      const { attempt, calls = [], ordinal, part } = event;
      const { data, event: name, id } = part.event;
      const line = { attempt, ordinal, event: name, data, ...(id === undefined ? {} : { id }) };
      if (!part.observation.keep_alive) yield* agent.chat.add({ _tag: "Part", ...line });
      yield* person.show(Continuation.textOf(part));
      yield* Effect.forEach(calls, (call) => runCall(agent, call), { discard: true });
      return;
    }
    case "AttemptDiscarded": {
      const { attempt, keep_through } = event;
      yield* agent.chat.add({ _tag: "Discard", attempt, keep_through });
      yield* person.tell("⤺ the unfinished answer above is withdrawn");
      return;
    }
    case "RetryScheduled":
      yield* person.tell(`↻ ${event.message}`);
  }
});

/** Plays a run to its end: a new one, or one that an earlier process has begun. */
const play = Effect.fn("Agent.play")(function* (agent: Agent, run: OpenRun, way: "run" | "takeUp") {
  const person = yield* Person;
  const processor = yield* StreamProcessor;
  const reached = yield* Queue.unbounded<number>();
  const request = requestOf(agent, run, reached);
  const events =
    way === "run"
      ? processor.run({ ...request, runId: run.id })
      : processor.takeUp(run.id, { request, transcript: request.transcript });
  return yield* Stream.runForEach(events, (event) => take(agent, event, reached)).pipe(
    Effect.as("completed" as const),
    Effect.catchTag("RunInterrupted", ({ message, reason }) =>
      Effect.as(person.tell(`· ${message}`), keepsOpen.has(reason) ? ("open" as const) : ("stopped" as const)),
    ),
  );
});

/** Finds how the run of an earlier process goes on, once that process is known to be gone. */
const wayOn = Effect.fn("Agent.wayOn")(function* ({ id }: OpenRun) {
  const person = yield* Person;
  const recorder = yield* RunRecorder;
  yield* person.tell(`↻ taking up run ${id} of an earlier process`);
  while (true) {
    yield* CrashRecovery.recover();
    const record = yield* recorder.run(id);
    // The process died before it sent anything.
    if (record === undefined) return "run" as const;
    // It died after the end of its run, and before the line that says so.
    if (record.state === "ended") return record.end?.state === "completed" ? "completed" : "stopped";
    if (record.parked !== undefined) return "takeUp" as const;
    yield* Effect.sleep("100 millis");
  }
});

/** Asks the person about a call of a whole response: its process died while it ran, and neither record nor tool can tell. */
const confirm = Effect.fn("Agent.confirm")(function* (run: OpenRun, call: SettledCall) {
  const input = oneLine(startOf(run, call)?.input ?? "");
  const question = `The process died while ${call.tool} ran: ${input}. Did it take effect?`;
  const verdict = yield* choose(question, ["it_ran", "it_did_not_run"]);
  if (verdict !== "parked") yield* CallOutcomes.settle(run.id, call, verdict);
  return verdict;
});

/** Writes down that a run has ended, with the outcome of each call of its response. */
const end = Effect.fn("Agent.end")(function* (agent: Agent, run: OpenRun, ending: "completed" | "stopped") {
  const { chat, isStopped, tools } = agent;
  const kept = new Set(chat.response(run).received.items.map(({ attempt, call }) => `${attempt}/${call}`));
  const calls: Array<SettledCall> = [];
  for (const call of yield* CallOutcomes.of(run.id, tools)) {
    if (!kept.has(`${call.attempt}/${call.call}`)) continue;
    const known = resultOf(run, call) === undefined ? call.outcome : "settled";
    const isAsked = known === "unknown" && ending === "completed" && !isStopped;
    const outcome = isAsked ? yield* confirm(run, call) : known;
    if (outcome === "parked") return "open" as const;
    calls.push({ ...call, outcome });
  }
  yield* chat.add({ _tag: "End", ending, calls });
  return ending;
});

/** Sends requests until the model calls no more tools. An `open` turn goes on with `--resume`. */
export const resume = Effect.fn("Agent.resume")(function* (agent: Agent) {
  const { chat } = agent;
  agent.isStopped = false;
  for (let request = 1; request <= requestsMax; request += 1) {
    if (!chat.isOpen) return "done" as const;
    const left = chat.run;
    const run = left ?? (yield* chat.beginRun(randomUUID()));
    const way = left === undefined ? "run" : yield* wayOn(left);
    const ending = way === "run" || way === "takeUp" ? yield* play(agent, run, way) : way;
    const how = ending === "open" ? ending : yield* end(agent, run, ending);
    if (how !== "completed") return how;
    // A response may be whole while its tool still runs: the user's stop then ends the turn, and not the run.
    if (agent.isStopped) return "stopped" as const;
  }
  return chat.isOpen ? ("open" as const) : ("done" as const);
});

/** Says something to the model, and plays the turn to its end. */
export const say = (agent: Agent, text: string) =>
  Effect.andThen(agent.chat.add({ _tag: "User", text }), resume(agent));

/** Stops the running request and its tool in the user's name. */
export const stop = Effect.fn("Agent.stop")(function* (agent: Agent) {
  agent.isStopped = true;
  if (agent.chat.run !== undefined) yield* (yield* StreamProcessor).cancel(agent.chat.run.id);
});
