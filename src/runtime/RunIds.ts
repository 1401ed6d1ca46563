/**
 * Draws the ids of runs, and says what is wrong with one that is another run's.
 */
import * as Effect from "effect/Effect";
import * as Random from "effect/Random";
import type { RecorderError } from "../recorder/RecorderError.ts";

/** 128 bits of the machine's own randomness, as hex: a seed of Random does not seed this. */
export const drawn = (): string =>
  Array.from(globalThis.crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );

/** 96 random bits, so that ids of several processes that share a store do not meet. */
export const makeRunId: Effect.Effect<string> = Effect.map(Random.Random, (random) =>
  [
    "run_",
    wordOf(random.nextDoubleUnsafe()),
    wordOf(random.nextDoubleUnsafe()),
    wordOf(random.nextDoubleUnsafe()),
  ].join(""),
);

/** 32 random bits as seven characters. */
const wordOf = (part: number): string =>
  Math.floor(part * 2 ** 32)
    .toString(36)
    .padStart(7, "0");

/** Ids that are drawn for one run. A seeded Random may draw what another process has drawn; later draws are the machine's. */
export const drawsMax = 3;

/** Why a store refuses to begin a run under an id: what it means, and what its caller can do. Nearly always the id is on record. */
export const onRecord = (runId: string, reason: RecorderError["reason"]): string => {
  if (reason === "invalid") return unkept(runId);
  const found = `runId: expected a new id, got "${runId}", which is on record`;
  if (reason === "corrupt") return `${found}, damaged. Take a new id`;
  if (reason === "fenced" || reason === "owned") return `${found} and driven by another process. Take a new id`;
  return `${found}. Take a new id, leave runId out, or go on with that run by takeUp`;
};

/** The store has no place for something that begins the run. */
const unkept = (runId: string): string =>
  runId.isWellFormed() && !runId.includes("\0")
    ? `the store of runs cannot keep what begins run "${runId}": expected plain data in provider, budget, group and retryOf`
    : `runId: expected an id without NUL and without half of a surrogate pair, which the store of runs does not keep, got ${JSON.stringify(runId)}. Take another id, or leave runId out`;
