/**
 * Converts database failures to `RecorderError`, and counts them.
 */
import * as Effect from "effect/Effect";
import * as Metric from "effect/Metric";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { RecorderError } from "../RecorderError.ts";
import { failureOf, type ServerFailure } from "./postgres/SqlState.ts";
import { FileGone } from "./sqlite/SqlFile.ts";
import { primaryCode } from "./sqlite/SqlNodeSqlite.ts";

/** Another transaction has changed a row that this transaction read before. This transaction restarts. */
export class RowChanged extends Error {
  override readonly name = "RowChanged";
}

/** The program's own transaction holds the connection that the recorder needs. */
export class ConnectionHeld extends Error {
  override readonly name = "ConnectionHeld";
}

/** Counts the commits of the SQL recorder. */
export const commits = Metric.counter("stream_recovery.recorder_commits", {
  description: "Write transactions that the recorder committed",
  incremental: true,
});

/** Counts the failures of the SQL recorder's database, by reason (`error.type`). */
export const failures = Metric.counter("stream_recovery.recorder_failures", {
  description: "Failures of the recorder's database",
  incremental: true,
});

/** Messages about the store as a whole, including what the operator can do. */
const ofStore = {
  locked:
    "is locked by another program for longer than this one waits; nothing was written. Close the program that holds it open, or retry",
  held: "is inside a transaction of this program, and the record must neither wait for it nor be rolled back with it; nothing was written. Run the stream outside that transaction, or give the recorder its own database",
  disk_full: "has no room left on its disk; nothing was written. Free some space or prune old runs, then retry",
  read_only: "cannot be written: the file, its folder or its disk is read-only. Make it writable, or name another file",
  corrupt:
    "is damaged or is not a database of stream-recovery; nothing was changed. Move it away (a new one is created), or restore a backup",
  gone: "was deleted, moved or replaced while it was open; nothing was written. We now use the file at that path",
  unavailable: "could not be used; nothing was written. Check the cause",
} as const;

const ofServer: Readonly<Record<ServerFailure, readonly [reason: RecorderError["reason"], said: string]>> = {
  conflicted: [
    "locked",
    "has so many concurrent writers that every try of this write was rolled back; nothing was written. Retry",
  ],
  server_locked: [
    "locked",
    "is locked by another program for longer than this one waits; nothing was written. Check pg_locks, or retry",
  ],
  server_disk_full: [
    "disk_full",
    "has no room left on its server's disk; nothing was written. Free some space or prune old runs, then retry",
  ],
  exhausted: [
    "unavailable",
    "has no connection or no memory left for this program; nothing was written. Check max_connections and the other connections",
  ],
  standby: ["read_only", "accepts no writes: its server is a standby or is set to read-only. Name the primary server"],
  forbidden: [
    "read_only",
    "refuses its role: a right on the tables is missing; nothing was written. docs/postgres.md lists the rights that the role needs",
  ],
  unauthenticated: [
    "unavailable",
    "refuses this program's role, password or certificate. Check the address, the source of the password, and pg_hba.conf",
  ],
  untrusted: [
    "unavailable",
    "is not trusted: its certificate is not signed by a trusted authority or belongs to another host, or its server does not support TLS. Check sslmode and sslrootcert in its address",
  ],
  no_database: [
    "unavailable",
    "does not exist: its server has no such database or schema. Create it, or name another one",
  ],
  server_corrupt: ["corrupt", "has damaged files, according to its server; nothing was changed. Restore a backup"],
  slow: [
    "unavailable",
    "took longer than its server permits, or an operator cancelled its statement; nothing was written. Check statement_timeout",
  ],
  pooled: [
    "bad_option",
    "is behind a pooler that refuses this program's connection parameters. Name them in its ignore_startup_parameters: docs/postgres.md has the settings",
  ],
  unprepared: [
    "bad_option",
    "is behind a pooler that gives each transaction another connection and keeps no prepared statements; nothing was written. Add prepare=false to the address",
  ],
  away: [
    "unavailable",
    "cannot be reached, or its server is shutting down or starting; nothing was written. The next write retries",
  ],
  ailing: [
    "unavailable",
    "has a system error, for example a disk or a file that its server cannot read or write; nothing was written. Check the server's log",
  ],
  wrapping: [
    "read_only",
    "accepts no writes: its server has no transaction ids left. Run VACUUM to completion in each of its databases, as the server's log says",
  ],
  undecided: [
    "unavailable",
    "lost a statement and rolled its transaction back; nothing was written. The next write retries",
  ],
  outcome_unknown: [
    "unavailable",
    "was disconnected or lost the transaction during a commit, and could not be asked for the outcome afterwards: we cannot tell whether this write is on record",
  ],
};

