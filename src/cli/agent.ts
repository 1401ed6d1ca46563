/**
 * `stream-recovery agent`: the reference runtime in a terminal.
 */
import { mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Clock, Console, Effect, Option, Random, References, Runtime, Schema } from "effect";
import { Command, Flag } from "effect/cli";
import type { ConversationError } from "../agent/cluster/index.ts";
import * as Chats from "../agent/conversation/Chats.ts";
import { type AgentError, type AgentOptions, layer, open, stepsMaxDefault } from "../agent/index.ts";
import * as LineReader from "../agent/terminal/LineReader.ts";
import * as Prompter from "../agent/terminal/Prompter.ts";
import * as Session from "../agent/terminal/Session.ts";
import { TerminalView } from "../agent/terminal/TerminalView.ts";
import { protocols } from "../provider/Protocols.ts";
import type { RecorderError } from "../recorder/RecorderError.ts";
import { parseDuration } from "../recorder/retention/Duration.ts";
import type { Retention } from "../recorder/retention/Retention.ts";
import { defaultFile, ownFile } from "../recorder/sql/sqlite/SqlFile.ts";
import * as RunStore from "../recorder/store/RunStore.ts";
import { relative } from "../story/Times.ts";
import * as ClusterAgent from "./agent/ClusterAgent.ts";
import { dbFlag, foreignStore, memoryHoldsNothing, retentionByVariables } from "./command/Store.ts";
import { quoted } from "./terminal/Screen.ts";

const exitCodes = {
  ...{ stopped: 1, steps: 1, refused: 2, store: 3, parked: 4, no_owner: 5, cancelled: 130, left: 130 },
} as const;

const help = `Talk to a model that works with files and a shell in one directory. Its requests are recovered where that is proven safe, and asked about where it is not; what it does survives its own crash.

  The shell tool is not a security boundary: a command can read, change and send whatever your user can. The file tools stay inside of the directory. --no-shell leaves the shell out.

  Ctrl-C cancels the running request and its tool; twice leaves. A question is answered by its number or word; Enter takes the default, and the end of the input (Ctrl-D) leaves it open. A retry that may run a tool again names the tool and what it was to do, and is asked for twice.

  The key is read from the environment, and never stored or printed.

  --cluster shares conversations between machines over --db postgres://…: with --node this process owns its part of them until it is told to end, and without it says --prompt, or what you type, to --chat wherever that is owned. A conversation has one owner; when that dies another node goes on, and a call waits 10 s for one. --forget deletes what the store keeps of it. Whoever may use the store may use the nodes' tools: docs/cluster.md.

  Exit codes:
    0    the model has responded
    1    it has not: the run was stopped, or the limit of requests reached
    2    bad input, or refused
    3    the chat or the store of runs cannot be read or written
    4    a question is open: --resume asks it again, and so does \`runs answer\`
    5    --cluster: no live node owns the conversation
    130  cancelled by Ctrl-C
    143  ended by SIGTERM: --resume goes on`;

const text = (name: string, description: string, metavar: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.withMetavar(metavar), Flag.optional);

