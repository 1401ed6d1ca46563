/**
 * `stream-recovery agent --cluster`: a node that owns conversations, or a caller that talks to them wherever they are.
 */
import { Console, Deferred, Effect, Layer, References, type Scope } from "effect";
import * as AgentLayer from "../../agent/AgentLayer.ts";
import type {
  ConversationCaller,
  ConversationError,
  Forgotten,
  Meant,
  NodeAddress,
  OwnerOptions,
  Report,
} from "../../agent/cluster/index.ts";
import * as LineReader from "../../agent/terminal/LineReader.ts";
import * as Prompter from "../../agent/terminal/Prompter.ts";
import * as Session from "../../agent/terminal/Session.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import type { Retention } from "../../recorder/retention/Retention.ts";
import * as RunStore from "../../recorder/store/RunStore.ts";
import * as Signals from "../command/Signals.ts";
import { quoted } from "../terminal/Screen.ts";

/** Needs a package that nothing else of the command needs, so it is loaded when it is asked for. */
const loaded = Effect.tryPromise({
  try: () => import("../../agent/cluster/index.ts"),
  catch: (cause) =>
    new RecorderError({
      reason: "bad_option",
      run_id: "",
      message: "a cluster needs the package @effect/sql-pg, which could not be loaded: npm install @effect/sql-pg",
      cause,
    }),
});

/**
 * Reads where a node listens.
 *
 * @returns undefined where it is no `HOST:PORT`
 */
export const nodeOf = (text: string): NodeAddress | undefined => {
  const [, bracketed, plain, port] = /^(?:\[([\da-f:]+)\]|([^\s:/[\]]+)):(\d{1,5})$/i.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined;
  return { host, port: Number(port) };
};

/** What a node is started with. */
export interface NodeOptions {
  readonly db: string;
  readonly leaseMs: number;
  readonly retention: Retention;
  readonly address: NodeAddress;
  readonly owner: Omit<OwnerOptions, "node" | "chats">;
}

/** Runs a node until it is told to end. A question of its conversations waits on record: no person looks at a node. */
export const node = ({ address, db, leaseMs, owner, retention }: NodeOptions) =>
  Effect.gen(function* () {
    const { layerNode } = yield* loaded;
    yield* Signals.endsNormally;
    const services = AgentLayer.layer({ db, leaseMs, retention, ask: () => Effect.succeed("parked" as const) });
    const running = layerNode(db, address, owner).pipe(Layer.provide(services));
    return yield* Effect.scoped(
      Effect.andThen(
        Layer.build(running),
        Effect.andThen(
          Console.log(`node ${address.host}:${address.port} owns its part of the conversations`),
          Effect.never,
        ),
      ),
    );
  }).pipe(Effect.provideService(References.MinimumLogLevel, "Info"));

/** What a caller is started with. */
export interface CallOptions {
  readonly db: string;
  readonly leaseMs: number;
  readonly chat: string;
  readonly task: Session.Task;
  readonly json: boolean;
}

/** Talks to a conversation, and gives how its last turn ended. */
export const call = (options: CallOptions) =>
  Effect.gen(function* () {
    const { ClusterCarrier, makeCaller } = yield* loaded;
    const store = RunStore.layer({ file: options.db, leaseMs: options.leaseMs, retention: false });
    const lines = LineReader.make(process.stdin);
    return yield* Effect.gen(function* () {
      const caller = makeCaller(options.chat, yield* ClusterCarrier);
      return yield* talk({ ...options, caller, lines });
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.provide(ClusterCarrier.layer(options.db), store)),
      Effect.ensuring(Effect.sync(lines.close)),
    );
  }).pipe(Effect.provideService(References.MinimumLogLevel, "Error"));

/** What is forgotten. */
export interface ForgetOptions extends Meant {
  readonly db: string;
  readonly json: boolean;
}

/** Forgets conversations, and says what became of them: whether all that was meant is forgotten, or went by age. */
export const forget = ({ db, json, ...meant }: ForgetOptions) =>
  Effect.gen(function* () {
    const { forgetConversations } = yield* loaded;
    const forgotten = yield* forgetConversations(db, meant);
    yield* Console.log(json ? JSON.stringify(forgotten) : forgottenWords(forgotten, meant));
    return "idleMs" in meant.which || forgotten.chats === 1;
  });

