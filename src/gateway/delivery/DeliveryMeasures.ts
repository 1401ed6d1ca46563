/**
 * Counts what the delivery log does, as Effect metrics: what is written, what fails, and what becomes of clients that come back here
 * while their run goes on elsewhere.
 */
import { type Context, type Effect, Metric } from "effect";
import type { RecorderError } from "../../recorder/RecorderError.ts";

/** Bytes that were written, as they are sealed. */
const bytes = Metric.counter("stream_recovery.gateway.delivery_log_bytes", {
  description: "Bytes of responses that were written to the delivery log, sealed",
  incremental: true,
});

/** What the log could not write or read, by reason (`error.type`). A store that is away is one failure for each try. */
const failures = Metric.counter("stream_recovery.gateway.delivery_log_failures", {
  description: "Writes and looks of the delivery log that failed",
  incremental: true,
});

/** Runs that are not logged. */
const skipped = Metric.counter("stream_recovery.gateway.delivery_log_skipped", {
  description: "Runs that were not logged, because the log of all gateways is full",
  incremental: true,
});

/** Clients that came back for a run that goes on at another gateway, by `outcome`. */
const places = Metric.counter("stream_recovery.gateway.delivery_places", {
  description: "Places of readers that this gateway asked the owners of runs for",
  incremental: true,
});

/** What became of a wish for a reader's place: `unanswered` where the owner or the store said nothing in time. */
export type PlaceOutcome = "given" | "refused" | "unanswered";

/** Counts bytes that the store has taken. */
export const countBytes = (written: number): Effect.Effect<void> => Metric.update(bytes, written);

/** Counts what the store did not do. */
export const countFailure = ({ reason }: RecorderError, of: "write" | "read"): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(failures, { "error.type": reason, of }), 1);

/** Counts a run that is not logged. */
export const countSkipped = (context: Context.Context<never>): void => skipped.updateUnsafe(1, context);

/** Counts a wish for a reader's place that is over. */
export const countPlace = (outcome: PlaceOutcome): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(places, { outcome }), 1);
