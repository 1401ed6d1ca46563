/**
 * Remembers failed requests in the store, so that a client's repeats share one budget at every process of it.
 *
 * R1 No first attempt waits for it, but for a request that says that it is a repeat: that one may be told what its client was told.
 * R2 A failed run counts for a request whose run began behind it, and at most `repeatMs` behind it: so a run that breaks much later
 *    finds what it would have found when it began, and runs side by side stay separate.
 * R3 Of several that take a failed run at the same moment one gets it.
 * R4 A key is a digest under the secret of the store's processes, a value a name, a count and the gateway's own words: neither holds
 *    what a client has sent.
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

/** Longest that the store is waited for, in milliseconds. */
export const storeWaitMs = 500;

/** A failed run is kept for so much longer than it is remembered, in milliseconds: a run is decided when it breaks, not when it begins. */
const decidedLateMs = 600_000;

const Text = Schema.String.check(Schema.isMaxLength(4_096));

/** What a failed run leaves to a repeat of its request. */
export const Failed = Schema.Struct({ run_id: Label, spent: Schema.Natural, cancelled: Schema.Boolean });

const Told = Schema.Struct({
  message: Text,
  code: Schema.optionalKey(Label),
  headers: Schema.Array(Schema.Tuple([Text, Text])).check(Schema.isMaxLength(64)),
});

const failedOf = Schema.decodeUnknownOption(Schema.fromJsonString(Failed));
const toldOf = Schema.decodeUnknownOption(Schema.fromJsonString(Told));

/** The memory of the store's processes. */
export const make = (facts: SharedFacts): RepeatsElsewhere => {
  const outage = new OutageLog({
    away: "what other gateways know of repeats is not known now",
    back: "what other gateways know of repeats is known again",
  });
  const tried = <A>(asked: Effect.Effect<A, FactsFault>) => outage.tried(asked, storeWaitMs);
  return {
    take: (key, begunMs, says) =>
      Effect.gen(function* () {
        const found = yield* tried(facts.find("failed", key));
        if (found === undefined || !counts(found, begunMs)) return undefined;
        const failed = failedFrom(found);
        if (failed === undefined || (failed.cancelled && !says)) return undefined;
        // What the client was told may end otherwise now.
        yield* tried(facts.take("told", key));
        const taken = yield* tried(facts.take("failed", key));
        return taken === undefined ? undefined : failedFrom(taken);
      }),
    recall: (key) =>
      Effect.map(tried(facts.find("told", key)), (found): Recalled | undefined => {
        const told = found === undefined ? undefined : toldOf(found.value);
        if (found === undefined || told?._tag !== "Some") return undefined;
        return { told: { ...told.value, code: told.value.code }, ageMs: found.ageMs };
      }),
    remember: (change) => Effect.asVoid(tried(remembered(facts, change))),
  };
};

const failedFrom = ({ value }: Fact): FailedRequest | undefined => {
  const read = failedOf(value);
  return read._tag === "Some" ? read.value : undefined;
};

/** R2. */
const counts = ({ ageMs }: Fact, begunMs: number): boolean => ageMs >= begunMs && ageMs - begunMs <= repeatMs;

const remembered = (facts: SharedFacts, change: RepeatChange): Effect.Effect<unknown, FactsFault> => {
  const { key } = change;
  switch (change._tag) {
    case "Failed":
      return facts.put("failed", key, JSON.stringify(change.failed), repeatMs + decidedLateMs);
    case "Told": {
      const { said: _providers, ...own } = change.told; // R4
      return facts.put("told", key, JSON.stringify(own), repeatMs);
    }
    case "Taken":
      return Effect.andThen(facts.take("told", key), facts.take("failed", key));
    case "Untold":
      return facts.take("told", key);
    case "Recalled":
      return Effect.void;
  }
};
