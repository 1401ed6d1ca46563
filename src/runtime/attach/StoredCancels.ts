/**
 * Cancels runs that other processes of the store drive.
 *
 * Who cancels puts a row and waits until it is gone; the process that drives the run takes it away in the step that cancels. A process that
 * drives no such run leaves it. A row that no process takes is taken back, or stands for a while where it is to: a process that was
 * silent takes it when it goes on, and whoever decides the run in its place finds it.
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

/** How long the driver of a run has to take a cancel, in milliseconds. */
export const cancelMs = 2_000;

/** How long a cancel stands that is to stand, in milliseconds. */
export const standsMs = 3_600_000;

/** From one look whether it was taken to the next, in milliseconds. */
const lookMs = 50;

/** A run that is to be cancelled. */
const Cancel = Schema.Struct({
  run_id: Label,
  /** A keyed digest of what its client shows; left out where who cancels has the store itself. */
  holder: Schema.optionalKey(Label),
});

/** One that has come. */
export type Cancel = typeof Cancel.Type;

const read = Schema.decodeUnknownOption(Schema.fromJsonString(Cancel));

/** The facts that cancels are made of. */
export type CancelFacts = Pick<SharedFacts, "all" | "find" | "on" | "put" | "take">;

/**
 * Cancels a run that another process drives. A store that does not take it, or does not say what became of it, is as none that drives it.
 *
 * @param stands whether the cancel stands where no process has taken it yet
 * @returns whether one did so
 */
export const cancel = (facts: CancelFacts, it: Cancel, stands = false): Effect.Effect<boolean> =>
  Effect.orElseSucceed(asked(facts, it, stands), () => false);

/** As `cancel`, and fails where the store does. */
export const asked = (facts: CancelFacts, it: Cancel, stands: boolean): Effect.Effect<boolean, FactsFault> =>
  Effect.suspend(() => {
    // One that stands is one row a run, however often it is asked for.
    const key = stands ? it.run_id : `${it.run_id} ${globalThis.crypto.randomUUID()}`;
    const put = facts.put("cancel", key, JSON.stringify(it), stands ? standsMs : 2 * cancelMs);
    const gone = Effect.map(facts.find("cancel", key), (found) => found === undefined);
    const look = Effect.andThen(Effect.sleep(lookMs), gone);
    const taken = Effect.timeoutOption(Effect.repeat(look, { until: (it) => it }), cancelMs);
    // Taken back in one step: a driver that has come first has cancelled.
    const back = stands ? Effect.succeed(false) : Effect.map(facts.take("cancel", key), (mine) => mine === undefined);
    return Effect.andThen(
      put,
      Effect.flatMap(taken, (found) => (Option.isSome(found) ? Effect.succeed(true) : back)),
    );
  });

/** The process that drives a run, as a person knows it; undefined where none does, or the store does not say. */
export const driverOf = ({ driver }: SharedCancels, runId: string): Effect.Effect<string | undefined> =>
  Effect.orElseSucceed(driver(runId), () => undefined);

/** The runs whose cancel stands. A store that does not say it is asked again with the next look for orphans. */
export const standing = (facts: CancelFacts | undefined): Effect.Effect<ReadonlySet<string>> =>
  facts === undefined
    ? Effect.succeed(new Set())
    : Effect.map(
        Effect.orElseSucceed(facts.all("cancel"), () => []),
        (all) => new Set(all.flatMap(({ value }) => runIn(Option.getOrUndefined(read(value))))),
      );

/** A cancel that is for one client's runs counts where that client is known, and nowhere else. */
const runIn = (asked: Cancel | undefined): ReadonlyArray<string> =>
  asked === undefined || asked.holder !== undefined ? [] : [asked.run_id];

/** Whether a cancel of this run stands. */
export const stands = (facts: CancelFacts, runId: string): Effect.Effect<boolean, FactsFault> =>
  Effect.map(facts.find("cancel", runId), (found) =>
    runIn(found && Option.getOrUndefined(read(found.value))).includes(runId),
  );

/** A cancel that stands is carried out. */
export const settle = (facts: CancelFacts | undefined, runId: string): Effect.Effect<void> =>
  facts === undefined ? Effect.void : Effect.ignore(facts.take("cancel", runId));

/**
 * Hears of cancels while the scope lives.
 *
 * @param cancels does it, where this process drives the run and may; gives whether
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
        // One that was taken back by then is not asked for any more.
        return Effect.map(facts.take("cancel", key), (mine) => {
          if (mine !== undefined) cancels(asked);
        });
      },
      { discard: true },
    ),
  );
  const outage = new OutageLog({
    away: "what other processes cancel is not known now",
    back: "what other processes cancel is known again",
  });
  const looked = Effect.catch(Effect.andThen(look, outage.worked), ({ message }) => outage.failed(message));
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
