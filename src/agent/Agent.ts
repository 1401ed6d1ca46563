/**
 * An agent: asks a model, runs its tools, asks again, and keeps the conversation, also when its process is killed in between.
 *
 * The loop is short because each request is a run of StreamProcessor, which recovers breaks. The agent itself writes everything
 * down before it is used, and goes on after a crash with the run that was open.
 */
import { mkdirSync } from "node:fs";
import { Effect, Random, type Scope } from "effect";
import type { ProviderClient } from "../client/index.ts";
import { type ProtocolId, protocols } from "../provider/Protocols.ts";
import type { RunRecorder } from "../recorder/RunRecorder.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";
import type { ToolGuard } from "../runtime/tools/ToolGuard.ts";
import type { TurnEnd, Watcher } from "./AgentEvent.ts";
import { AgentError } from "./conversation/AgentError.ts";
import type { StartedCall } from "./conversation/ChatRun.ts";
import { ChatState } from "./conversation/ChatState.ts";
import { type CallVerdict, type Chat, type Ending, journalVersion } from "./conversation/Entry.ts";
import * as Journal from "./conversation/Journal.ts";
import type { SpokenTurn } from "./conversation/SpokenTurn.ts";
import * as Endpoint from "./Endpoint.ts";
import * as ModelStep from "./ModelStep.ts";
import * as OpenRun from "./OpenRun.ts";
import * as Toolbox from "./Toolbox.ts";
import * as FileTools from "./tools/FileTools.ts";
import { Sandbox } from "./tools/Sandbox.ts";
import * as ShellTool from "./tools/ShellTool.ts";

/** Most requests of one turn, by default. */
export const stepsMaxDefault = 25;

/** The system prompt of a new chat, by default. */
export const systemDefault =
  "You are a careful assistant with tools that work in one directory. Use them to do what the user asks, look at results before you go on, and say in a few words what you did.";

/** What an agent is made of. An option that the chat has on record may be left out, and must not differ. */
export interface AgentOptions {
  /** The chat's name: 1 to 64 letters, digits, `_` and `-`. An existing chat is continued. */
  readonly chat: string;
  /** The folder of the chats' journals. */
  readonly folder: string;
  /** The directory that the tools work in; needed for a new chat. */
  readonly dir?: string;
  /** Default `openai-chat`. */
  readonly protocol?: ProtocolId;
  /** A base address or a whole endpoint; default that of the protocol's vendor. Never with a key in it. */
  readonly url?: string;
  /** Needed for a new chat. */
  readonly model?: string;
  /** The environment variable that holds the key; default that of the protocol's vendor. */
  readonly keyEnv?: string;
  /** Whether there is a shell tool; default true. It is no security boundary. */
  readonly shell?: boolean;
  /** How long a command may run, in milliseconds. */
  readonly shellTimeoutMs?: number;
  /** The system prompt of a new chat. */
  readonly system?: string;
  /** Most requests of one turn. */
  readonly stepsMax?: number;
  /** Whether a response whose text broke off is continued without asking; default `ask`. */
  readonly continueText?: "ask" | "auto";
  /** Whether a response is shown as it comes (`live`, the default), or only once it is proven whole. */
  readonly reveal?: "live" | "on_complete";
  /** Called with everything that happens. */
  readonly watch: Watcher;
  /** Asks a person about a call of unknown outcome whose run has ended: that run cannot ask any more. */
  readonly confirm: (call: StartedCall) => Effect.Effect<CallVerdict | "parked">;
}

/** An agent with its chat. */
export interface Agent {
  readonly chat: Chat;
  /** The chat's file. */
  readonly file: string;
  /** Whether an earlier process left a turn that has not ended. */
  readonly isOpen: () => boolean;
  /** Sends what the user says, and goes on until the turn has ended. A turn that an earlier process left open comes first. */
  readonly say: (text: string) => Effect.Effect<TurnEnd, AgentError>;
  /** Goes on with the turn that an earlier process left open. */
  readonly goOn: Effect.Effect<TurnEnd, AgentError>;
  /** The newest turn, as the journal has it. */
  readonly turn: () => SpokenTurn;
  /** Finds a call of the open run, with its input, by the key that questions name; undefined where no tool began it. */
  readonly called: (call: string) => StartedCall | undefined;
  /** Cancels the running request in the user's name, its running tool with it. Returns whether there was one. */
  readonly cancel: Effect.Effect<boolean>;
}

type Services = StreamProcessor | ToolGuard | ProviderClient | RunRecorder;

/** Opens a chat, or begins one. */
export const open = (options: AgentOptions): Effect.Effect<Agent, AgentError, Services | Scope.Scope> =>
  Effect.flatMap(Journal.open(options.folder, options.chat), (journal) => openOn(options, journal));