/**
 * Converts a database failure to an error with a message.
 *
 * @param place name of the database for messages
 */
export const explain = (cause: unknown, place: string): RecorderError => {
  // The client does not meet a requirement of the recorder. The error already contains its message.
  if (cause instanceof RecorderError) return cause;
  const server = failureOf(cause);
  if (server !== undefined) {
    const [reason, words] = ofServer[server];
    return new RecorderError({ reason, run_id: "", message: `${place} ${words}`, cause });
  }
  const kind = kindOf(isSqlError(cause) ? cause.reason.cause : cause);
  const lost = kind === undefined && isSqlError(cause) ? kindOfReason(cause) : kind;
  const said = lost ?? "unavailable";
  return new RecorderError({
    reason: said === "gone" ? "unavailable" : said === "held" ? "locked" : said,
    run_id: "",
    message: `${place} ${ofStore[said]}`,
    cause,
  });
};

/** Failures caused by another program, the machine or the server. The same options may work a moment later. */
const passing: ReadonlySet<ServerFailure> = new Set([
  "ailing",
  "away",
  "conflicted",
  "exhausted",
  "outcome_unknown",
  "server_disk_full",
  "server_locked",
  "undecided",
]);

/** True if a store that could not be opened may open later with the same options. */
export const isTransient = ({ cause, reason }: RecorderError): boolean => {
  const server = failureOf(cause);
  return server === undefined ? reason === "locked" || reason === "disk_full" : passing.has(server);
};

/** Returns the message without its consequence for a write, for callers that wrote nothing. */
export const failureText = ({ message }: RecorderError): string =>
  message.split("; nothing was written", 1)[0] ?? message;

/**
 * Failures that affect every write. After such a failure, the writes of a group are not retried one by one, because each would wait again.
 */
const ofAll: ReadonlySet<ServerFailure | undefined> = new Set([
  "away",
  "exhausted",
  "forbidden",
  "no_database",
  "outcome_unknown",
  "pooled",
  "slow",
  "unauthenticated",
  "undecided",
  "unprepared",
  "untrusted",
]);

/** True if one bad write may have made its whole group fail. */
export const isOneRunsFailure = ({ cause, reason }: RecorderError): boolean =>
  (reason === "corrupt" || reason === "unavailable") && !ofAll.has(failureOf(cause));

/** Counts a failure of the database. Do not count refusals of a single run. */
export const count = (error: RecorderError): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(failures, [["error.type", error.reason]]), 1);

/** Counts a damaged row. Other errors about one run are not database failures. */
export const countDamage = (error: unknown): Effect.Effect<void> =>
  error instanceof RecorderError && error.reason === "corrupt" ? count(error) : Effect.void;

type Kind = keyof typeof ofStore;

const kindOf = (cause: unknown): Kind | undefined => {
  if (cause instanceof FileGone) return "gone";
  if (cause instanceof ConnectionHeld) return "held";
  if (cause instanceof RowChanged) return "locked";
  const byCode = byResultCode.get(primaryCode(cause) ?? -1);
  if (byCode !== undefined) return byCode;
  if (cause instanceof Error && "code" in cause && typeof cause.code === "string") return bySystemCode.get(cause.code);
  return undefined;
};

/** SQLite's primary result codes (sqlite.org/rescode.html). */
const byResultCode: ReadonlyMap<number, Kind> = new Map([
  [5, "locked"],
  [6, "locked"],
  [8, "read_only"],
  [11, "corrupt"],
  [13, "disk_full"],
  [26, "corrupt"],
]);

/** Codes of system errors when the file or its folder is created. */
const bySystemCode: ReadonlyMap<string, Kind> = new Map([
  ["EACCES", "read_only"],
  ["EPERM", "read_only"],
  ["EROFS", "read_only"],
  ["ENOSPC", "disk_full"],
  ["EDQUOT", "disk_full"],
]);

/** Maps the reasons that Effect has for any database. */
const kindOfReason = ({ reason }: SqlError): Kind | undefined =>
  reason._tag === "LockTimeoutError" || reason._tag === "DeadlockError" || reason._tag === "SerializationError"
    ? "locked"
    : undefined;