const flags = {
  prompt: text("prompt", "Say this, and end with the response; without it what you type is said", "text"),
  chat: text("chat", "The chat to go on with, or the name of a new one", "id"),
  resume: Flag.Boolean("resume").pipe(
    Flag.withDescription(
      "Only end what an earlier process left open: in that of --chat, else in the one chat that was left open",
    ),
    Flag.withDefault(false),
  ),
  dir: text("dir", "Directory that the tools work in (default: a new temporary one)", "dir"),
  shell: Flag.Boolean("shell").pipe(
    Flag.withDescription("Offer the shell tool (--no-shell: do not)"),
    Flag.withDefault(true),
  ),
  shellTimeout: Flag.Int("shell-timeout").pipe(
    Flag.withDescription("How long a command may run, in seconds"),
    Flag.withDefault(60),
  ),
  protocol: Flag.Literals("protocol", protocols.ids).pipe(
    Flag.withDescription("What the endpoint speaks (default: openai-chat)"),
    Flag.optional,
  ),
  url: text("url", "Base address (https://host/v1) or whole endpoint (default: that of the protocol's vendor)", "url"),
  model: text("model", "The model; needed for a new chat", "name"),
  keyEnv: text(
    "key-env",
    "Environment variable with the key (default: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY)",
    "name",
  ),
  db: dbFlag,
  steps: Flag.Int("steps").pipe(
    Flag.withDescription("Requests of one turn at most"),
    Flag.withDefault(stepsMaxDefault),
  ),
  continueText: Flag.Literals("continue-text", ["ask", "auto"]).pipe(
    Flag.withDescription("Whether a response whose text broke off is continued without a question"),
    Flag.withDefault("ask" as const),
  ),
  leaseMs: Flag.Int("lease-ms").pipe(
    Flag.withDescription("How long after a crash the next process waits, in milliseconds"),
    Flag.withDefault(3_000),
  ),
  cluster: Flag.Boolean("cluster").pipe(
    Flag.withDescription("Share conversations with other machines over --db postgres://…; see --node"),
    Flag.withDefault(false),
  ),
  node: text("node", "With --cluster: own conversations, and be reached there by other nodes and callers", "host:port"),
  forget: Flag.Boolean("forget").pipe(
    Flag.withDescription(
      "With --cluster: forget the conversation of --chat, or those of --older-than; one whose turn is open stays",
    ),
    Flag.withDefault(false),
  ),
  olderThan: text("older-than", "With --forget: all to which nothing was added for so long: 30d, 12h, 2w", "duration"),
  force: Flag.Boolean("force").pipe(
    Flag.withDescription("With --forget: also where a turn is open, or the journal cannot be read"),
    Flag.withDefault(false),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print every event as a line of JSON; questions stand on stderr"),
    Flag.withDefault(false),
  ),
};

type Given = Command.Command.Config.Infer<typeof flags>;

