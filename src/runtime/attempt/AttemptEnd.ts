/**
 * Describes the end of an attempt and derives it from the exit of its source.
 */
import * as Cause from "effect/Cause";
import * as Exit from "effect/Exit";
import * as Predicate from "effect/Predicate";
import * as Pull from "effect/Pull";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { Failure } from "../../domain/Failure.ts";
import * as FailureReading from "../../domain/FailureReading.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import type { SeamFault } from "../../domain/SeamWords.ts";
import * as TransportCodes from "../../domain/TransportCodes.ts";
import * as FailureClassifier from "../../failure/FailureClassifier.ts";

/** `ended`: the source ended cleanly, which is not yet success. `cause` is the original error, unchanged (L12). */
export type AttemptEnd =
  | { readonly _tag: "ended" }
  | { readonly _tag: "failed"; readonly failure: Failure; readonly cause: unknown };

/** A clean end. */
export const ended: AttemptEnd = { _tag: "ended" };

/** Makes a failed end. */
export const failureEnd = (failure: Failure, cause: unknown): AttemptEnd => ({ _tag: "failed", failure, cause });

/** Makes the end of an attempt whose seam is not proven. */
export const unproven = (fault: SeamFault): AttemptEnd =>
  failureEnd({ kind: "protocol", reason: "seam_unproven", code: fault }, undefined);

/** Failure code of an attempt that was ended because its path was silent and a probe found it lost. */
export const pathLost = "path_lost";

/**
 * Gemini's marker is the last `finishReason` together with a clean end. So the marker belongs to the end of the stream and not to a part.
 */
export const terminalAtCleanEnd: Observation = { ...none, terminal: true, quiet: true };

/** Settings for the conversion of errors to failures. */
export interface Classifying<E> {
  readonly classify: ((error: E) => Failure) | undefined;
  /** Wall clock in milliseconds since the epoch, for Retry-After dates. */
  readonly nowMs: number;
  /** True if this process has reached the provider before. If the provider's name no longer resolves, the network is then at fault. */
  readonly reachedHostBefore: boolean;
}

/**
 * Derives the end of an attempt from the exit of its source. Called only if this process did not cause that exit.
 *
 * The source's own typed failure takes precedence over a defect. An interrupt counts as the provider's cancel.
 */
export const endOf = <E>(exit: Exit.Exit<unknown, E | Cause.Done>, classifying: Classifying<E>): AttemptEnd => {
  if (Exit.isSuccess(exit)) return ended;
  const { cause } = exit;
  const fail = Cause.findError(cause);
  if (Result.isSuccess(fail)) {
    const error = fail.success;
    return Cause.isDone(error) ? ended : failureEnd(classify(error, classifying), error);
  }
  if (Pull.isDoneCause(cause)) return ended;
  const defect = Cause.findDefect(cause);
  if (Result.isSuccess(defect)) return failureEnd(classifyUnknown(defect.success, classifying), defect.success);
  return failureEnd({ kind: "cancelled", by: "provider" }, cause);
};

const classify = <E>(error: E, classifying: Classifying<E>): Failure => {
  if (classifying.classify === undefined) return classifyUnknown(error, classifying);
  const failure = FailureReading.read(classifying.classify(error));
  // Only the caller can classify its own errors, and only this process knows whether the host was ever reached.
  if (failure.kind !== "transport" || failure.code === undefined || !classifying.reachedHostBefore) return failure;
  return TransportCodes.lookup(failure.code)?.meaning === "dns" ? { reached_host_before: true, ...failure } : failure;
};

/** Classifies an error. An error that carries its failure, like those of ProviderClient, is used as it is. */
const classifyUnknown = (error: unknown, classifying: Classifying<never>): Failure => {
  if (Predicate.hasProperty(error, "reason") && isFailure(error.reason)) return error.reason;
  return FailureClassifier.classify(error, {
    nowMs: classifying.nowMs,
    reachedHostBefore: classifying.reachedHostBefore,
  });
};

const isFailure = Schema.is(Failure);
