/**
 * Remembers failed requests in the store, so that a client's repeats share one budget across its processes.
 *
 * R1 No first attempt waits for the store, with two exceptions: a request that declares itself a repeat, which may be told its
 *   earlier failure, and a request that repeats a run which failed in this process.
 * R2 A failed run counts for a request whose run began after the failure, and at most `repeatMs` after it. So a run that breaks
 *   much later finds what it would have found when it began, and concurrent runs stay separate.
 * R3 If several requests take a failed run at the same moment, one gets it.
 * R4 A key is a digest under the shared secret of the store's processes. A value is a name, a count and the gateway's own text.
 *   Neither contains anything that a client has sent.
 */
import { Effect, Schema } from "effect";
import {
  type FailedRequest,
  type Recalled,
  type RepeatChange,
  type RepeatsElsewhere,
  repeatMs,
} from "../../adapters/relay/RelayRepeats.ts";
import { Label } from "../../domain/Limits.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import type { Fact, FactsFault, SharedFacts } from "../../recorder/shared/SharedFacts.ts";
import { readsMsMax } from "../../runtime/run/StoreReads.ts";

/** Maximum time that a request waits for the store, in milliseconds. It equals the limit for all reads of a volatile run (L8). */
export const storeWaitMs = readsMsMax;

/** Additional time for which a failed run is stored, in milliseconds, because a run looks it up when it breaks, not when it begins. */
const decidedLateMs = 600_000;

const Text = Schema.String.check(Schema.isMaxLength(4_096));

/** State that a failed run leaves for a repeat of its request. */
const Failed = Schema.Struct({ run_id: Label, spent: Schema.Natural, cancelled: Schema.Boolean });

const Told = Schema.Struct({
  message: Text,
  code: Schema.optionalKey(Label),
  headers: Schema.Array(Schema.Tuple([Text, Text])).check(Schema.isMaxLength(64)),
});

const failedOf = Schema.decodeUnknownOption(Schema.fromJsonString(Failed));
const toldOf = Schema.decodeUnknownOption(Schema.fromJsonString(Told));

/** Creates the memory that the processes of a store share. */
export const make = (facts: SharedFacts): RepeatsElsewhere => {
  const outage = new OutageLog({
    away: "cannot read the repeats recorded by other gateways",
    back: "the repeats recorded by other gateways can be read again",
  });
  const tryStore = <A>(asked: Effect.Effect<A, FactsFault>) => outage.tryWithin(asked, storeWaitMs);
  return {
    take: (key, begunMs, says) =>
      Effect.gen(function* () {
        const found = yield* tryStore(facts.find("failed", key));
        if (found === undefined || !isInRepeatWindow(found, begunMs)) return undefined;
        const failed = decodeFailedRequest(found);
        if (failed === undefined || (failed.cancelled && !says)) return undefined;
        const first = yield* tryStore(takeFailed(facts, key));
        return first && decodeFailedRequest(first);
      }),
    claim: (key) =>
      tryStore(Effect.map(takeFailed(facts, key), (found) => ({ failed: found && decodeFailedRequest(found) }))),
    recall: (key) =>
      Effect.map(tryStore(facts.find("told", key)), (found): Recalled | undefined => {
        const told = found === undefined ? undefined : toldOf(found.value);
        if (found === undefined || told?._tag !== "Some") return undefined;
        return { told: { ...told.value, code: told.value.code }, ageMs: found.ageMs };
      }),
    // The write starts at once, and the failed client does not wait for it.
    remember: (change) =>
      Effect.asVoid(Effect.forkDetach(tryStore(storeChange(facts, change)), { startImmediately: true })),
  };
};

const decodeFailedRequest = ({ value }: Fact): FailedRequest | undefined => {
  const read = failedOf(value);
  return read._tag === "Some" ? read.value : undefined;
};

/** Takes the failed run of a request and deletes the failure told to its client, since the new run may end differently. */
const takeFailed = (facts: SharedFacts, key: string): Effect.Effect<Fact | undefined, FactsFault> =>
  Effect.andThen(facts.take("told", key), facts.take("failed", key));

/** Applies R2. */
const isInRepeatWindow = ({ ageMs }: Fact, begunMs: number): boolean => ageMs >= begunMs && ageMs - begunMs <= repeatMs;

const storeChange = (facts: SharedFacts, change: RepeatChange): Effect.Effect<unknown, FactsFault> => {
  const { key } = change;
  switch (change._tag) {
    case "Failed":
      return facts.put("failed", key, JSON.stringify(change.failed), repeatMs + decidedLateMs);
    case "Told": {
      const { said: _providers, ...own } = change.told; // R4
      return facts.put("told", key, JSON.stringify(own), repeatMs);
    }
  }
};