const forgottenWords = ({ chats, lines, stay, staying }: Forgotten, { which }: Meant): string => {
  if ("chat" in which && chats === 0) {
    return stay === 0
      ? `no conversation ${which.chat} is in this store`
      : `conversation ${which.chat} has a turn that is open, or cannot be read: it stays. --resume ends the turn; --force forgets it as it is`;
  }
  const gone = `forgot ${chats === 1 ? "one conversation" : `${chats} conversations`} (${lines} lines)`;
  if (stay === 0) return gone;
  const named = `${staying.join(", ")}${stay > staying.length ? " and others" : ""}`;
  return `${gone}; ${stay} with a turn that is open stay: ${named}`;
};

interface Talking extends CallOptions {
  readonly caller: ConversationCaller;
  readonly lines: LineReader.LineReader;
}

/** Turns that have not ended. */
const openHows: ReadonlySet<Report["how"]> = new Set(["open", "running", "parked", "steps"]);

const talk = (talking: Talking): Effect.Effect<Session.SessionEnd, ConversationError, Scope.Scope> =>
  Effect.gen(function* () {
    const { caller, chat, lines, task } = talking;
    const left = Deferred.makeUnsafe<"left">();
    let newest = 0;
    const cancel = Effect.suspend(() => Effect.as(Effect.ignore(caller.cancel(newest)), true));
    const pressed = yield* Session.interrupts({ agent: { cancel }, line: say }, left);
    const spoken = Effect.gen(function* () {
      let report = yield* caller.look;
      newest = report.turns;
      if (openHows.has(report.how)) {
        report = yield* judgedTo(talking, yield* caller.goOn(report));
        tell(talking, report);
      } else if (task._tag === "resume") {
        say(`conversation ${chat}: no turn was left open`);
        return "done" as const;
      }
      if (task._tag === "resume" || openHows.has(report.how)) return endOf(report);
      while (true) {
        pressed.times = 0;
        if (task._tag === "talk" && process.stdin.isTTY === true) process.stderr.write("> ");
        const text = task._tag === "say" ? task.text : yield* lines.next;
        if (text === undefined) return endOf(report);
        if (text.trim() === "" && task._tag === "talk") continue;
        newest += 1;
        report = yield* judgedTo(talking, yield* caller.say(newest, text));
        tell(talking, report);
        if (task._tag === "say" || openHows.has(report.how)) return endOf(report);
      }
    });
    return yield* Effect.raceFirst(spoken, Deferred.await(left));
  });

/** Asks the person about calls of unknown outcome, as long as there are any, and goes on with what is said. */
const judgedTo = ({ caller, lines }: Talking, first: Report): Effect.Effect<Report, ConversationError> =>
  Effect.gen(function* () {
    let report = first;
    while (report.how === "parked" && report.call !== undefined) {
      const { call } = report;
      const verdict = yield* Prompter.confirm(prompterOf(lines), call);
      if (verdict === "parked") return report;
      report = yield* caller.goOn(report, { attempt: call.attempt, call: call.call, tool: call.tool, verdict });
    }
    return report;
  });

const prompterOf = (lines: LineReader.LineReader): Prompter.PrompterOptions => ({
  lines,
  line: say,
  prompt: (text) => void process.stderr.write(text),
  typed: () => {},
  isTerminal: process.stdin.isTTY === true,
  called: () => undefined,
});

/** What stands beside the response goes to stderr. */
const say = (text: string): void => void process.stderr.write(`${text}\n`);

const tell = ({ chat, db, json }: Talking, report: Report): void => {
  if (json) {
    process.stdout.write(`${JSON.stringify(report)}\n`);
    return;
  }
  if (report.text !== "") process.stdout.write(`${report.text}\n`);
  if (report.message !== "") say(`· ${report.message}`);
  if (!openHows.has(report.how)) return;
  const goOn = `stream-recovery agent --cluster --resume --chat ${chat} --db ${quoted(db)}`;
  const isAsked = report.how === "parked" && report.call === undefined && report.run !== undefined;
  if (isAsked) say(`· a question is open: stream-recovery runs answer ${report.run} --db ${quoted(db)}`);
  say(`to go on: ${goOn}`);
};

const endOf = ({ how }: Report): Session.SessionEnd =>
  how === "none" || how === "open" || how === "running" ? "done" : how;
