/**
 * Holds the mutants of the SQL recorder.
 */
import type { Mutant } from "./Mutant.ts";

const lease = "test/recorder/SqlLease.test.ts";
const shared = "test/recorder/SqlShared.test.ts";
const check = "test/recorder/SqlEntryCheck.test.ts";

/** The mutants of `src/recorder/Sql*`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a lease is over when the reader's wall clock says so",
    breaks: "one owner of a run (break 17)",
    within: "standing",
    find: "const needMs = Math.max(leaseMs, this.#leaseMs);",
    replace: 'const needMs = Math.max(leaseMs, this.#leaseMs);\n    if (seemsOver) return "over";',
    proofs: [{ test: lease, named: "the other one's is 60 s off" }],
  },
  {
    name: "a lease is watched for the watcher's own lease only",
    breaks: "one owner of a run (break 17)",
    within: "standing",
    find: "const needMs = Math.max(leaseMs, this.#leaseMs);",
    replace: "const needMs = leaseMs > 0 ? this.#leaseMs : leaseMs;",
    proofs: [{ test: lease, named: "a process of a longer lease" }],
  },
  {
    name: "an outage counts as silence of those that it kept from beating",
    breaks: "one owner of a run (DESIGN section 18)",
    within: "looked",
    find: "const gap = at - this.#beatAt > this.#leaseMs / 2 || as !== this.#beatAs;",
    replace: "const gap = as !== this.#beatAs;",
    proofs: [{ test: lease, named: "one that begins while a process waits" }],
  },
  {
    name: "a process takes a run over that its own stream has lost and does not know of",
    breaks: "one owner of a run",
    within: "claiming",
    find: "const isHere = mine !== undefined && mine.lease !== held.id && mine.told === undefined;",
    replace: "const isHere = mine === undefined && mine !== undefined;",
    proofs: [{ test: lease, named: "is not its again before" }],
  },
  {
    name: "a write that comes late drives a run on that its process has given back",
    breaks: "a run is lost",
    within: "apply",
    find: "if (run.owner === undefined && next !== record && RunRecord.drives(entry)) {",
    replace: "if (run.owner !== undefined && run.owner === undefined) {",
    proofs: [
      { test: lease, named: "a write that comes after its run was given back" },
      { test: "test/recorder/SqlRunRecorder.test.ts", named: "goes on for no write that comes late" },
    ],
  },
  {
    name: "a late write drives a run on in memory that was given back",
    breaks: "a run is lost",
    within: "makeMemory",
    find: "const isGivenBack = before !== undefined && !driven.has(runId);",
    replace: "const isGivenBack = before !== undefined && before === undefined;",
    proofs: [{ test: "test/recorder/RunRecorderMemory.test.ts", named: "goes on for no write that comes late" }],
  },
  {
    name: "a caller cannot leave while it waits for a silent process",
    breaks: "L11",
    within: "waiting",
    find: "yield* Effect.interruptible(clock.sleep(millis(lease.pauseMs)));",
    replace: "yield* clock.sleep(millis(lease.pauseMs));",
    proofs: [{ test: lease, named: "a caller that leaves while it waits" }],
  },
  {
    name: "a lease that was renewed since it was seen is fenced all the same",
    breaks: "one owner of a run",
    within: "fence",
    find: `WHERE id = \${id} AND fenced = 0 AND beats = \${beats} RETURNING id`,
    replace: `WHERE id = \${id} RETURNING id`,
    proofs: [{ test: "test/recorder/SqlRows.test.ts", named: "a lease" }],
  },
  {
    name: "a run is written over as another process has left it",
    breaks: "one owner of a run",
    within: "update",
    find: `WHERE run_id = \${runId} AND version = \${before.version} RETURNING seq`,
    replace: `WHERE run_id = \${runId} RETURNING seq`,
    proofs: [{ test: "test/recorder/SqlRows.test.ts", named: "a run" }],
  },
  {
    name: "the recorder waits for a transaction of its own caller",
    breaks: "L11 (break 25)",
    within: "#apart",
    find: "if (!this.#options.shared.client) return body;",
    replace: "if (!this.#options.shared.client || writes) return body;",
    proofs: [{ test: shared, named: "a write inside of one fails at once" }],
  },
  {
    name: "the recorder waits for a held connection without a limit",
    breaks: "L11 (break 25)",
    within: "#connected",
    find: "if (!this.#options.shared.client) return begin(body);",
    replace: "if (this.#patience !== undefined) return begin(body);",
    proofs: [{ test: shared, named: "what is written beside one" }],
  },
  {
    name: "a program's own tables are taken for a reason to refuse its database",
    breaks: "SqlRunRecorder.layer (break 50)",
    within: "migrate",
    find: "else if (!shared && names.length > 0)",
    replace: "else if (names.length > 0 || shared)",
    proofs: [{ test: shared, named: "leaves tables" }],
  },
  {
    name: "a file of the first version is taken for another program's",
    breaks: "what is on record can be read",
    within: "migrate",
    find: "if (yield* isUnprefixed(sql, names)) yield* rename(tables);",
    replace: "if (names.length < 0) yield* rename(tables);",
    proofs: [{ test: "test/recorder/SqlSchema.test.ts", named: "is brought up to date where it stands" }],
  },
  {
    name: "parts of a forgotten run stay where the client looks after no foreign keys",
    breaks: "SqlRunRecorder.layer (break 50)",
    within: "forgetRuns",
    find: `yield* sql\`DELETE FROM \${incidents} WHERE \${these}\`;`,
    replace: "void incidents;",
    proofs: [{ test: shared, named: "foreign keys" }],
  },
  {
    name: "a record is written without the schema that reads it",
    breaks: "L7, L8 (break 02)",
    within: "readable",
    find: "if (entries.every(isEntry)) return entries;",
    replace: "if (entries.length >= 0) return entries;",
    proofs: [{ test: check, named: "a budget of Infinity" }],
  },
  {
    name: "what JSON leaves out is folded as it was given",
    breaks: "L8 (break 02)",
    within: "readable",
    find: "all.push(found.success);",
    replace: "all.push(entry);",
    proofs: [{ test: check, named: "whatever is done to an entry" }],
  },
  {
    name: "a write that was given up makes its process the owner of a run that it has given back",
    breaks: "L6",
    within: "transaction",
    find: "if (job.isGivenUp) {",
    replace: "if (job.isGivenUp && job.runId === undefined) {",
    proofs: [{ test: "test/recorder/SqlWriter.test.ts", named: "has given up makes no process the owner" }],
  },
];
