/**
 * Holds the table of failures that move a run to its next route.
 *
 * Only a replay of the run's first request moves. So whatever forbids a replay forbids a move, and a continuation stays on its route. A
 * move has no backoff and uses none of the retry budget.
 */
import type { Failure, FailureKind, RejectedReason } from "../domain/Failure.ts";
import type { RunFacts } from "../domain/RunFacts.ts";
import type { Situation } from "./Situation.ts";

/** Maximum cooldown or Retry-After for which a run waits instead of moving, in milliseconds. */
export const patienceMs = 5_000;

/** One row of the table. The first row that applies decides whether the run moves. */
export interface MoveRow {
  /** The failure as docs/routes.md prints it. */
  readonly failure: string;
  /** The condition of the move as docs/routes.md prints it. */
  readonly moves: string;
  /**
   * True if the row is about failures that are not retryable on their own route. Row 7 of the policy does not stop a move by this row. The
   * other rows move only retryable failures.
   */
  readonly passes?: true;
  /** Returns true to move, false to stay, undefined if the row does not apply. Pure. */
  readonly match: (s: Situation) => boolean | undefined;
}

/** Rows of the table, in evaluation order. */
export const moveRows: ReadonlyArray<MoveRow> = [
  {
    failure: "a continuation or a resume failed",
    moves: "never",
    match: ({ run }) => (run.mode === "continue" || run.mode === "resume" ? false : undefined),
  },
  {
    failure: "a cancellation by anyone but the provider, or a failure of the caller itself",
    moves: "never",
    match: ({ failure }) =>
      failure.kind === "caller_failed" || (failure.kind === "cancelled" && failure.by !== "provider")
        ? false
        : undefined,
  },
  {
    failure: "400, 401 or 404 of a route with its own credential and model",
    moves: "at once, if no fresh credentials can be tried; its breaker opens",
    passes: true,
    match: (s) => (isOwnFault(s) ? !s.credentials : undefined),
  },
  {
    failure: "rejected: quota, not_found, permission for the model",
    moves: "at once",
    passes: true,
    match: ({ failure }) => (failure.kind === "rejected" && movedReasons.has(failure.reason) ? true : undefined),
  },
  {
    failure: "rejected for any other reason",
    moves: "never",
    match: ({ failure }) => (failure.kind === "rejected" ? false : undefined),
  },
  {
    failure: "refused (a content-policy finish), empty, model_length",
    moves: "at once, if configured as failures and nothing was shown",
    passes: true,
    match: ({ failure, shown }) => (finishes.has(failure.kind) ? shown === "nothing" : undefined),
  },
  {
    failure: "transport, not sent, and the same connection would fail again: no such name, a wrong certificate",
    moves: "at once",
    passes: true,
    match: ({ facts, failure, resolved }) =>
      failure.kind === "transport" && facts.delivery === "not_sent" && !resolved.retryable ? true : undefined,
  },
  {
    failure: "a server_error that the same request would get again: 501, 505, 525",
    moves: "at once",
    passes: true,
    match: ({ failure, resolved }) => (failure.kind === "server_error" && !resolved.retryable ? true : undefined),
  },
  {
    failure: "path down",
    moves: "at once, before waiting",
    match: ({ run }) => (run.path === "down" ? true : undefined),
  },
  {
    failure: "a cooldown or a Retry-After longer than 5 s",
    moves: "at once, before waiting",
    match: ({ failure, run }) =>
      Math.max(run.cooldown_ms, failure.retry_after_ms ?? 0) > patienceMs ? true : undefined,
  },
  {
    failure: "stalled before progress",
    moves: "at once: the only replay that a stall gets by default is spent on the next route",
    match: ({ facts, failure }) =>
      failure.kind === "stalled" ? facts.progress === "none" || facts.progress === "started" : undefined,
  },
  {
    failure: "server_error, rate_limited or overloaded, with a wait of at most 5 s or none",
    moves: "the second time in a row",
    match: ({ failure, run }) => (turnedAway.has(failure.kind) ? run.route_failures > 0 : undefined),
  },
  {
    failure: "transport, truncated, protocol or the provider's own cancel, before any output",
    moves: "the second time in a row",
    match: ({ facts, failure, run }) =>
      isBroken(failure) && facts.progress !== "output" ? run.route_failures > 0 : undefined,
  },
  { failure: "anything else", moves: "never", match: () => false },
];

const movedReasons: ReadonlySet<RejectedReason> = new Set(["quota", "not_found", "permission"]);

const finishes: ReadonlySet<FailureKind> = new Set(["refused", "empty", "model_length"]);

const turnedAway: ReadonlySet<FailureKind> = new Set(["server_error", "rate_limited", "overloaded"]);

/** True if the stream broke. Cancels from this side cannot occur here, because an earlier row handles them. */
const isBroken = ({ kind }: Failure): boolean =>
  kind === "transport" || kind === "truncated" || kind === "protocol" || kind === "cancelled";

interface OwnFault extends Pick<Situation, "failure"> {
  readonly run: Pick<RunFacts, "own_route">;
}

/** Returns true if the route failed because of its own credential or model. The request itself is fine, so the next route may take it. */
export const isOwnFault = ({ failure, run }: OwnFault): boolean =>
  run.own_route &&
  failure.kind === "rejected" &&
  (failure.reason === "auth" || failure.reason === "not_found" || failure.reason === "invalid_request");

/**
 * Returns true if a replay of the failed attempt moves to the next route.
 *
 * @param table the policy's rows for moves; empty if it never moves
 */
export const shouldMove = (s: Situation, table: ReadonlyArray<MoveRow> = moveRows): boolean => {
  if (s.run.next_route !== "up" || s.run.moves >= s.budget.max_moves) return false;
  for (const { match, passes } of table) {
    const verdict = match(s);
    if (verdict !== undefined) return verdict && (passes === true || s.resolved.retryable);
  }
  return false;
};
