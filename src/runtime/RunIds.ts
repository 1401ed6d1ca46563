/**
 * Draws the ids of runs, and explains why a store refuses an id.
 */
import * as Effect from "effect/Effect";
import * as Random from "effect/Random";
import type { RecorderError } from "../recorder/RecorderError.ts";

/** Draws 128 random bits as hex from the system's random source, so a seeded Random does not affect it. */
export const drawBits = (): string =>
  Array.from(globalThis.crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );

/** Draws an id of 96 random bits, so that ids of processes that share a store do not collide. */
export const makeRunId: Effect.Effect<string> = Effect.map(Random.Random, (random) =>
  [
    "run_",
    wordOf(random.nextDoubleUnsafe()),
    wordOf(random.nextDoubleUnsafe()),
    wordOf(random.nextDoubleUnsafe()),
  ].join(""),
);

/** Formats 32 random bits as seven base-36 characters. */
const wordOf = (part: number): string =>
  Math.floor(part * 2 ** 32)
    .toString(36)
    .padStart(7, "0");

/** Maximum ids drawn for one run. A seeded Random may repeat another process's id, so draws after the first come from the system. */
export const drawsMax = 3;

/**
 * Returns why a store refuses to begin a run under an id, and what the caller can do. Nearly always the id is already on record.
 */
export const onRecord = (runId: string, reason: RecorderError["reason"]): string => {
  if (reason === "invalid") return describeUnrecordable(runId);
  const found = `runId: expected a new id, got "${runId}", which is on record`;
  if (reason === "corrupt") return `${found}, damaged. Use a new id`;
  if (reason === "fenced" || reason === "owned") return `${found} and owned by another process. Use a new id`;
  return `${found}. Use a new id, omit runId, or continue that run with takeUp`;
};

/** Returns the message for a run whose start the store cannot represent. */
const describeUnrecordable = (runId: string): string =>
  runId.isWellFormed() && !runId.includes("\0")
    ? `the store cannot record the start of run "${runId}": expected plain data in provider, budget, group and retryOf`
    : `runId: expected an id without NUL and without lone surrogates, which the store cannot keep, got ${JSON.stringify(runId)}. Use another id, or omit runId`;
