/**
 * Ends runs that other machines drive, for clients that show what the run's own client has shown; and those of this one for clients of others.
 */
import { Effect, type Scope } from "effect";
import type { SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import * as StoredCancels from "../../runtime/attach/StoredCancels.ts";
import type { Attachments } from "./Attachments.ts";

/** Ends a run in its user's name. Returns whether a machine drives it for who asks. */
export type CancelsElsewhere = (runId: string, holder: string) => Effect.Effect<boolean>;

/**
 * Hears of runs of this process that are ended at other machines, while the scope lives.
 *
 * @param facts what the processes of the store know together; undefined where each knows its own
 */
export const make = Effect.fnUntraced(function* (
  attachments: Attachments,
  facts: SharedFacts | undefined,
): Effect.fn.Return<CancelsElsewhere | undefined, never, Scope.Scope> {
  if (facts === undefined) return undefined;
  const held = ({ holder, run_id }: StoredCancels.Cancel) => {
    const run = holder === undefined ? undefined : attachments.found(run_id, holder);
    return typeof run === "object" ? run : undefined;
  };
  yield* StoredCancels.hearing(
    facts,
    (asked) => held(asked) !== undefined,
    (asked) => {
      const run = held(asked);
      if (run !== undefined) attachments.cancel(run);
    },
  );
  return (run_id, holder) => StoredCancels.cancel(facts, { run_id, holder });
});
