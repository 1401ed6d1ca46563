/**
 * Cancels runs of other processes for clients that present the run's credentials, and runs of this process for clients of other processes.
 */
import { Duration, Effect, type Scope } from "effect";
import type { SharedCancels } from "../../recorder/shared/SharedCancels.ts";
import type { SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { lateRecordMs } from "../../recorder/WriteQueue.ts";
import * as StoredCancels from "../../runtime/run/StoredCancels.ts";
import type { Attachments } from "./Attachments.ts";

/** Cancels a run for its user. Returns true if the client may read the run and another process owns it. */
export type CancelsElsewhere = (runId: string, holder: string) => Effect.Effect<boolean>;

/**
 * Handles cancels from other processes while the scope is open.
 *
 * @param facts state shared by the store's processes; undefined if it is not shared
 * @param cancels finds the owner of a run; a run without an owner is not cancelled
 * @returns a function that sends cancels to other processes; undefined without shared state
 */
export const make = Effect.fnUntraced(function* (
  attachments: Attachments,
  facts: SharedFacts | undefined,
  cancels: Pick<SharedCancels, "findOwner"> | undefined,
): Effect.fn.Return<CancelsElsewhere | undefined, never, Scope.Scope> {
  if (facts === undefined) return undefined;
  const findRun = ({ holder, run_id }: StoredCancels.Cancel) => {
    const run = holder === undefined ? undefined : attachments.find(run_id, holder);
    return typeof run === "object" ? run : undefined;
  };
  yield* StoredCancels.hearing(
    facts,
    (asked) => findRun(asked) !== undefined,
    (asked) => {
      const run = findRun(asked);
      if (run !== undefined) attachments.cancel(run);
    },
  );
  const findOwner = (runId: string) =>
    Effect.orElseSucceed(cancels?.findOwner(runId) ?? Effect.undefined, () => undefined);
  // A gateway records a run up to a second after its start, so a missing owner is looked up again.
  const findOwnerLate = (runId: string) =>
    Effect.flatMap(findOwner(runId), (name) =>
      name === undefined ? Effect.delay(findOwner(runId), Duration.millis(lateRecordMs)) : Effect.succeed(name),
    );
  return (run_id, holder) =>
    Effect.flatMap(findOwnerLate(run_id), (name) =>
      name === undefined ? Effect.succeed(false) : StoredCancels.cancel(facts, { run_id, holder }),
    );
});
