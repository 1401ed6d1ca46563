/**
 * Maps PostgreSQL's error codes to their meaning for the store (postgresql.org/docs/current/errcodes-appendix.html).
 */
import { isSqlError } from "effect/sql/SqlError";

/** The meaning, for the store, of an error that PostgreSQL sent or that the connection to it had. */
export type ServerFailure =
  | "conflicted"
  | "server_locked"
  | "server_disk_full"
  | "exhausted"
  | "standby"
  | "forbidden"
  | "unauthenticated"
  | "untrusted"
  | "no_database"
  | "server_corrupt"
  | "slow"
  | "pooled"
  | "unprepared"
  | "away"
  | "ailing"
  | "wrapping"
  | "undecided"
  | "outcome_unknown";

/** The outcome of a transaction is unknown: its COMMIT got no reply, and the server could not tell it later. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}

/** Codes that are more specific than their class. */
const byCode: ReadonlyMap<string, ServerFailure> = new Map([
  ["40001", "conflicted"],
  ["40P01", "conflicted"],
  ["40000", "conflicted"],
  // The snapshot is too old. Only servers before version 17 report this.
  ["72000", "conflicted"],
  // PostgreSQL itself never reports this, but poolers and databases that speak its protocol do.
  ["40003", "undecided"],
  ["55P03", "server_locked"],
  ["53100", "server_disk_full"],
  ["25006", "standby"],
  ["42501", "forbidden"],
  ["3D000", "no_database"],
  ["3F000", "no_database"],
  ["XX001", "server_corrupt"],
  ["XX002", "server_corrupt"],
  ["57000", "slow"],
  ["57014", "slow"],
  ["26000", "unprepared"],
  ["42P05", "unprepared"],
  // The server closes the connection of a transaction that its client left open.
  ["25P03", "away"],
  ["25P04", "away"],
  ["57P01", "away"],
  ["57P02", "away"],
  ["57P03", "away"],
  ["57P04", "no_database"],
  ["57P05", "away"],
]);

/** Classes of codes, by their first two characters. */
const byClass: ReadonlyMap<string, ServerFailure> = new Map([
  ["08", "away"],
  ["28", "unauthenticated"],
  ["53", "exhausted"],
  ["58", "ailing"],
]);

/** Returns the code of an error that PostgreSQL sent; undefined for any other error. */
export const sqlStateOf = (error: unknown): string | undefined => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) return undefined;
  // Node's codes look similar, but never come with a severity.
  return "severity" in cause && /^[\dA-Z]{5}$/.test(cause.code) ? cause.code : undefined;
};

/** Codes that have several meanings. These server routines use them to refuse every write. */
const byRoutine: ReadonlyMap<string, ServerFailure> = new Map([
  // A standby refuses serialisable transactions, either at their start or at the first read if that level is the default.
  ["0A000 call_enum_check_hook", "standby"],
  ["0A000 GetSerializableTransactionSnapshot", "standby"],
  // Transaction ids run out if no table is vacuumed.
  ["54000 GetNewTransactionId", "wrapping"],
  ["54000 GetNewMultiXactId", "wrapping"],
]);

const routineOf = (error: unknown): string => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  return cause instanceof Error && "routine" in cause ? String(cause.routine) : "";
};

/**
 * PgBouncer uses this code for many errors, including a crash of its server. `isPoolerRefusal` finds the one refusal among them that no
 * retry can avoid.
 */
const poolerCode = "08P01";

const isPoolerRefusal = (error: unknown): boolean => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  return cause instanceof Error && /unsupported startup parameter/.test(cause.message);
};

/** Classifies an error of PostgreSQL; returns undefined for errors that do not concern the whole store, and for other databases. */
export const failureOf = (error: unknown): ServerFailure | undefined => {
  if (error instanceof OutcomeUnknown) return "outcome_unknown";
  const state = sqlStateOf(error);
  if (state === poolerCode && isPoolerRefusal(error)) return "pooled";
  if (state !== undefined)
    return byCode.get(state) ?? byClass.get(state.slice(0, 2)) ?? byRoutine.get(`${state} ${routineOf(error)}`);
  if (!isSqlError(error)) return undefined;
  if (error.reason._tag === "AuthenticationError") return "unauthenticated";
  if (error.reason._tag !== "ConnectionError") return undefined;
  if (isOwnCertificateError(error.reason.cause)) return "unauthenticated";
  return isTlsError(error.reason.cause) ? "untrusted" : "away";
};

const codeOf = (cause: unknown): string => (cause instanceof Error && "code" in cause ? String(cause.code) : "");

/** True if the server refused this program's client certificate with a TLS alert. */
const isOwnCertificateError = (cause: unknown): boolean =>
  /_ALERT_(?:ACCESS_DENIED|BAD_CERTIFICATE|CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE)/.test(codeOf(cause));

/** True if a connection failed because of the server's certificate or missing TLS. Retrying does not help. */
const isTlsError = (cause: unknown): boolean => {
  if (!(cause instanceof Error)) return false;
  const code = codeOf(cause);
  return /CERT|_TLS_|_SSL_|SELF_SIGNED|UNABLE_TO_/.test(code) || /does not support TLS/.test(cause.message);
};

/** Failures that leave the outcome of a COMMIT open. Poolers also use class 58 when they lose their server. */
const silent: ReadonlySet<ServerFailure | undefined> = new Set(["ailing", "away", "undecided"]);

/** True if an error leaves open the outcome of a transaction whose COMMIT was sent. */
export const isOutcomeUnknown = (error: unknown): boolean => silent.has(failureOf(error));

/** True if an error leaves open the outcome of a single-statement transaction although the server is reachable. */
export const isUndecided = (error: unknown): boolean => failureOf(error) === "undecided";

/** True if a statement failed because a table is missing. */
export const isMissingTable = (error: unknown): boolean => sqlStateOf(error) === "42P01";
