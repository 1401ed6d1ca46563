/**
 * Says what PostgreSQL's codes of errors mean for the store (postgresql.org/docs/current/errcodes-appendix.html).
 */
import { isSqlError } from "effect/sql/SqlError";

/** What an error of PostgreSQL, or of the way to it, is for the store. */
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
  | "outcome_unknown";

/** Whether a transaction was committed is not known: the connection broke at its COMMIT, and the server could not be asked. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}

/** Codes that say more than their class. */
const byCode: ReadonlyMap<string, ServerFailure> = new Map([
  ["40001", "conflicted"],
  ["40P01", "conflicted"],
  ["55P03", "server_locked"],
  ["53100", "server_disk_full"],
  ["25006", "standby"],
  ["42501", "forbidden"],
  ["3D000", "no_database"],
  ["3F000", "no_database"],
  ["XX001", "server_corrupt"],
  ["XX002", "server_corrupt"],
  ["57014", "slow"],
  ["26000", "unprepared"],
  ["42P05", "unprepared"],
  // The server closes the connection of a transaction that its client has left open.
  ["25P03", "away"],
  ["25P04", "away"],
  ["57P01", "away"],
  ["57P02", "away"],
  ["57P03", "away"],
  ["57P04", "no_database"],
  ["57P05", "away"],
]);

/** Classes of codes: what they begin with. */
const byClass: ReadonlyMap<string, ServerFailure> = new Map([
  ["08", "away"],
  ["28", "unauthenticated"],
  ["53", "exhausted"],
]);

/** The code of an error that PostgreSQL has sent; undefined for any other error. */
export const sqlStateOf = (error: unknown): string | undefined => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) return undefined;
  // Codes of Node look alike, and never come with a severity.
  return "severity" in cause && /^[\dA-Z]{5}$/.test(cause.code) ? cause.code : undefined;
};

/** A standby refuses serialisable transactions, with a code that says much else; this names the place that refuses. */
const standbyRoutine = "GetSerializableTransactionSnapshot";

const isOfStandby = (error: unknown): boolean => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  return cause instanceof Error && "routine" in cause && cause.routine === standbyRoutine;
};

/** PgBouncer says much by this code, also that its server has crashed. This is a refusal that no later try gets around. */
const poolerCode = "08P01";

const isOfPooler = (error: unknown): boolean => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  return cause instanceof Error && /unsupported startup parameter/.test(cause.message);
};

/** What an error of PostgreSQL is; undefined for errors that say nothing of the store as a whole, and for other databases. */
export const failureOf = (error: unknown): ServerFailure | undefined => {
  if (error instanceof OutcomeUnknown) return "outcome_unknown";
  const state = sqlStateOf(error);
  if (state === "0A000" && isOfStandby(error)) return "standby";
  if (state === poolerCode && isOfPooler(error)) return "pooled";
  if (state !== undefined) return byCode.get(state) ?? byClass.get(state.slice(0, 2));
  if (!isSqlError(error)) return undefined;
  if (error.reason._tag === "AuthenticationError") return "unauthenticated";
  if (error.reason._tag !== "ConnectionError") return undefined;
  return isOfTls(error.reason.cause) ? "untrusted" : "away";
};

/** Whether a connection failed for its certificate, or because the server speaks no TLS. To try again helps neither. */
const isOfTls = (cause: unknown): boolean => {
  if (!(cause instanceof Error)) return false;
  const code = "code" in cause ? String(cause.code) : "";
  return /CERT|_TLS_|_SSL_|SELF_SIGNED|UNABLE_TO_/.test(code) || /does not support TLS/.test(cause.message);
};

/** Whether an error leaves open what became of a transaction whose COMMIT was sent: no word of the server came back. */
export const leavesOpen = (error: unknown): boolean => failureOf(error) === "away";

/** Whether a statement failed because it names a table that is not there. */
export const isMissingTable = (error: unknown): boolean => sqlStateOf(error) === "42P01";
