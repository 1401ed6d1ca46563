/**
 * Remembers failed requests in the store, so that a client's repeats share one budget, whichever process they reach.
 *
 * R1 A first attempt does not wait for the store, with two exceptions: a request that declares itself a repeat, because its earlier failure
 * may have to be reported, and a request whose earlier run failed in this process.
 *
 * R2 A failed run counts for a request if the request's run began after the failure, and at most `repeatMs` after it. A run that breaks
 * much later therefore finds the same failures as when it began, and concurrent runs do not affect each other.
 *
 * R3 If several requests claim a failed run at the same moment, one of them gets it.
 *
 * R4 A key is a digest under a secret of the store's processes. A value is a name, a count and text that the gateway wrote. Neither
 * contains anything that a client has sent.
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

/** Maximum time that a request waits for the store, in milliseconds. The same limit applies to all reads of a volatile run (L8). */
export const storeWaitMs = readsMsMax;

/**
 * Time beyond `repeatMs` for which a failed run stays in the store, in milliseconds. A run looks for an earlier failure only when it
 * breaks, which may be long after it began.
 */
const decidedLateMs = 600_000;

const Text = Schema.String.check(Schema.isMaxLength(4_096));

/** State of a failed run that a repeat of its request needs. */
const Failed = Schema.Struct({ run_id: Label, spent: Schema.Natural, cancelled: Schema.Boolean });

const Told = Schema.Struct({
  message: Text,
  code: Schema.optionalKey(Label),
  headers: Schema.Array(Schema.Tuple([Text, Text])).check(Schema.isMaxLength(64)),
});

const failedOf = Schema.decodeUnknownOption(Schema.fromJsonString(Failed));
const toldOf = Schema.decodeUnknownOption(Schema.fromJsonString(Told));

/** Creates the memory that all processes of a store share. */
export const make = (facts: SharedFacts): RepeatsElsewhere => {
  const outage = new OutageLog({
    away: "cannot read the failed requests that other gateways recorded; a repeat of one of them counts as a new request",
    back: "the failed requests that other gateways recorded can be read again",
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
    // The write starts at once, but the client that gets the failure does not wait for it.
    remember: (change) =>
      Effect.asVoid(Effect.forkDetach(tryStore(storeChange(facts, change)), { startImmediately: true })),
  };
};

const decodeFailedRequest = ({ value }: Fact): FailedRequest | undefined => {
  const read = failedOf(value);
  return read._tag === "Some" ? read.value : undefined;
};

/** Claims the failed run of a request. The failure that was reported to its client is deleted, because the new run may end differently. */
const takeFailed = (facts: SharedFacts, key: string): Effect.Effect<Fact | undefined, FactsFault> =>
  Effect.andThen(facts.take("told", key), facts.take("failed", key));

/** Applies rule R2: the run began after the failure, and at most `repeatMs` after it. */
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
