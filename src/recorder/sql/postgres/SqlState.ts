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
  | "ailing"
  | "wrapping"
  | "undecided"
  | "outcome_unknown";

/** Whether a transaction was committed is not known: no word of that came back from its COMMIT, and the server could not be asked. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}

/** Codes that say more than their class. */
const byCode: ReadonlyMap<string, ServerFailure> = new Map([
  ["40001", "conflicted"],
  ["40P01", "conflicted"],
  ["40000", "conflicted"],
  // What it had read is kept no longer; only servers before version 17 say so.
  ["72000", "conflicted"],
  // PostgreSQL itself never says that; what stands before it does, and so do databases that speak its protocol.
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
  ["58", "ailing"],
]);

/** The code of an error that PostgreSQL has sent; undefined for any other error. */
export const sqlStateOf = (error: unknown): string | undefined => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  if (!(cause instanceof Error && "code" in cause && typeof cause.code === "string")) return undefined;
  // Codes of Node look alike, and never come with a severity.
  return "severity" in cause && /^[\dA-Z]{5}$/.test(cause.code) ? cause.code : undefined;
};

/** Codes that say much else, and the places in the server that refuse every write with one. */
const byRoutine: ReadonlyMap<string, ServerFailure> = new Map([
  // A standby refuses serialisable transactions: where one begins, and where one that begins by default reads.
  ["0A000 call_enum_check_hook", "standby"],
  ["0A000 GetSerializableTransactionSnapshot", "standby"],
  // Ids of transactions run out where nothing is vacuumed.
  ["54000 GetNewTransactionId", "wrapping"],
  ["54000 GetNewMultiXactId", "wrapping"],
]);

const routineOf = (error: unknown): string => {
  const cause = isSqlError(error) ? error.reason.cause : error;
  return cause instanceof Error && "routine" in cause ? String(cause.routine) : "";
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
  if (state === poolerCode && isOfPooler(error)) return "pooled";
  if (state !== undefined)
    return byCode.get(state) ?? byClass.get(state.slice(0, 2)) ?? byRoutine.get(`${state} ${routineOf(error)}`);
  if (!isSqlError(error)) return undefined;
  if (error.reason._tag === "AuthenticationError") return "unauthenticated";
  if (error.reason._tag !== "ConnectionError") return undefined;
  if (isOfOwnCertificate(error.reason.cause)) return "unauthenticated";
  return isOfTls(error.reason.cause) ? "untrusted" : "away";
};

const codeOf = (cause: unknown): string => (cause instanceof Error && "code" in cause ? String(cause.code) : "");

/** Whether the server has refused the certificate of this program's role, by an alert of TLS. */
const isOfOwnCertificate = (cause: unknown): boolean =>
  /_ALERT_(?:ACCESS_DENIED|BAD_CERTIFICATE|CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE)/.test(codeOf(cause));

/** Whether a connection failed for the server's certificate, or because it speaks no TLS. To try again helps neither. */
const isOfTls = (cause: unknown): boolean => {
  if (!(cause instanceof Error)) return false;
  const code = codeOf(cause);
  return /CERT|_TLS_|_SSL_|SELF_SIGNED|UNABLE_TO_/.test(code) || /does not support TLS/.test(cause.message);
};

/** What says nothing of a COMMIT that was sent: poolers tell by codes of class 58 too that they have lost their server. */
const silent: ReadonlySet<ServerFailure | undefined> = new Set(["ailing", "away", "undecided"]);

/** Whether an error leaves open what became of a transaction whose COMMIT was sent: no word of the server on it came back. */
export const leavesOpen = (error: unknown): boolean => silent.has(failureOf(error));

/** Whether an error leaves open what became of a statement that is a transaction by itself, although the server is there. */
export const isUndecided = (error: unknown): boolean => failureOf(error) === "undecided";

/** Whether a statement failed because it names a table that is not there. */
export const isMissingTable = (error: unknown): boolean => sqlStateOf(error) === "42P01";
