/**
 * Lets the workers of `serve --workers`, and all processes of a store on a server, remember failed requests together: a client's own
 * retries share one budget, and are told once, whichever of them they meet.
 *
 * Workers tell each other, and the store is asked (`StoredRepeats`). A worker that takes the place of another one is told what the others
 * remember. Two repeats that come at the same moment at two workers may each have what is left.
 */
import { createHash, createHmac } from "node:crypto";
import { Clock, Effect, Option, Schema, type Scope } from "effect";
import {
  RelayRepeats,
  type RepeatChange,
  type RepeatMemory,
  toldBodyCharactersMax,
} from "../../adapters/relay/RelayRepeats.ts";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { formHash } from "../body/FormHash.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import { WorkerBus } from "../workers/WorkerBus.ts";
import { notice } from "../workers/WorkerMessage.ts";
import * as StoredRepeats from "./StoredRepeats.ts";

const Text = Schema.String.check(Schema.isMaxLength(4_096));

const Key = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/));

const Headers = Schema.Array(Schema.Tuple([Text, Text])).check(Schema.isMaxLength(64));

const Refusal = Schema.Struct({
  status: Schema.Natural,
  headers: Headers,
  body: Schema.String.check(Schema.isMaxLength(toldBodyCharactersMax)),
});

/** A structured clone keeps what is undefined. */
const Told = Schema.Struct({
  message: Text,
  code: Schema.UndefinedOr(Label),
  headers: Headers,
  said: Schema.optionalKey(
    Schema.Struct({
      message: Schema.UndefinedOr(Text),
      code: Schema.UndefinedOr(Text),
      response: Schema.UndefinedOr(Refusal),
      title: Schema.optional(Text),
    }),
  ),
});

const Change: Schema.Codec<RepeatChange, unknown> = Schema.Union([
  Schema.TaggedStruct("Failed", {
    key: Key,
    failed: StoredRepeats.Failed,
  }),
  Schema.TaggedStruct("Told", { key: Key, told: Told, idempotencyKey: Schema.UndefinedOr(Text) }),
  Schema.TaggedStruct("Recalled", { key: Key }),
  Schema.TaggedStruct("Taken", { key: Key }),
  Schema.TaggedStruct("Untold", { key: Key }),
]);

const changed = notice("repeats_changed", Change);

/** Requests of one message to a worker that begins. */
const memoriesMax = 128;

const Memory: Schema.Codec<RepeatMemory, unknown> = Schema.Struct({
  change: Change,
  ageMs: Milliseconds,
  unmarked: Schema.Natural,
});

const remembered = notice("repeats_remembered", Schema.Array(Memory).check(Schema.isMaxLength(memoriesMax)));

const isSendable = Schema.is(Memory);

/** Makes the memory of a gateway; that of all workers, where there are several. */
export const make: Effect.Effect<RelayRepeats, never, Scope.Scope> = Effect.gen(function* () {
  const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
  const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
  const secret = facts?.secret ?? bus?.secret;
  if (secret === undefined) return new RelayRepeats((form) => formHash(form, createHash("sha256")));
  const clock = yield* Clock.Clock;
  const key = sharedKey(secret, "repeat");
  const repeats = new RelayRepeats(
    (form) => formHash(form, createHmac("sha256", key)),
    // What is too long for a message is not sent: it stays with the worker that has met it.
    (change) => void bus?.tell(changed, change),
    facts && StoredRepeats.make(facts),
  );
  if (bus === undefined) return repeats;
  yield* bus.on(changed, (change) => repeats.heard(change, monotonicMs(clock)));
  yield* bus.on(remembered, (memories) => repeats.learned(memories, monotonicMs(clock)));
  yield* bus.onToBeTold((worker) => {
    const memories = repeats.memories(monotonicMs(clock)).filter((it) => isSendable(it));
    for (let at = 0; at < memories.length; at += memoriesMax)
      bus.tell(remembered, memories.slice(at, at + memoriesMax), worker);
  });
  return repeats;
});
