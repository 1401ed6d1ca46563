/**
 * Holds the mutants of the recorder on PostgreSQL.
 */
import type { Mutant } from "./Mutant.ts";

const lost = "test/recorder/postgres/PostgresLost.test.ts";
const zombies = "test/recorder/postgres/PostgresZombies.test.ts";
const schema = "test/recorder/postgres/PostgresSchema.test.ts";
const failures = "test/recorder/postgres/PostgresFailures.test.ts";
const shared = "test/recorder/postgres/PostgresShared.test.ts";
const sweep = "test/recorder/postgres/PostgresSweep.test.ts";
const store = "test/recorder/store/RunStore.test.ts";

/** The mutants of `src/recorder/postgres`, `src/recorder/sql/postgres` and `src/recorder/store`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a write that was undone for another is not run again",
    breaks: "one owner of a run",
    within: "isPassing",
    find: '(server === "conflicted" && tried < conflictsMax)',
    replace: '(server === "conflicted" && tried > conflictsMax)',
    proofs: [{ test: zombies, named: "claim against claim" }],
  },
  {
    name: "a transaction is as serialisable as its client likes",
    breaks: "a layer demands what it needs",
    within: "demand",
    find: 'if (level !== "serializable") return Effect.die(notSerializable(level));',
    replace: "void notSerializable(level);",
    proofs: [{ test: shared, named: "whose transactions are not those" }],
  },
  {
    name: "a client that gives no rows of RETURNING is believed",
    breaks: "a layer demands what it needs",
    within: "#hold",
    find: "return rows.length === 1 ? { id, beatAt } : yield* Effect.die(rowless);",
    replace: "if (rows.length > 1) return yield* Effect.die(rowless);\n    return { id, beatAt };",
    proofs: [{ test: shared, named: "does not say what a statement has changed" }],
  },
  {
    name: "a commit whose reply is lost counts as not written",
    breaks: "L8: what was refused is not on record",
    within: "write",
    find: 'if (status === "committed") return Effect.succeed(known.value);',
    replace: 'if (status === "committed") return Effect.fail(error);',
    proofs: [{ test: lost, named: "whose reply is lost" }],
  },
  {
    name: "a commit whose request is lost counts as written",
    breaks: "L8: recorded before it is acted on",
    within: "write",
    find: 'if (status === "committed") return Effect.succeed(known.value);',
    replace: 'if (status !== "unknown") return Effect.succeed(known.value);',
    proofs: [{ test: lost, named: "whose request is lost" }],
  },
  {
    name: "a commit that the server cannot be asked after counts as not written",
    breaks: "L8: what was refused is not on record",
    within: "write",
    find: 'return status === "aborted" ? Effect.fail(error) : Effect.die(',
    replace: 'return status !== "committed" ? Effect.fail(error) : Effect.die(',
    proofs: [{ test: lost, named: "cannot be asked after it" }],
  },
  {
    name: "the writes of a group are tried one by one while the server is away",
    breaks: "an outage is waited for once",
    within: "isOfOne",
    find: "&& !ofAll.has(failureOf(cause))",
    replace: "&& (cause === undefined || !ofAll.has(undefined))",
    proofs: [{ test: lost, named: "fails as one" }],
  },
  {
    name: "the writes of a group that took too long are tried one by one",
    breaks: "L11: every wait has a limit",
    within: "ofAll",
    find: '"slow",\n  "unauthenticated"',
    replace: '"unauthenticated"',
    proofs: [{ test: failures, named: "took too long fails as one" }],
  },
  {
    name: "a group writes over a version that it has not read",
    breaks: "one owner of a run",
    within: "saveTogether",
    find: "if (rows.length !== known.length) return",
    replace: "if (rows.length > known.length) return",
    proofs: [{ test: zombies, named: "rests on another version" }],
  },
  {
    name: "two processes make the tables at the same time",
    breaks: "tables are made once",
    within: "migrate",
    find: "SELECT pg_advisory_xact_lock(hashtextextended(concat(",
    replace: "SELECT (hashtextextended(concat(",
    proofs: [
      { test: schema, named: "one that comes in the middle of it" },
      { test: schema, named: "however many processes" },
    ],
  },
  {
    name: "tables that a newer program has changed are written",
    breaks: "neighbouring versions run side by side",
    within: "write",
    find: "if (this.#newer.unwritable !== undefined) return Effect.fail(this.#newer.unwritable);",
    replace: "",
    proofs: [{ test: schema, named: "those that it only reads are only read" }],
  },
  {
    name: "a process does not notice that a newer one has changed the tables",
    breaks: "neighbouring versions run side by side",
    within: "heartbeat",
    find: "const known = beating === database ? Effect.void : beating.ready;",
    replace: "const known = beating === database ? beating.ready : Effect.void;",
    proofs: [{ test: schema, named: "from its next heartbeat on" }],
  },
  {
    name: "the heartbeat waits for the connections of everything else",
    breaks: "a heartbeat has a connection of its own, docs/postgres.md",
    within: "heartbeat",
    find: "const known = beating === database ? Effect.void : beating.ready;",
    replace: "const known = beating === database ? Effect.void : database.ready;",
    proofs: [{ test: "test/recorder/postgres/PostgresServer.test.ts", named: "a heartbeat goes on" }],
  },
  {
    name: "a run is kept under a name by which it is not found",
    breaks: "a run is lost",
    within: "make",
    find: "if (!database.tables.dialect.keeps(runId)) return",
    replace: "if (!database.tables.dialect.keeps(entries.length.toString())) return",
    proofs: [{ test: schema, named: "name no run" }],
  },
  {
    name: "a full disk of the server is told as anything else",
    breaks: "each code has its words, docs/postgres.md",
    within: "byCode",
    find: '["53100", "server_disk_full"],',
    replace: "",
    proofs: [{ test: failures, named: "each code" }],
  },
  {
    name: "an address holds a password",
    breaks: "no secret in a log, on a page or on record",
    within: "parse",
    find: 'if (url.password !== "" || url.searchParams.has("password")) {',
    replace: 'if (url.searchParams.has("password")) {',
    proofs: [{ test: store, named: "is refused with what was expected" }],
  },
  {
    name: "a server on another machine is spoken to in plain text",
    breaks: "TLS is on for any other machine, docs/postgres.md",
    within: "parse",
    find: '(isOwnMachine(host) ? "disable" : "verify-full")',
    replace: '(isOwnMachine(host) ? "verify-full" : "disable")',
    proofs: [{ test: store, named: "is protected by TLS" }],
  },
  {
    name: "a password that was rotated is not read again",
    breaks: "the password of a file is read for each connection, docs/postgres.md",
    within: "passwordOf",
    find: "return Effect.sync(() => Redacted.make(readOrEmpty(file)));",
    replace: "return Redacted.make(readOrEmpty(file));",
    proofs: [{ test: store, named: "read for each connection" }],
  },
  {
    name: "a try that lasts longer than the wait begins the wait anew",
    breaks: "L11: every wait has a limit",
    within: "waits",
    find: "again ? this.#lastMetAt > Number.NEGATIVE_INFINITY : triedAt - this.#lastMetAt <= this.#waitMs",
    replace: "again || triedAt > 0 ? now - this.#lastMetAt <= this.#waitMs : false",
    proofs: [{ test: lost, named: "that answers nothing" }],
  },
  {
    name: "a commit is asked after as often as nobody answers",
    breaks: "L11: every wait has a limit",
    within: "outcome",
    find: "while (monotonicMs(realClock) - begunAt < askedMs)",
    replace: "while (monotonicMs(realClock) - begunAt < 50 * askedMs)",
    proofs: [{ test: lost, named: "is asked after for a while" }],
  },
  {
    name: "a password with a sign of addresses in it is a place",
    breaks: "no secret in a log",
    within: "isCutWrongly",
    find: 'hash !== "" || pathname.includes("@")',
    replace: 'hash !== "" && pathname.includes("@")',
    proofs: [{ test: store, named: "without a word of what stands in it" }],
  },
  {
    name: "an address behind blanks is a file",
    breaks: "no secret in a log",
    within: "problem",
    find: "if (/^\\s+[a-z][a-z\\d+.-]+:/i.test(name)) return",
    replace: "if (/^\\S\\s+:/i.test(name)) return",
    proofs: [{ test: store, named: "behind blanks" }],
  },
  {
    name: "what is old is so by the clock of whoever looks",
    breaks: "clocks of other machines decide nothing",
    within: "agreedNow",
    find: "return Math.min(own, Number(row?.now ?? own));",
    replace: "return Math.max(own, Number(row?.now ?? own));",
    proofs: [{ test: sweep, named: "clock is ahead" }],
  },
];