/** The agent did not do what it was asked for. Why stands on the screen. */
export class AgentFailed extends Schema.TaggedError<AgentFailed>()("AgentFailed", {
  reason: Schema.Literals(["stopped", "steps", "refused", "store", "parked", "no_owner", "cancelled", "left"]),
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = exitCodes[this.reason];
  override readonly [Runtime.errorReported] = false;
}

/** `agent`. */
export const agentCommand = Command.make("agent", flags, (given) => agent(given)).pipe(
  Command.withDescription(help),
  Command.withShortDescription("Talk to a model that works with files and a shell, and survives breaks and crashes"),
  Command.withExamples([
    { command: "stream-recovery faults --port 4010 --script faults.json", description: "A provider that breaks" },
    {
      command: 'stream-recovery agent --url http://127.0.0.1:4010 --model any --prompt "Tidy up"',
      description: "An agent that works with it",
    },
    {
      command: "stream-recovery agent --protocol anthropic-messages --model claude-sonnet-4-5 --dir .",
      description: "With ANTHROPIC_API_KEY in the environment, in this directory",
    },
    {
      command:
        "stream-recovery agent --cluster --node 10.0.0.7:34431 --db postgres://… --model claude-sonnet-4-5 --dir /shared",
      description: "A node that owns its part of the conversations",
    },
    { command: "stream-recovery agent --resume", description: "End what a killed process left open" },
  ]),
);

const agent = Effect.fn("cli.agent")(function* (given: Given) {
  const db = Option.getOrUndefined(given.db) ?? defaultFile();
  const foreign = foreignStore(db);
  if (foreign !== undefined) return yield* fails("refused", foreign);
  if (db === RunStore.inMemory) return yield* fails("refused", memoryHoldsNothing);
  if (given.forget) return yield* forgetting(given, db);
  const retention = retentionByVariables();
  if (typeof retention === "string") return yield* fails("refused", retention);
  if (given.cluster) return yield* clustered(given, db, retention);
  if (Option.isSome(given.node)) return yield* fails("refused", "--node is for --cluster");
  // Chats stay on the machine whose files they are about.
  const folder = join(dirname(RunStore.isServer(db) ? ownFile() : db), "chats");
  const chat = yield* chatOf(given, folder);
  if (chat === undefined) return yield* Console.log("no chat was left open");
  const { stderr, stdin, stdout } = process;
  const paper = given.json ? stderr : stdout;
  const view = new TerminalView(() => ({
    write: (text) => void paper.write(text),
    isTerminal: paper.isTTY === true,
    columns: paper.columns || 80,
    rows: paper.rows || 24,
    colours: paper.isTTY === true && process.env.NO_COLOR === undefined,
  }));
  const lines = LineReader.make(stdin);
  const isTerminal = stdin.isTTY === true;
  const { line, prompt, typed } = view;
  // A question comes from a run of the chat, so never before the chat is open.
  let called: Prompter.PrompterOptions["called"] = () => undefined;
  const prompter: Prompter.PrompterOptions = { lines, line, prompt, typed, isTerminal, called: (call) => called(call) };
  const ended = Effect.gen(function* () {
    const opened = yield* open({
      ...optionsOf(given, chat, folder),
      watch: given.json ? (event) => void stdout.write(`${JSON.stringify(event)}\n`) : view.watch,
      confirm: (call) => Prompter.confirm(prompter, call),
    });
    called = opened.called;
    view.line(`chat ${opened.chat.chat} · ${opened.chat.model} · works in ${opened.chat.dir}`);
    const task = taskOf(given);
    // In a pipe no person looks at what is typed.
    const shown = isTerminal ? { prompt: () => prompt("> "), typed } : { prompt: () => {}, typed: () => {} };
    const how = yield* Session.play({ agent: opened, task, lines, line, ...shown });
    if (how === "parked" || how === "left") view.line(`to go on: ${goOn(given, chat)}`);
    return how;
  }).pipe(
    Effect.scoped,
    Effect.provide(
      layer({ db, retention, leaseMs: given.leaseMs, ask: (question) => Prompter.ask(prompter, question) }),
    ),
    Effect.ensuring(Effect.sync(lines.close)),
    // A break is shown where the person looks; a log line in the middle of a response would tear it.
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.catchTags({
      AgentError: refused,
      RecorderError: ({ message }) => fails("store", message),
      ClientConfigError: ({ message }) => fails("refused", message),
    }),
  );
  const how = yield* ended;
  if (how !== "done") return yield* new AgentFailed({ reason: how, message: how });
});

/** A node, or a caller of conversations that nodes own. */
const clustered = Effect.fn("cli.agent.cluster")(function* (given: Given, db: string, retention: Retention) {
  if (!RunStore.isServer(db))
    return yield* fails("refused", "--cluster needs a store that machines share: --db postgres://…");
  const { leaseMs } = given;
  if (Option.isNone(given.node)) {
    if (Option.isNone(given.chat))
      return yield* fails("refused", "--cluster without --node needs --chat: which conversation is meant");
    const chat = given.chat.value;
    const how = yield* ClusterAgent.call({ db, leaseMs, chat, task: taskOf(given), json: given.json }).pipe(
      Effect.catchTags({ ConversationError: refusedThere, RecorderError: storeFailed }),
    );
    if (how !== "done") return yield* new AgentFailed({ reason: how, message: how });
    return;
  }
  const address = ClusterAgent.nodeOf(given.node.value);
  if (address === undefined) return yield* fails("refused", `--node: expected HOST:PORT, got ${given.node.value}`);
  if (Option.isNone(given.dir)) {
    return yield* fails("refused", "--node needs --dir: a folder that every node reaches by the same path");
  }
  const owner = { ...settingsOf(given), dir: resolve(given.dir.value) };
  return yield* ClusterAgent.node({ db, leaseMs, retention, address, owner }).pipe(
    Effect.catchTags({
      RecorderError: storeFailed,
      ClientConfigError: ({ message }) => fails("refused", message),
      SocketServerError: ({ message }) => fails("refused", `--node: ${message}`),
    }),
  );
});

/** Forgets conversations that nodes share. A chat of this machine is a file, and goes with it. */
const forgetting = Effect.fn("cli.agent.forget")(function* (given: Given, db: string) {
  if (!given.cluster || !RunStore.isServer(db))
    return yield* fails(
      "refused",
      "--forget is for --cluster and --db postgres://…: another chat is a file of its name",
    );
  const { chat, force, json, olderThan } = given;
  const idleMs = Option.isNone(olderThan) ? undefined : parseDuration(olderThan.value);
  if (Option.isSome(olderThan) && idleMs === undefined)
    return yield* fails("refused", "--older-than: expected a duration like 30d, 12h or 2w");
  if (Option.isSome(chat) === Option.isSome(olderThan))
    return yield* fails("refused", "--forget needs --chat or --older-than: which conversations are meant");
  const which = Option.isSome(chat) ? { chat: chat.value } : { idleMs: idleMs ?? 0 };
  const isDone = yield* ClusterAgent.forget({ db, json, which, force }).pipe(
    Effect.catchTags({ AgentError: refused, RecorderError: storeFailed }),
  );
  if (!isDone) return yield* new AgentFailed({ reason: "refused", message: "refused" });
});

const refusedThere = ({ message, reason }: ConversationError) =>
  fails(reason === "no_owner" || reason === "store" ? reason : "refused", message);

const storeFailed = ({ message }: RecorderError) => fails("store", message);

const refused = ({ message, reason }: AgentError) => fails(reason, message);

const fails = (reason: AgentFailed["reason"], message: string) =>
  Effect.andThen(Console.error(`agent: ${message}`), Effect.fail(new AgentFailed({ reason, message })));

const taskOf = ({ prompt, resume }: Given): Session.Task => {
  if (resume) return { _tag: "resume" };
  return Option.isSome(prompt) ? { _tag: "say", text: prompt.value } : { _tag: "talk" };
};

/** The chat that is meant: the named one, a new one, or the one that was left open; undefined where none was. */
const chatOf = ({ chat, resume }: Given, folder: string): Effect.Effect<string | undefined, AgentFailed> =>
  Effect.gen(function* () {
    if (Option.isSome(chat)) return chat.value;
    if (!resume)
      return `chat-${Math.floor((yield* Random.next) * 36 ** 6)
        .toString(36)
        .padStart(6, "0")}`;
    const { all, open, unreadable } = yield* Chats.find(folder);
    for (const { message } of unreadable) yield* Console.error(`agent: a chat cannot be read: ${message}`);
    if (all === 0) return yield* fails("refused", `no chat is in ${folder}`);
    if (open.length < 2) return open[0]?.chat;
    const now = yield* Clock.currentTimeMillis;
    const listed = open
      .slice(0, listedMax)
      .map(({ at, chat, model }) => `${chat} (${model}, ${relative(Math.round(at), now)})`);
    return yield* fails(
      "refused",
      `${open.length} chats were left open, name one by --resume --chat: ${listed.join(", ")}`,
    );
  });

/** Most chats that are listed, the newest. */
const listedMax = 10;

const optionsOf = (given: Given, chat: string, folder: string): Omit<AgentOptions, "watch" | "confirm"> => {
  const isNew = statSync(join(folder, `${chat}.jsonl`), { throwIfNoEntry: false }) === undefined;
  const dir = Option.getOrUndefined(given.dir);
  const named = dir === undefined ? (isNew ? mkdtempSync(join(tmpdir(), "agent-")) : undefined) : resolve(dir);
  return { chat, folder, ...settingsOf(given), ...(named === undefined ? {} : { dir: named }) };
};

const settingsOf = (given: Given): Omit<AgentOptions, "chat" | "dir" | "folder" | "watch" | "confirm"> => ({
  shell: given.shell,
  shellTimeoutMs: given.shellTimeout * 1_000,
  stepsMax: given.steps,
  continueText: given.continueText,
  ...(Option.isNone(given.protocol) ? {} : { protocol: given.protocol.value }),
  ...(Option.isNone(given.url) ? {} : { url: given.url.value }),
  ...(Option.isNone(given.model) ? {} : { model: given.model.value }),
  ...(Option.isNone(given.keyEnv) ? {} : { keyEnv: given.keyEnv.value }),
});

const goOn = ({ db }: Given, chat: string): string =>
  `stream-recovery agent --resume --chat ${chat}${Option.isNone(db) ? "" : ` --db ${quoted(db.value)}`}`;
