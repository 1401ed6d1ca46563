/**
 * Shares the memory of failed requests among all processes of a store. The retries of a client therefore share one budget, and get the same
 * failure, whichever process they reach. Each process also keeps a local memory (`StoredRepeats`).
 */
import { createHash, createHmac } from "node:crypto";
import { Effect, Option } from "effect";
import { RelayRepeats } from "../../adapters/relay/RelayRepeats.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { formHash } from "../body/FormHash.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import * as StoredRepeats from "./StoredRepeats.ts";

/** Creates a gateway's memory of failed requests. If there is a store, the memory is shared through it. */
export const make: Effect.Effect<RelayRepeats> = Effect.gen(function* () {
  const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
  if (facts === undefined) return new RelayRepeats((form) => formHash(form, createHash("sha256")));
  const key = sharedKey(facts.secret, "repeat");
  return new RelayRepeats((form) => formHash(form, createHmac("sha256", key)), StoredRepeats.make(facts));
});
