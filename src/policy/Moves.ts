/**
 * Holds the table of what moves a run to its next route: section by section what the failed attempt met, and when it moves.
 *
 * Only a replay moves, so everything that forbids a replay forbids a move. A move has no backoff, and costs none of the budget of
 * retries.
 */
import type { FailureKind, RejectedReason } from "../domain/Failure.ts";
import type { Situation } from "./Situation.ts";

/** A cooldown or a Retry-After that is longer than this moves before it is waited for, in milliseconds. */
export const patienceMs = 5_000;

/** One row of the table. The first row that fits says whether the run moves. */
export interface MoveRow {
  /** What happened, as docs/routes.md prints it. */
  readonly failure: string;
  /** When the run moves for it. */
  readonly moves: string;
  /** Whether it moves; undefined where the row says nothing of it. Pure. */
  readonly fits: (s: Situation) => boolean | undefined;
}

/** The table, in the order in which its rows are asked. */
export const moveRows: ReadonlyArray<MoveRow> = [
  {
    failure: "a cancel, or the caller's own failure",
    moves: "never",
    fits: ({ failure }) => (failure.kind === "cancelled" || failure.kind === "caller_failed" ? false : undefined),
  },
  {
    failure: "400, 401 or 404 of a route with a credential and a model of its own",
    moves: "at once; its breaker opens",
    fits: (s) => (isOwnFault(s) ? true : undefined),
  },
  {
    failure: "rejected: quota, not_found, permission for the model",
    moves: "at once",
    fits: ({ failure }) => (failure.kind === "rejected" ? movedReasons.has(failure.reason) : undefined),
  },
  {
    failure: "refused (a content-policy finish), empty, model_length",
    moves: "at once, where configured as failures and nothing was shown",
    fits: ({ failure, shown }) => (finishes.has(failure.kind) ? shown === "nothing" : undefined),
  },
  {
    failure: "path down",
    moves: "at once, before waiting",
    fits: ({ run }) => (run.path === "down" ? true : undefined),
  },
  {
    failure: "a cooldown or a Retry-After longer than 5 s",
    moves: "at once, before waiting",
    fits: ({ failure, run }) =>
      Math.max(run.cooldown_ms, failure.retry_after_ms ?? 0) > patienceMs ? true : undefined,
  },
  {
    failure: "stalled before progress",
    moves: "at once: the budget of stalls is one",
    fits: ({ facts, failure }) =>
      failure.kind === "stalled" ? facts.progress === "none" || facts.progress === "started" : undefined,
  },
  {
    failure: "server_error, or transport and truncated before output",
    moves: "the second time in a row",
    fits: ({ facts, failure, run }) =>
      failure.kind === "server_error" ||
      ((failure.kind === "transport" || failure.kind === "truncated") && facts.progress !== "output")
        ? run.route_failures > 0
        : undefined,
  },
  { failure: "anything else", moves: "never", fits: () => false },
];

const movedReasons: ReadonlySet<RejectedReason> = new Set(["quota", "not_found", "permission"]);

const finishes: ReadonlySet<FailureKind> = new Set(["refused", "empty", "model_length"]);

/** Whether the route refuses what is its own: the run's request is well, and its next route may take it. */
export const isOwnFault = ({ failure, run }: Pick<Situation, "failure" | "run">): boolean =>
  run.own_route &&
  failure.kind === "rejected" &&
  (failure.reason === "auth" || failure.reason === "not_found" || failure.reason === "invalid_request");

/** Whether a replay of the failed attempt goes to the next route. */
export const moves = (s: Situation): boolean => {
  if (s.run.next_route !== "up" || s.run.moves >= s.budget.max_moves) return false;
  for (const { fits } of moveRows) {
    const verdict = fits(s);
    if (verdict !== undefined) return verdict;
  }
  return false;
};
