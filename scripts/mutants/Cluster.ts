/**
 * Holds the mutants of conversations that several nodes share.
 */
import type { Mutant } from "./Mutant.ts";

const turns = "test/agent/cluster/Turns.test.ts";
const calls = "test/agent/cluster/ConversationCaller.test.ts";
const spoken = "test/agent/conversation/SpokenTurn.test.ts";
const journals = "test/agent/cluster/PostgresChats.test.ts";

/** The mutants of conversations that several nodes share. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a call that comes twice begins its turn twice",
    breaks: "a turn begins once",
    within: "newestOf",
    find: "return begun !== undefined && begun.number > turn.number ? begun : turn;",
    replace: "return turn;",
    proofs: [{ test: journals, named: "begins once" }],
  },
  {
    name: "an owner before the newest one writes on",
    breaks: "a process that stood still begins nothing when it wakes up",
    within: "tryWrite",
    find: " AND epoch = $",
    replace: " AND 0 < $",
    proofs: [{ test: journals, named: "take no line of an owner" }],
  },
  {
    name: "a line whose acknowledgement was lost is another owner's",
    breaks: "a line is written once, and its writer goes on",
    within: "tryWrite",
    find: 'Number(now?.epoch) === epoch && Number(now?.lines) === n ? "written"',
    replace: 'Number(now?.epoch) === epoch && n < 0 ? "written"',
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
    within: "make",
    find: "if (running !== undefined) yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(running), graceMs));",
    replace: "if (running !== undefined && graceMs < 0) yield* Deferred.await(running);",
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
];