/** Opens a chat on a journal that is kept elsewhere than in a folder. */
export const openOn = (
  options: Omit<AgentOptions, "folder">,
  journal: Journal.Journal,
): Effect.Effect<Agent, AgentError, Services | Scope.Scope> =>
  Effect.gen(function* () {
    const chat = yield* chatOf(options, journal);
    const sandbox = yield* Effect.try({
      try: () => {
        mkdirSync(chat.dir, { recursive: true });
        return new Sandbox(chat.dir);
      },
      catch: (cause) => refused("dir", cause),
    });
    const shell = chat.shell ? [ShellTool.make(sandbox, options.shellTimeoutMs)] : [];
    const tools = [...FileTools.make(sandbox), ...shell];
    const state = new ChatState(chat, tools, journal.append);
    for (const entry of journal.entries) state.apply(entry);
    const toolbox = yield* Toolbox.make(tools, state, options.watch);
    const step: ModelStep.StepOptions = {
      chat,
      state,
      toolbox,
      watch: options.watch,
      keyEnv: options.keyEnv ?? protocols.get(chat.protocol).address.keyEnv,
      continueText: options.continueText ?? "ask",
      reveal: options.reveal ?? "live",
    };
    const processor = yield* StreamProcessor;
    const services = yield* Effect.context<Services>();
    const cancelled = { yes: false };
    const turn = Effect.provideContext(runTurn(options, step, cancelled), services);
    return {
      chat,
      file: journal.file,
      isOpen: () => state.isOpen,
      say: (text) =>
        Effect.gen(function* () {
          if (state.isOpen) {
            const before = yield* turn;
            if (before.how === "parked") return before;
          }
          yield* state.add({ _tag: "User", text });
          return yield* turn;
        }),
      goOn: turn,
      turn: () => state.turn,
      called: (call) => state.openRun?.newestStartOf(call),
      cancel: Effect.suspend(() => {
        cancelled.yes = true;
        const run = state.openRun?.run;
        return run === undefined ? Effect.succeed(false) : processor.cancel(run);
      }),
    };
  });

/** The chat as its first line says it, or a new first line. */
const chatOf = (options: Omit<AgentOptions, "folder">, journal: Journal.Journal): Effect.Effect<Chat, AgentError> =>
  Effect.gen(function* () {
    const [first] = journal.entries;
    if (first !== undefined) {
      if (first._tag !== "Chat") return yield* refused("chat", `${journal.file} begins with ${first._tag}`);
      for (const name of ["protocol", "url", "model", "dir"] as const) {
        const given = options[name];
        if (given !== undefined && given !== first[name]) {
          return yield* refused(name, `the chat was begun with ${first[name]}, got ${given}`);
        }
      }
      return first;
    }
    const protocol = options.protocol ?? "openai-chat";
    if (options.model === undefined) return yield* refused("model", "a new chat needs one");
    if (options.dir === undefined) return yield* refused("dir", "a new chat needs one");
    const chat: Chat = {
      _tag: "Chat",
      version: journalVersion,
      chat: options.chat,
      protocol,
      url: yield* Endpoint.checked(options.url ?? protocols.get(protocol).address.vendor),
      model: options.model,
      dir: options.dir,
      shell: options.shell ?? true,
      system: options.system ?? systemDefault,
    };
    yield* journal.append(chat);
    return chat;
  });

const refused = (field: string, why: unknown): AgentError =>
  new AgentError({ reason: "refused", message: `${field}: ${why instanceof Error ? why.message : String(why)}` });

/** Runs a turn: asks the model until it calls no more tools. */
const runTurn = (
  options: Omit<AgentOptions, "folder">,
  given: ModelStep.StepOptions,
  cancelled: { yes: boolean },
): Effect.Effect<TurnEnd, AgentError, Services> =>
  Effect.gen(function* () {
    cancelled.yes = false;
    const { state, watch } = given;
    const { stepsMax = stepsMaxDefault } = options;
    const ended = (how: TurnEnd["how"], run: string | undefined, message: string): TurnEnd => {
      const end: TurnEnd = { _tag: "TurnEnded", how, run, message };
      watch(end);
      return end;
    };
    for (let step = 1; step <= stepsMax; step += 1) {
      const left = state.openRun?.run;
      if (left === undefined && !state.goesOn) return ended("done", undefined, "");
      const run = left ?? (yield* beginRun(state));
      watch({ _tag: "StepStarted", run, step, resumed: left !== undefined });
      const played = left === undefined ? yield* firstStep(run, given) : yield* OpenRun.goOn(run, given);
      const outcome = cancelled.yes ? played : yield* OpenRun.judgeOpenCalls(run, played, given, options.confirm);
      if (outcome._tag === "ended") {
        // A response may be whole while its tool still runs: a cancel then ends the turn, not the run.
        const ending: Ending = cancelled.yes ? "cancelled" : outcome.ending;
        yield* state.add({ _tag: "End", run, ending });
        watch({ _tag: "StepEnded", run, attempts: outcome.attempts, finish: outcome.finish });
        if (cancelled.yes) return ended("cancelled", run, "by the user");
        continue;
      }
      const { reason, rule, message } = outcome.error;
      if (reason === "parked" || reason === "taken_over") return ended("parked", run, message);
      const ending: Ending = rule === "user_cancelled" ? "cancelled" : "stopped";
      yield* state.add({ _tag: "End", run, ending });
      return ended(ending, run, message);
    }
    const message = `the limit of ${stepsMax} requests a turn is reached; --resume goes on`;
    return state.goesOn ? ended("steps", undefined, message) : ended("done", undefined, "");
  });

/** Names a run, and writes its name down before the request is sent. Stores may be shared, so the name has a random part. */
const beginRun = (state: ChatState): Effect.Effect<string> =>
  Effect.gen(function* () {
    const own = Math.floor((yield* Random.next) * 2 ** 32).toString(36);
    const run = `${state.chat.chat}-${state.runs + 1}-${own}`;
    yield* state.add({ _tag: "Run", run });
    return run;
  });

const firstStep = (
  run: string,
  given: ModelStep.StepOptions,
): Effect.Effect<OpenRun.StepOutcome, never, StreamProcessor | ProviderClient> =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    const step = yield* ModelStep.make(run, given);
    return yield* OpenRun.outcomeOf(step.play(processor.run(step.options)));
  });
