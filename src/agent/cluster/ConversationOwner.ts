/**
 * Owns a conversation while its shard is here: claims the journal when the first call comes, plays its turns, and tells callers how
 * they are.
 *
 * A turn outlives the call that began it. Where the owner ends, its turn stays open in the journal, and the next owner goes on
 * with it when a caller asks again. Where a line is refused, everything of the conversation ends here.
 */
import { join } from "node:path";
import { Cause, type Context, Deferred, Effect, Exit, Option, Scope, Semaphore } from "effect";
import type { ProviderClient } from "../../client/index.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import type { ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { type Agent, type AgentOptions, openOn } from "../Agent.ts";
import type { TurnEnd } from "../AgentEvent.ts";
import type { AgentError } from "../conversation/AgentError.ts";
import type { StartedCall } from "../conversation/ChatRun.ts";
import { ConversationError } from "./ConversationError.ts";
import { LineRefused, type PostgresChats } from "./PostgresChats.ts";
import { type Order, type Report, textCharactersMax, type Verdict } from "./Protocol.ts";
import { moveOf, newestOf, type Standing } from "./Turns.ts";

/** What an owner plays conversations with; the settings are those of new ones. */
export interface OwnerOptions extends Omit<AgentOptions, "chat" | "dir" | "folder" | "watch" | "confirm"> {
  /** The tools of a conversation work in a folder of its name in here. Every node has to reach it by the same path. */
  readonly dir: string;
  /** How long a turn may go on when its conversation is given away, in milliseconds; default 5,000. Callers wait meanwhile. */
  readonly graceMs?: number;
  /** The node's address, as the cluster knows it. */
  readonly node: string;
  readonly chats: PostgresChats;
}

/** A conversation at its owner. */
export interface ConversationOwner {
  readonly look: Effect.Effect<Report, ConversationError>;
  readonly turn: (order: Order) => Effect.Effect<Report, ConversationError>;
  readonly cancel: (turn: number) => Effect.Effect<Report, ConversationError>;
}

/** What an agent needs. */
export type OwnerServices = StreamProcessor | ToolGuard | ProviderClient | RunRecorder;

/** How long a turn may go on when its conversation is given away: half of what its caller waits. */
const graceMsDefault = 5_000;

/** How long a call waits for the end of a turn, in milliseconds, before it says that it is still running. */
const answerMs = 1_000;

/** A conversation that is open here. */
interface Opened {
  readonly agent: Agent;
  readonly epoch: number;
  readonly scope: Scope.Closeable;
  /** Done when the turn that is under way has ended, or could not go on. */
  running: Deferred.Deferred<void> | undefined;
  /** The newest turn that began here, from the call that begins it on: its line in the journal comes later. */
  begun: { readonly number: number; readonly asked: string } | undefined;
  /** Why nothing goes on here. */
  broken: ConversationError | undefined;
  /** How the newest turn ended or came to rest here. */
  end: TurnEnd | undefined;
  rest: { readonly name: string; readonly call: StartedCall | undefined } | undefined;
  /** How often a turn has come to rest here. */
  rests: number;
  verdict: Verdict | undefined;
  asked: StartedCall | undefined;
}

/** Makes the owner of a conversation. It opens nothing before a call comes, and closes with the scope. */
export const make = Effect.fn("ConversationOwner.make")(function* (chat: string, options: OwnerOptions) {
  // Of its own, because what stands in the entity's scope is closed before a finalizer could wait.
  const scope = yield* Scope.make();
  const services = yield* Effect.context<OwnerServices>();
  const lock = Semaphore.makeUnsafe(1);
  let current: Opened | undefined;

  yield* Effect.addFinalizer((exit) =>
    Effect.suspend(() => Effect.andThen(awaitTurn(current, chat, options.graceMs), Scope.close(scope, exit))),
  );

  const opened = Effect.gen(function* () {
    if (current !== undefined && current.broken === undefined) return current;
    current = yield* open(chat, options, scope, services);
    return current;
  });

  const isThere = Effect.suspend(() => Effect.mapError(options.chats.has(chat), said));

  // A name that was never used stays unused: whoever only looks may have mistyped it.
  const looked = Effect.gen(function* () {
    if (yield* letsGo(current, chat, options.chats)) current = undefined;
    if (current === undefined && !(yield* isThere))
      return { turns: 0, how: "none" as const, message: "", text: "", node: options.node };
    return reportOf(yield* opened, options.node);
  });

  const owner: ConversationOwner = {
    look: lock.withPermits(1)(Effect.uninterruptible(looked)),
    turn: (order) =>
      Effect.gen(function* () {
        const begun = Effect.gen(function* () {
          const isHeld = current !== undefined && current.broken === undefined;
          // Without words a turn is meant that is there: for one of a conversation that is gone nothing is begun.
          if (!isHeld && order.text === undefined && !(yield* isThere)) {
            const move = moveOf(order, unused);
            if (typeof move !== "string") return yield* move;
          }
          const it = yield* opened;
          const move = moveOf(order, standingOf(it));
          if (typeof move !== "string") return yield* move;
          if (move !== "tell") yield* drive(it, chat, order, move);
          return it;
        });
        // What a caller no longer waits for is begun all the same, or not at all.
        const it = yield* lock.withPermits(1)(Effect.uninterruptible(begun));
        if (it.running !== undefined) yield* Effect.timeoutOption(Deferred.await(it.running), answerMs);
        return it.broken === undefined ? reportOf(it, options.node) : yield* it.broken;
      }),
    cancel: (turn) =>
      Effect.gen(function* () {
        const it = yield* lock.withPermits(1)(Effect.uninterruptible(opened));
        if (newestOf(it.agent.turn(), it.begun).number === turn && it.running !== undefined) yield* it.agent.cancel;
        return reportOf(it, options.node);
      }),
  };
  return owner;
});

