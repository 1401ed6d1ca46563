/**
 * Shares the memory of failed requests between all processes of a store. A client's retries share one budget and get a failure reported
 * once, whichever process they reach. Each process also keeps what it told the clients of failed runs in its own memory (`StoredRepeats`).
 */
import { createHash, createHmac } from "node:crypto";
import { Effect, Option } from "effect";
import { RelayRepeats } from "../../adapters/relay/RelayRepeats.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { formHash } from "../body/FormHash.ts";
import { sharedKey } from "../workers/SharedKey.ts";
import * as StoredRepeats from "./StoredRepeats.ts";

/** Creates a gateway's memory of failed requests, shared through the store if there is one. */
export const make: Effect.Effect<RelayRepeats> = Effect.gen(function* () {
  const facts = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder))?.shared;
  if (facts === undefined) return new RelayRepeats((form) => formHash(form, createHash("sha256")));
  const key = sharedKey(facts.secret, "repeat");
  return new RelayRepeats((form) => formHash(form, createHmac("sha256", key)), StoredRepeats.make(facts));
});
