/**
 * Holds the mutants of conversations that several nodes share.
 */
import type { Mutant } from "./Mutant.ts";

const turns = "test/agent/cluster/Turns.test.ts";
const calls = "test/agent/cluster/ConversationCaller.test.ts";
const spoken = "test/agent/conversation/SpokenTurn.test.ts";
const forgets = "test/agent/cluster/PostgresForget.test.ts";
const joins = "test/agent/cluster/PostgresJoin.test.ts";
const journals = "test/agent/cluster/PostgresChats.test.ts";

/** The mutants of conversations that several nodes share. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a call that comes twice begins its turn twice",
    breaks: "a turn begins once",
    within: "newestOf",
    find: "begun !== undefined && begun.number > written.number ? begun : written;",
    replace: "written;",
    proofs: [{ test: turns, named: "has begun, before and behind its line" }],
  },
  {
    name: "an owner before the newest one writes on",
    breaks: "a process that stood still begins nothing when it wakes up",
    within: "tryWrite",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: " AND epoch = ${epoch} AND lines",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: " AND 0 < ${epoch} AND lines",
    proofs: [{ test: journals, named: "take no line of an owner" }],
  },
  {
    name: "a line whose acknowledgement was lost is another owner's",
    breaks: "a line is written once, and its writer goes on",
    within: "tryWrite",
    find: "Number(now?.epoch) === epoch && Number(now?.lines) === n)",
    replace: "Number(now?.epoch) === epoch && n < 0)",
    proofs: [{ test: journals, named: "acknowledgement was lost" }],
  },
  {
    name: "a line behind a refused one is written",
    breaks: "what was refused ends everything that rests on it",
    within: "appender",
    find: "if (refused !== undefined) return yield* refused;",
    replace: "",
    proofs: [{ test: journals, named: "every later one" }],
  },
  {
    name: "a caller without the store's key is answered",
    breaks: "whoever reaches a node's port could run commands there",
    within: "entity",
    find: "isSame(own, proof) ? then : Effect.fail(forbidden)",
    replace: "proof.length > 0 ? then : Effect.fail(forbidden)",
    proofs: [{ test: journals, named: "begun by nobody" }],
  },
  {
    name: "a turn begins behind one that is open",
    breaks: "turns of a conversation come one behind the other",
    within: "moveOf",
    find: 'return isOpen ? refused("open"',
    replace: 'return isOpen && isDriven ? refused("open"',
    proofs: [{ test: turns, named: "behind one that is open" }],
  },
  {
    name: "another caller's words are taken for this turn's",
    breaks: "a caller is told whose turn it was",
    within: "moveOf",
    find: "text !== undefined && text !== asked",
    replace: "text !== undefined && asked === undefined",
    proofs: [{ test: turns, named: "another caller's" }],
  },
  {
    name: "a turn that rests is gone on with at every call",
    breaks: "an order that comes twice goes on once",
    within: "moveOf",
    find: " || (rest !== undefined && rest !== go_on)",
    replace: "",
    proofs: [{ test: turns, named: "names that rest" }],
  },
  {
    name: "a node that stands still is waited for",
    breaks: "a call finds the new owner while the old one is silent",
    within: "answeredWithin",
    find: "tryOnce(call, Math.min(left, tryMsMax))",
    replace: "tryOnce(call, left)",
    proofs: [{ test: calls, named: "never answers" }],
  },
  {
    name: "a call waits without end for an owner",
    breaks: "a call says behind 10 s what it has waited for",
    within: "answeredWithin",
    find: "if (left <= 0) return yield* store ??",
    replace: "if (left <= -waitMs) return yield* store ??",
    proofs: [{ test: calls, named: "behind 10 s" }],
  },
  {
    name: "a refusal is asked for again",
    breaks: "what an owner refuses is its answer",
    within: "answeredWithin",
    find: "error instanceof ConversationError && !passing.has(error.reason)",
    replace: 'error instanceof ConversationError && error.reason === "refused"',
    proofs: [{ test: calls, named: "for its answer" }],
  },
  {
    name: "withdrawn text stands in what the model has said",
    breaks: "a caller is told nothing that was withdrawn",
    within: "discard",
    find: "it.run !== run || it.attempt !== attempt || it.ordinal <= keep_through",
    replace: "it.run !== run || it.attempt !== attempt || it.ordinal > 0",
    proofs: [{ test: spoken, named: "withdrawn" }],
  },
  {
    name: "a turn that is about to end is given away",
    breaks: "a node that is told to end asks nobody about a tool that would have ended",
    within: "awaitTurn",
    find: "yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(it.running), graceMs));",
    replace: "if (graceMs < 0) yield* Deferred.await(it.running);",
    proofs: [{ test: journals, named: "may end when its node" }],
  },
  {
    name: "a store that is away for a moment ends a call",
    breaks: "a call waits for its owner's store too",
    within: "passing",
    find: 'new Set(["moved", "store"])',
    replace: 'new Set(["moved"])',
    proofs: [{ test: calls, named: "waits for a store" }],
  },
  {
    name: "the first epoch of a conversation that was forgotten is one that an owner before had",
    breaks: "an owner of what was forgotten writes nothing more",
    within: "raised",
    find: "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    replace: "1",
    proofs: [{ test: forgets, named: "leaves nothing" }],
  },
  {
    name: "a conversation is forgotten in the middle of a turn",
    breaks: "an open turn is forgotten by force only",
    within: "one",
    find: 'if (!force && (yield* isOpen(tables, chat, Number(row.bytes)))) return "open" as const;\n',
    replace: "",
    proofs: [{ test: forgets, named: "has no open turn" }],
  },
  {
    name: "a line that is being written is not seen by who forgets its conversation",
    breaks: "an open turn is forgotten by force only",
    within: "one",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    find: "AND ${isIdle(sql, idleMs)} FOR UPDATE`;",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the sources.
    replace: "AND ${isIdle(sql, idleMs)}`;",
    proofs: [{ test: forgets, named: "whose transaction is under way" }],
  },
  {
    name: "a damaged journal is one without an open turn",
    breaks: "an open turn is forgotten by force only",
    within: "isOpen",
    find: 'if (first?._tag !== "Chat") return true;',
    replace: 'if (first?._tag !== "Chat") return false;',
    proofs: [{ test: forgets, named: "journal is damaged" }],
  },
  {
    name: "a conversation that is spoken in is as old as its claim",
    breaks: "only what is idle is forgotten by its age",
    within: "isIdle",
    find: "greatest(claimed_at, written_at)",
    replace: "claimed_at",
    proofs: [{ test: forgets, named: "page by page" }],
  },
  {
    name: "only the first hundred conversations are looked at",
    breaks: "what is old is forgotten",
    within: "forget",
    find: "after = names.length < pageSize ? undefined : names.at(-1);",
    replace: "after = undefined;",
    proofs: [{ test: forgets, named: "page by page" }],
  },
  {
    name: "an owner tells of a conversation that was forgotten as long as it has it open",
    breaks: "what is forgotten is told by nobody",
    within: "letsGo",
    find: "if (it === undefined || it.running !== undefined) return false;",
    replace: "if (it === undefined || it.epoch > 0) return false;",
    proofs: [{ test: journals, named: "begins once" }],
  },
  {
    name: "a turn that was forgotten begins once more for the caller that waits for it",
    breaks: "a turn begins once",
    within: "ended",
    find: "carrier.turn(chat, stands ? its : order)",
    replace: "carrier.turn(chat, stands ? order : order)",
    proofs: [{ test: calls, named: "asks by its number alone" }],
  },
  {
    name: "an owner gives a turn away at once when a node joins",
    breaks: "turns that may end",
    within: "awaitTurn",
    find: "yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(it.running), graceMs));",
    replace: "",
    proofs: [{ test: joins, named: "leaves the turn to its owner" }],
  },
];