/** Gives the turn that is under way some time to end, because its conversation goes to another node. */
const awaitTurn = (it: Opened | undefined, chat: string, graceMs = graceMsDefault): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (it?.running === undefined) return;
    yield* Effect.logInfo(`conversation ${chat}: this node gives it away; its turn has ${graceMs} ms to end`);
    yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(it.running), graceMs));
  });

/** Lets go of what rests here and is another owner's by now, or was forgotten by an operator: who looks is told of what there is. */
const letsGo = (
  it: Opened | undefined,
  chat: string,
  chats: PostgresChats,
): Effect.Effect<boolean, ConversationError> =>
  Effect.gen(function* () {
    if (it === undefined || it.running !== undefined) return false;
    if (yield* Effect.mapError(chats.isClaimed(chat, it.epoch), said)) return false;
    yield* Scope.close(it.scope, Exit.void);
    return true;
  });

/** Claims the journal and opens the agent on it. */
const open = (
  chat: string,
  { chats, graceMs: _graceMs, node, ...given }: OwnerOptions,
  scope: Scope.Scope,
  services: Context.Context<OwnerServices>,
): Effect.Effect<Opened, ConversationError> =>
  Effect.flatMap(Scope.fork(scope), (own) =>
    Effect.gen(function* () {
      const { epoch, journal } = yield* chats.claim(chat, node);
      let made: Opened | undefined;
      const settings = settingsOf(given, chat, journal.entries.length > 0);
      const agent = yield* openOn(
        // A caller is told a text once its turn has ended, so nobody has seen one that breaks off: it is asked for again unasked.
        { reveal: "on_complete", ...settings, chat, watch: () => {}, confirm: (call) => judged(made, call) },
        journal,
      ).pipe(Scope.provide(own), Effect.provideContext(services));
      yield* Effect.logInfo(`conversation ${chat}: this node is its owner, epoch ${epoch}`);
      made = { agent, epoch, scope: own, rests: 0, ...nothing };
      return made;
    }).pipe(
      // A first line that is refused is a defect of its writer.
      Effect.catchCause((cause) => Effect.fail(brokenBy(cause))),
      Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))),
    ),
  );

const nothing = {
  ...{ running: undefined, begun: undefined, broken: undefined, end: undefined, rest: undefined },
  ...{ verdict: undefined, asked: undefined },
};

/** A conversation that exists goes on as it was begun, whatever this node would begin one with. */
const settingsOf = (given: Omit<OwnerOptions, "chats" | "graceMs" | "node">, chat: string, exists: boolean) => {
  if (!exists) return { ...given, dir: join(given.dir, chat) };
  const { dir: _dir, model: _model, protocol: _protocol, url: _url, ...others } = given;
  return others;
};

/** What a person has said of a call, or that the turn rests until one does. */
const judged = (it: Opened | undefined, call: StartedCall) =>
  Effect.sync(() => {
    const verdict = it?.verdict;
    if (verdict?.attempt === call.attempt && verdict.call === call.call && verdict.tool === call.tool) {
      return verdict.verdict;
    }
    if (it !== undefined) it.asked = call;
    return "parked" as const;
  });

const unused: Standing = { turns: 0, asked: undefined, isOpen: false, isDriven: false, rest: undefined };

