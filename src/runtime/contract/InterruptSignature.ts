/** The parties that can stop a run. An interrupt counts as the user's or the lifecycle's only if it is signed (L10). */
import * as Cause from "effect/Cause";
import * as Context from "effect/Context";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Predicate from "effect/Predicate";
import type { Failure } from "../../domain/Failure.ts";

/** The party that stopped a run from outside. */
export type Stopper = "user" | "lifecycle" | "caller" | "caller_failed" | "consumer_finished";

/**
 * Returns who stopped a run through the caller's signal, or undefined if the signal has not aborted. An abort by timeout is the
 * caller's limit, not the user's Stop.
 */
export const stopperOfSignal = (signal: AbortSignal | undefined): "user" | "caller" | undefined => {
  if (signal?.aborted !== true) return undefined;
  return Predicate.hasProperty(signal.reason, "name") && signal.reason.name === "TimeoutError" ? "caller" : "user";
};

/** Returns the failure that records a stop from outside. */
export const stopFailure = (by: Stopper): Failure => {
  if (by === "caller_failed") return { kind: "caller_failed" };
  return { kind: "cancelled", by: by === "consumer_finished" ? "caller" : by };
};

type Signer = "user" | "lifecycle";

/** Signature found on an interrupt; Effect's HTTP server signs `client_gone`. */
type Signature = Signer | "client_gone";

/**
 * Signs an interrupt: `Fiber.interruptAs(fiber, id, Context.make(InterruptSignature, "user"))`. An unsigned interrupt, for example from a
 * shutdown, a timeout or a lost race, counts as `caller_interrupted`.
 *
 * The signature reaches the run even if an `Effect.timeout`, a race, a toolkit or nested fibers lie between the interrupted fiber and the
 * run.
 */
export class InterruptSignature extends Context.Service<InterruptSignature, Signer>()(
  "effect-stream-recovery/InterruptSignature",
) {}

/**
 * Annotation with which Effect's HTTP server interrupts a request after its client has disconnected; it counts as the user's
 * cancel. Declared by key, so that the core does not import an HTTP module.
 */
class ClientAbort extends Context.Service<ClientAbort, true>()("effect/http/HttpServerError/ClientAbort") {}

/** Derives the stopper from the exit of the consumer's scope. A user's signature takes precedence over a lifecycle signature. */
export const deriveStopper = (exit: Exit.Exit<unknown, unknown>): Stopper => {
  if (Exit.isSuccess(exit)) return "consumer_finished";
  if (!Cause.hasInterrupts(exit.cause)) return "caller_failed";
  const signatures = signaturesOf(exit.cause);
  if (signatures.has("user") || signatures.has("client_gone")) return "user";
  return signatures.has("lifecycle") ? "lifecycle" : "caller";
};

/**
 * True if the consumer may come back, because it did not finish and neither the user nor the lifecycle signed a cancel. A client that
 * disconnects from Effect's HTTP server may come back, because it may only have lost its network.
 */
export const canReturn = (exit: Exit.Exit<unknown, unknown>): boolean => {
  if (Exit.isSuccess(exit)) return false;
  const signatures = signaturesOf(exit.cause);
  return !signatures.has("user") && !signatures.has("lifecycle");
};

const signaturesOf = (cause: Cause.Cause<unknown>): ReadonlySet<Signature> =>
  new Set(cause.reasons.flatMap((reason) => signatureOf(Cause.reasonAnnotations(reason)) ?? []));

const signatureOf = (annotations: Context.Context<never> | undefined): Signature | undefined => {
  if (annotations === undefined) return undefined;
  const signer = Context.getOrUndefined(annotations, InterruptSignature);
  return signer ?? (Context.getOrUndefined(annotations, ClientAbort) === undefined ? undefined : "client_gone");
};

const annotationOf = (signature: Signature): Context.Context<never> =>
  signature === "client_gone" ? Context.make(ClientAbort, true) : Context.make(InterruptSignature, signature);

/** The interrupt method of a fiber. All fibers of one copy of Effect share it through their prototype. */
interface Interruptible {
  interruptUnsafe: Fiber.Fiber<unknown, unknown>["interruptUnsafe"];
}

/** Fiber prototypes that are already wrapped. */
const passing = new WeakSet<Interruptible>();

/**
 * Makes signed interrupts propagate their signature, in every fiber of the same copy of Effect.
 *
 * `Effect.timeout`, a race, a closing scope and an ending parent interrupt their fibers without annotations, and Effect offers no hook to
 * add one. So we wrap the method that interrupts a fiber. If a signed fiber interrupts another fiber, that fiber gets the same signature.
 *
 * @param fiber any fiber of that copy of Effect
 */
export const passSignaturesOn = (fiber: Fiber.Fiber<unknown, unknown>): void => {
  const prototype: Interruptible = Object.getPrototypeOf(fiber);
  if (passing.has(prototype)) return;
  passing.add(prototype);
  const signed = new WeakMap<object, Signature>();
  const { interruptUnsafe } = prototype;
  prototype.interruptUnsafe = function (this: Fiber.Fiber<unknown, unknown>, fiberId, annotations) {
    const own = signatureOf(annotations);
    const current = Fiber.getCurrent();
    const inherited = current === undefined ? undefined : signed.get(current);
    const signer = own ?? inherited;
    // A fiber keeps its first signature, except that the user's replaces any other and `client_gone` replaces a lifecycle's.
    const before = signed.get(this);
    const isOutdone = before === undefined || signer === "user" || (signer === "client_gone" && before !== "user");
    if (signer !== undefined && isOutdone) signed.set(this, signer);
    if (own !== undefined || inherited === undefined) return interruptUnsafe.call(this, fiberId, annotations);
    const signature = annotationOf(inherited);
    const all = annotations === undefined ? signature : Context.merge(annotations, signature);
    return interruptUnsafe.call(this, fiberId, all);
  };
};
