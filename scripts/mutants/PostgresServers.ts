/**
 * Holds the mutants of how a server is named, entered, demanded of, read and understood.
 */
import type { Mutant } from "./Mutant.ts";

const lost = "test/recorder/postgres/PostgresLost.test.ts";
const failures = "test/recorder/postgres/PostgresFailures.test.ts";
const shared = "test/recorder/postgres/PostgresShared.test.ts";
const pooler = "test/recorder/postgres/PostgresPooler.test.ts";
const server = "test/recorder/postgres/PostgresServer.test.ts";
const deliveries = "test/recorder/postgres/PostgresDeliveries.test.ts";
const store = "test/recorder/store/RunStore.test.ts";
const release = "test/recorder/postgres/PostgresRelease.test.ts";

/** The mutants of addresses and roles, of what is demanded of a server, and of what its errors mean. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a number that a crashed server gives again is taken for the same transaction",
    breaks: "L8: an acknowledged entry is on record",
    within: "outcome",
    find: 'rows[0]?.crashed === false ? status : "unknown"',
    replace: "status",
    proofs: [
      {
        test: "test/recorder/postgres/PostgresOutcome.test.ts",
        named: "is not taken for one that has the same number",
      },
    ],
  },
  {
    name: "a commit whose number a restarted server has not given yet is not known to be lost",
    breaks: "what became of a commit is found where it can be",
    within: "outcome",
    find: "sqlStateOf(error) === notGivenYet ?",
    replace: "sqlStateOf(error) === idColumn ?",
    proofs: [{ test: "test/recorder/postgres/PostgresOutcome.test.ts", named: "is not taken for one" }],
  },
  {
    name: "a standby that has not heard of a commit yet says that it is lost",
    breaks: "L8: what is acknowledged is kept",
    within: "outcome",
    find: "CASE WHEN pg_is_in_recovery() THEN",
    replace: "CASE WHEN false THEN",
    proofs: [{ test: "test/recorder/postgres/PostgresStandby.test.ts", named: "is read, refuses" }],
  },
  {
    name: "a server of any version will do",
    breaks: "a layer demands what it needs",
    within: "meet",
    find: "if (!(version >= oldestVersion)) return Effect.fail(tooOld(place, version));",
    replace: "void tooOld(place, version);",
    proofs: [{ test: shared, named: "refuses a server that is too old" }],
  },
  {
    name: "a limit that a pooler has dropped is no longer one",
    breaks: "a process that stands still lets go of its locks, docs/postgres-operation.md",
    within: "warnings",
    find: "return ms > 0 && ms <= asked ? []",
    replace: "return ms <= asked ? []",
    proofs: [{ test: pooler, named: "drops the limits of a connection" }],
  },
  {
    name: "nothing is said of a server that acknowledges without its disk",
    breaks: "L8: what is on record survives",
    within: "warnings",
    find: 'of("synchronous_commit") === "off"',
    replace: 'of("synchronous_commit") === ""',
    proofs: [{ test: shared, named: "acknowledges what is not on its disk" }],
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
    name: "a server's error that says nothing of a commit is taken for its end",
    breaks: "L8: what is on record is told as such",
    within: "silent",
    find: 'new Set(["ailing", "away", "undecided"])',
    replace: 'new Set(["away"])',
    proofs: [{ test: lost, named: "whose reply is an error that says nothing of it (undecided)" }],
  },
  {
    name: "a statement of which its server has lost track counts as not done",
    breaks: "L8: what is not known is told as such",
    within: "once",
    find: "Effect.catchIf(this.#withTables(statement), isUndecided,",
    replace: "Effect.catchIf(this.#withTables(statement), () => false,",
    proofs: [{ test: lost, named: "of which its server has lost track" }],
  },
  {
    name: "each statement of a read sees a moment of its own",
    breaks: "a record is that of one moment",
    within: "read",
    find: '"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"',
    replace: '"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"',
    proofs: [
      {
        test: "test/recorder/postgres/PostgresRunRecorder.test.ts",
        named: "is that of one moment for a look at its run",
      },
    ],
  },
  {
    name: "what nobody may come back to any more is kept",
    breaks: "what a client is sent is kept for as long as its run lingers, docs/postgres.md",
    within: "make",
    find: "DELETE FROM {deliveries} WHERE expires_at < now()",
    replace: "DELETE FROM {deliveries} WHERE expires_at < now() - interval '1 day'",
    proofs: [{ test: deliveries, named: "forgets what has expired" }],
  },
  {
    name: "a response that lives is forgotten as soon as one that has ended",
    breaks: "what a client is sent is kept for as long as its run lingers, docs/postgres.md",
    within: "silentKeptMs",
    find: "export const silentKeptMs = 60_000;",
    replace: "export const silentKeptMs = 0;",
    proofs: [{ test: deliveries, named: "keeps a live one" }],
  },
  {
    name: "a role shows no certificate",
    breaks: "an address names the certificate of its role, docs/postgres.md",
    within: "tlsOf",
    find: "...(certificate === undefined ? {} : { cert: readFileSync(certificate) }),",
    replace: "",
    proofs: [{ test: server, named: "a role is known by the certificate" }],
  },
  {
    name: "a standby is a database of which nothing is known",
    breaks: "each code has its words, docs/postgres.md",
    within: "byRoutine",
    find: '["0A000 call_enum_check_hook", "standby"],',
    replace: "",
    proofs: [{ test: "test/recorder/postgres/PostgresStandby.test.ts", named: "is read, refuses whatever is written" }],
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
    name: "a program's file is called like the address of a server",
    breaks: "runs are kept in the store that is named",
    within: "SqlRunRecorder",
    find: "if (problem !== undefined) return Layer.effect(RunRecorder,",
    replace: 'if (problem === "") return Layer.effect(RunRecorder,',
    proofs: [{ test: store, named: "for SqlRunRecorder.layerFile in a program" }],
  },
  {
    name: "a store of a name that the command line refuses is opened for a program",
    breaks: "runs are kept in the store that is named",
    within: "layer",
    find: "if (wrong !== undefined) return Layer.effect(RunRecorder, Effect.fail(badName(wrong)));",
    replace: "",
    proofs: [{ test: store, named: "for GatewayLayers.layer in a program" }],
  },
  {
    name: "a run is given back by two statements at once",
    breaks: "L10: a process does not lose its own runs",
    within: "begins",
    find: "if (this.#runs.get(runId)?.isUnderWay === true) return false;",
    replace: "",
    proofs: [{ test: release, named: "is not taken from it by a heartbeat that gives it back as well" }],
  },
  {
    name: "a run is claimed again before it is known to be given back",
    breaks: "L10: a process does not lose its own runs",
    within: "refusalOf",
    find: " || lease.isLeaving(runId) ?",
    replace: " ?",
    proofs: [{ test: release, named: "giving it back was done and seemed to have failed" }],
  },
  {
    name: "a run that was claimed again is left by the word on the write before that",
    breaks: "L10: a process does not lose its own runs",
    within: "leave",
    find: "if (mine !== as) return;",
    replace: "",
    proofs: [{ test: release, named: "stays its own where it hears later that it was parked" }],
  },
];