const standingOf = (it: Opened) => {
  const { asked, number } = newestOf(it.agent.turn(), it.begun);
  const isDriven = it.running !== undefined;
  return { turns: number, asked, isOpen: isDriven || it.agent.isOpen(), isDriven, rest: it.rest?.name };
};

/** Begins a turn, or goes on with one, in a fiber that ends with the conversation's place here. */
const drive = (it: Opened, chat: string, order: Order, move: "begin" | "go_on"): Effect.Effect<void> =>
  Effect.gen(function* () {
    const running = Deferred.makeUnsafe<void>();
    it.running = running;
    if (move === "begin") it.begun = { number: order.turn, asked: order.text ?? "" };
    it.end = undefined;
    it.rest = undefined;
    it.asked = undefined;
    it.verdict = order.verdict;
    const turn = move === "begin" ? it.agent.say(order.text ?? "") : it.agent.goOn;
    yield* Effect.logInfo(`conversation ${chat}: turn ${order.turn} ${move === "begin" ? "begins" : "goes on"}`);
    const ended = Effect.onExit(turn, (exit) =>
      Effect.gen(function* () {
        it.running = undefined;
        if (Exit.isSuccess(exit)) rested(it, exit.value);
        else it.broken = brokenBy(exit.cause);
        yield* Effect.logInfo(`conversation ${chat}: turn ${order.turn} ${wordsOf(exit, it)}`);
        Deferred.doneUnsafe(running, Effect.void);
        // Nothing is left of a conversation that cannot write: the next call claims it anew, wherever it comes.
        if (it.broken !== undefined) yield* Effect.forkDetach(Scope.close(it.scope, Exit.void));
      }),
    );
    yield* Effect.forkIn(Effect.ignoreCause(Effect.interruptible(ended)), it.scope);
  });

const rested = (it: Opened, end: TurnEnd): void => {
  it.end = end;
  if (!it.agent.isOpen()) return;
  it.rests += 1;
  it.rest = { name: `${it.epoch}.${it.rests}`, call: end.how === "parked" ? it.asked : undefined };
};

const wordsOf = (exit: Exit.Exit<TurnEnd, AgentError>, { broken }: Opened): string =>
  Exit.isSuccess(exit) ? `has ended: ${exit.value.how}` : `ends here: ${broken?.message ?? "interrupted"}`;

/** Why a turn could not go on, in a caller's words. */
const brokenBy = (cause: Cause.Cause<AgentError | ConversationError>): ConversationError => {
  const failed = Option.getOrUndefined(Cause.findErrorOption(cause));
  if (failed !== undefined) return failed instanceof ConversationError ? failed : said(failed);
  const defect = cause.reasons.filter(Cause.isDieReason).find(({ defect }) => defect instanceof LineRefused)?.defect;
  if (defect instanceof LineRefused) return new ConversationError({ reason: defect.reason, message: defect.message });
  if (Cause.hasInterruptsOnly(cause)) {
    return new ConversationError({
      reason: "moved",
      message: "this node stops or gives the conversation to another one",
    });
  }
  return new ConversationError({ reason: "store", message: "the turn ended by a defect; the node's log has it" });
};

const said = ({ message, reason }: AgentError): ConversationError => new ConversationError({ reason, message });

/** How the newest turn is. */
const reportOf = (it: Opened, node: string): Report => {
  const { agent, end, rest, running } = it;
  const base = { turns: newestOf(it.agent.turn(), it.begun).number, node, message: end?.message ?? "", text: "" };
  if (running !== undefined) {
    const isWritten = agent.turn().number === base.turns;
    return { ...base, how: "running", ...(isWritten ? { written: true } : {}) };
  }
  const { asked, ending, said } = agent.turn();
  if (asked === undefined) return { ...base, how: "none" };
  const text = said.length > textCharactersMax ? said.slice(-textCharactersMax) : said;
  const run = end?.run === undefined ? {} : { run: end.run };
  if (rest !== undefined && end !== undefined) {
    const judging = rest.call === undefined ? {} : { call: callOf(rest.call) };
    return { ...base, how: end.how, text, rest: rest.name, ...run, ...judging };
  }
  if (agent.isOpen()) return { ...base, how: "open", text };
  return { ...base, how: ending === "stopped" || ending === "cancelled" ? ending : "done", text, ...run };
};

const callOf = ({ attempt, call, input, tool }: StartedCall) => ({
  attempt,
  call,
  tool,
  input: input.slice(0, 10_000),
});
