/**
 * `node main.ts --model claude-sonnet-4-5`: an agent in the terminal. README.md says what it shows.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node";
import { Effect, Layer, Option, Path, References, Runtime, Schema } from "effect";
import { Command, Flag } from "effect/cli";
import { StreamProcessor } from "effect-stream-recovery";
import { ProviderClient } from "effect-stream-recovery/client";
import { SqlRunRecorder } from "effect-stream-recovery/sqlite";
import * as Agent from "./Agent.ts";
import * as Chat from "./Chat.ts";
import * as Models from "./Models.ts";
import { layerDecisions, Person } from "./Person.ts";
import * as Tools from "./Tools.ts";

/** The turn has not come to its end. The screen says why. */
class NotDone extends Schema.TaggedError<NotDone>()("NotDone", { reason: Schema.Literals(["stopped", "open"]) }) {
  override readonly [Runtime.errorExitCode] = this.reason === "open" ? 4 : 1;
  override readonly [Runtime.errorReported] = false;
}

const text = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description));

const flags = {
  model: text("model", "The model of a new chat").pipe(Flag.optional),
  protocol: Flag.Literals("protocol", Models.protocols).pipe(Flag.withDefault("anthropic-messages" as const)),
  base: text("base", "Another server, with its version: http://localhost:8080/v1").pipe(Flag.optional),
  dir: text("dir", "The folder in which the tools of a new chat work").pipe(Flag.withDefault("sandbox")),
  folder: text("folder", "Where chats and the record of their runs are kept").pipe(Flag.withDefault(".agent")),
  chat: text("chat", "The name of the chat").pipe(Flag.withDefault("chat")),
  prompt: text("prompt", "Say this and end; without it, say what is typed").pipe(Flag.optional),
  resume: Flag.Boolean("resume").pipe(
    Flag.withDescription("End the turn that a killed process has left open, and no more"),
    Flag.withDefault(false),
  ),
  // A process without a sign of life for this long counts as dead.
  leaseMs: Flag.Int("lease-ms").pipe(Flag.withDefault(3_000)),
};

type Given = Command.Command.Config.Infer<typeof flags>;

/** Plays a turn that Ctrl-C stops in the user's name. Pressed again, or at rest, Ctrl-C leaves. */
const stoppable = <A, E, R>(agent: Agent.Agent, turn: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const runFork = Effect.runForkWith(yield* Effect.context<StreamProcessor>());
    const before = process.listeners("SIGINT");
    const restored = Effect.sync(() => {
      process.removeAllListeners("SIGINT");
      for (const listener of before) process.on("SIGINT", listener);
    });
    process.removeAllListeners("SIGINT");
    process.once("SIGINT", () => {
      process.once("SIGINT", () => process.exit(130));
      runFork(Agent.stop(agent));
    });
    return yield* Effect.ensuring(turn, restored);
  });

const session = Effect.fn("session")(function* (given: Given) {
  const { base, chat: name, folder, prompt, protocol } = given;
  const path = yield* Path.Path;
  const person = yield* Person;
  const first = Option.map(given.model, (model) => ({
    ...{ _tag: "Chat" as const, protocol, model, dir: path.resolve(given.dir) },
    ...(Option.isNone(base) ? {} : { base: base.value }),
  }));
  const { chat, entries } = yield* Chat.open(path.join(folder, `${name}.jsonl`), Option.getOrUndefined(first));
  const tools = yield* Tools.make(chat.dir);
  chat.replay(tools, entries);
  const agent = yield* Agent.make(chat, tools);
  let end = chat.isOpen ? yield* stoppable(agent, Agent.resume(agent)) : ("done" as const);
  if (Option.isSome(prompt) && end !== "open") end = yield* stoppable(agent, Agent.say(agent, prompt.value));
  while (!given.resume && Option.isNone(prompt) && end !== "open") {
    const typed = yield* person.hear("> ");
    if (typed === undefined) break;
    if (typed.trim() !== "") end = yield* stoppable(agent, Agent.say(agent, typed));
  }
  if (end === "open") yield* person.tell(`to go on: node main.ts --folder ${folder} --chat ${name} --resume`);
  if (end !== "done") return yield* new NotDone({ reason: end });
});

const services = ({ folder, leaseMs }: Given) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(layerDecisions),
    Layer.provideMerge(Person.layer),
    Layer.provideMerge(SqlRunRecorder.layerFile({ file: `${folder}/runs.db`, leaseMs })),
    Layer.provideMerge(ProviderClient.layer()),
  );

Command.make("agent", flags, (given) => Effect.provide(Effect.scoped(session(given)), services(given))).pipe(
  Command.withDescription("Talk to a model that works in one folder. It survives breaks, and its own death."),
  Command.run({ version: "1" }),
  // A log line in the middle of an answer would tear it; the agent itself tells the person what happens.
  Effect.provideService(References.MinimumLogLevel, "Error"),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain,
);
