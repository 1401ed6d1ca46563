/**
 * Cancels runs that other processes own, through a shared store.
 *
 * The cancelling process writes a row and waits until it is gone. The owner of the run deletes the row in the step that cancels; other
 * processes leave it. A row that no process takes is withdrawn, unless it is meant to stay pending. A suspended owner finds a pending row
 * when it continues, or the process that takes the run over finds it.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Queue from "effect/Queue";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { Label } from "../../domain/Limits.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import type { SharedCancels } from "../../recorder/shared/SharedCancels.ts";
import type { FactsFault, SharedFacts } from "../../recorder/shared/SharedFacts.ts";

/** Maximum wait for the owner of a run to take a cancel, in milliseconds. */
export const cancelMs = 2_000;

/** Maximum time for which a cancel remains pending, in milliseconds. */
export const standsMs = 3_600_000;

/** Interval at which the canceller checks whether its row was deleted, in milliseconds. */
const lookMs = 50;

/** A request to cancel a run. */
const Cancel = Schema.Struct({
  run_id: Label,
  /** A keyed digest of what the client presents to identify itself; absent if the canceller has direct access to the store. */
  holder: Schema.optionalKey(Label),
});

/** A request to cancel a run. */
export type Cancel = typeof Cancel.Type;

const read = Schema.decodeUnknownOption(Schema.fromJsonString(Cancel));

/** The store operations that cancels need. */
export type CancelFacts = Pick<SharedFacts, "all" | "find" | "on" | "put" | "take">;

/**
 * Cancels a run that another process owns. If the store fails, the cancel counts as not taken.
 *
 * @param stands true if the cancel remains pending until a process takes it
 * @returns true if a process took the cancel
 */
export const cancel = (facts: CancelFacts, it: Cancel, stands = false): Effect.Effect<boolean> =>
  Effect.orElseSucceed(request(facts, it, stands), () => false);

/** Like `cancel`, but fails if the store fails. */
export const request = (facts: CancelFacts, it: Cancel, stands: boolean): Effect.Effect<boolean, FactsFault> =>
  Effect.suspend(() => {
    // A pending cancel is a single row per run, no matter how often it is requested.
    const key = stands ? it.run_id : `${it.run_id} ${globalThis.crypto.randomUUID()}`;
    const put = facts.put("cancel", key, JSON.stringify(it), stands ? standsMs : 2 * cancelMs);
    const gone = Effect.map(facts.find("cancel", key), (found) => found === undefined);
    const look = Effect.andThen(Effect.sleep(lookMs), gone);
    const taken = Effect.timeoutOption(Effect.repeat(look, { until: (it) => it }), cancelMs);
    // Withdraws the row in one step. If it is already gone, the owner has cancelled the run.
    const back = stands ? Effect.succeed(false) : Effect.map(facts.take("cancel", key), (mine) => mine === undefined);
    return Effect.andThen(
      put,
      Effect.flatMap(taken, (found) => (Option.isSome(found) ? Effect.succeed(true) : back)),
    );
  });

/** Returns the display name of the process that owns a run; undefined if there is none, or the store cannot say. */
export const driverOf = ({ findOwner }: SharedCancels, runId: string): Effect.Effect<string | undefined> =>
  Effect.orElseSucceed(findOwner(runId), () => undefined);

/** Returns the runs with a pending cancel. If the store fails, the next poll for orphaned runs asks again. */
export const standing = (facts: CancelFacts | undefined): Effect.Effect<ReadonlySet<string>> =>
  facts === undefined
    ? Effect.succeed(new Set())
    : Effect.map(
        Effect.orElseSucceed(facts.all("cancel"), () => []),
        (all) => new Set(all.flatMap(({ value }) => runIn(Option.getOrUndefined(read(value))))),
      );

/**
 * Returns the id of the run to cancel. A cancel on behalf of a client is ignored, because only a process that can check the client's
 * identity may carry it out.
 */
const runIn = (asked: Cancel | undefined): ReadonlyArray<string> =>
  asked === undefined || asked.holder !== undefined ? [] : [asked.run_id];

/** Returns true if a cancel of this run is pending. */
export const isPending = (facts: CancelFacts, runId: string): Effect.Effect<boolean, FactsFault> =>
  Effect.map(facts.find("cancel", runId), (found) =>
    runIn(found && Option.getOrUndefined(read(found.value))).includes(runId),
  );

/** Removes the pending cancel of a run, because it was carried out. */
export const settle = (facts: CancelFacts | undefined, runId: string): Effect.Effect<void> =>
  facts === undefined ? Effect.void : Effect.ignore(facts.take("cancel", runId));

/**
 * Listens for cancels for the lifetime of the scope.
 *
 * @param cancels carries out a cancel; called only for cancels that `isMine` accepts
 */
export const hearing = Effect.fnUntraced(function* (
  facts: CancelFacts,
  isMine: (cancel: Cancel) => boolean,
  cancels: (cancel: Cancel) => void,
): Effect.fn.Return<void, never, Scope.Scope> {
  const look = Effect.flatMap(facts.all("cancel"), (all) =>
    Effect.forEach(
      all,
      ({ key, value }) => {
        const asked = Option.getOrUndefined(read(value));
        if (asked === undefined || !isMine(asked)) return Effect.void;
        // If the row is missing, the canceller has withdrawn the cancel.
        return Effect.map(facts.take("cancel", key), (mine) => {
          if (mine !== undefined) cancels(asked);
        });
      },
      { discard: true },
    ),
  );
  const outage = new OutageLog({
    away: "cannot receive cancellations from other processes",
    back: "receiving cancellations from other processes again",
  });
  const looked = Effect.catch(Effect.andThen(look, outage.recordSuccess), ({ message }) =>
    outage.recordFailure(message),
  );
  const bells = yield* Queue.sliding<void>(1);
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      facts.on((word) => {
        if (word._tag === "Look" || (word._tag === "Put" && word.kind === "cancel"))
          void Queue.offerUnsafe(bells, undefined);
      }),
    ),
    (ends) => Effect.sync(ends),
  );
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(bells), looked)));
});
