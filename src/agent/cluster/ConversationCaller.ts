/**
 * Calls conversations, wherever their owner is: says a turn, asks for it until it has ended, and says so when no owner answers.
 *
 * A call that is lost is sent again with the same number of its turn, which the owner knows. So what a caller does not hear of is
 * never done twice.
 */
import { Cause, Clock, Effect, Exit, Fiber, Option } from "effect";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { ConversationError } from "./ConversationError.ts";
import { type Order, type Report, textCharactersMax, type Verdict } from "./Protocol.ts";

/** How long a call waits for an owner that answers, in milliseconds. */
export const ownerWaitMsDefault = 10_000;

/** How long one try may take, in milliseconds: a node that stands still takes a call and never answers. */
const tryMsMax = 3_000;

/** Between two tries that were refused at once, in milliseconds. */
const againMs = 250;

/** What carries calls to the owner of a conversation, and what is known of the nodes. */
export interface Carrier {
  readonly look: (chat: string) => Effect.Effect<Report, unknown>;
  readonly turn: (chat: string, order: Order) => Effect.Effect<Report, unknown>;
  readonly cancel: (chat: string, turn: number) => Effect.Effect<Report, unknown>;
  /** The addresses of the nodes that are registered. */
  readonly nodes: Effect.Effect<ReadonlyArray<string>, unknown>;
}

/** A conversation, as its caller has it. */
export interface ConversationCaller {
  /** How the newest turn is; it starts nothing. */
  readonly look: Effect.Effect<Report, ConversationError>;
  /**
   * Says a text in a turn and waits until the turn has ended or rests.
   *
   * @param turn its number: that of the newest one and one more. The same number with the same text again is the same turn.
   */
  readonly say: (turn: number, text: string) => Effect.Effect<Report, ConversationError>;
  /** Goes on with a turn that was left open or rests, and waits in the same way. */
  readonly goOn: (report: Report, verdict?: Verdict) => Effect.Effect<Report, ConversationError>;
  /** Cancels the running request of a turn in the user's name. */
  readonly cancel: (turn: number) => Effect.Effect<Report, ConversationError>;
}

/**
 * Calls a conversation.
 *
 * @param options.ownerWaitMs how long a call waits for an owner that answers; default 10,000
 */
export const make = (
  chat: string,
  carrier: Carrier,
  { ownerWaitMs = ownerWaitMsDefault }: { readonly ownerWaitMs?: number } = {},
): ConversationCaller => {
  const answered = (call: Effect.Effect<Report, unknown>) => answeredWithin(chat, carrier, call, ownerWaitMs);
  const ended = (order: Order): Effect.Effect<Report, ConversationError> =>
    Effect.gen(function* () {
      if ((order.text?.length ?? 0) > textCharactersMax) {
        const message = `expected at most ${textCharactersMax} characters in a turn, got ${order.text?.length}`;
        return yield* new ConversationError({ reason: "refused", message });
      }
      // A new owner plays an open turn because it is asked for; the word to go on is for the rest that it names.
      let report = yield* answered(carrier.turn(chat, order));
      // A turn that stands in a journal is asked for by its number: where an operator forgets it, it does not begin once more.
      const { text: _text, ...its } = order;
      while (report.how === "running" || report.how === "open") {
        const stands = report.how === "open" || report.written === true;
        report = yield* answered(carrier.turn(chat, stands ? its : order));
      }
      return report;
    });
  return {
    look: answered(carrier.look(chat)),
    say: (turn, text) => ended({ turn, text }),
    goOn: ({ rest, turns }, verdict) =>
      ended({
        turn: turns,
        ...(rest === undefined ? {} : { go_on: rest }),
        ...(verdict === undefined ? {} : { verdict }),
      }),
    cancel: (turn) => answered(carrier.cancel(chat, turn)),
  };
};

/** What may be over at the next try: the conversation has moved, or its store is away. */
const passing: ReadonlySet<ConversationError["reason"]> = new Set(["moved", "store"]);

/** Sends a call until an owner answers it, for so long. What an owner refuses is its answer. */
const answeredWithin = (
  chat: string,
  { nodes }: Carrier,
  call: Effect.Effect<Report, unknown>,
  waitMs: number,
): Effect.Effect<Report, ConversationError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const from = monotonicMs(clock);
    let last = "none has answered";
    let store: ConversationError | undefined;
    while (true) {
      const left = waitMs - (monotonicMs(clock) - from);
      // An owner that answers, and cannot use its store, is an owner.
      if (left <= 0) return yield* store ?? noOwner(chat, waitMs, last, nodes);
      const tried = yield* tryOnce(call, Math.min(left, tryMsMax));
      if (tried === undefined) {
        last = "none has answered";
        store = undefined;
        continue;
      }
      if (Exit.isSuccess(tried)) return tried.value;
      const error = Option.getOrUndefined(Cause.findErrorOption(tried.cause));
      if (error instanceof ConversationError && !passing.has(error.reason)) return yield* error;
      store = error instanceof ConversationError && error.reason === "store" ? error : undefined;
      last = wordsOf(error);
      yield* Effect.sleep(Math.min(againMs, left));
    }
  });

/** Tries a call, and leaves it alone when it takes too long: what it holds on to may take longer to let go. */
const tryOnce = (
  call: Effect.Effect<Report, unknown>,
  ms: number,
): Effect.Effect<Exit.Exit<Report, unknown> | undefined> =>
  Effect.flatMap(Effect.forkDetach(call, { startImmediately: true }), (fiber) =>
    Effect.ensuring(
      Effect.map(Effect.timeoutOption(Fiber.await(fiber), ms), Option.getOrUndefined),
      Effect.sync(() => fiber.interruptUnsafe()),
    ),
  );

const wordsOf = (error: unknown): string => {
  if (error instanceof ConversationError || error instanceof RecorderError) return error.message;
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : undefined;
  if (tag === "MailboxFull") return "its node has no room for another conversation";
  return tag === undefined ? "its node ended or gave it away" : `its node is not found (${tag})`;
};

const noOwner = (chat: string, waitMs: number, last: string, nodes: Carrier["nodes"]) =>
  Effect.flatMap(Effect.exit(Effect.timeout(nodes, tryMsMax)), (known) => {
    const told = Exit.isFailure(known)
      ? "the nodes could not be read from the store"
      : known.value.length === 0
        ? "no node is registered: start one with `stream-recovery agent --cluster --node HOST:PORT`"
        : `registered: ${known.value.join(", ")}`;
    const message = `conversation ${chat}: waited ${waitMs / 1_000} s for a live owner; ${last}; ${told}`;
    return Effect.fail(new ConversationError({ reason: "no_owner", message }));
  });
