/**
 * Names the stoppers of a run: only a signature makes an interrupt a user's or a lifecycle's (L10).
 */
import * as Cause from "effect/Cause";
import * as Context from "effect/Context";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Predicate from "effect/Predicate";
import type { Failure } from "../../domain/Failure.ts";

/** The party that stopped a run from outside. */
export type Stopper = "user" | "lifecycle" | "caller" | "caller_failed" | "consumer_finished";

/**
 * The stopper of a run whose caller's own signal has aborted; undefined while it has not. A signal that ran into a time limit is
 * a limit of the caller, and not its user's Stop.
 */
export const stopperOfSignal = (signal: AbortSignal | undefined): "user" | "caller" | undefined => {
  if (signal?.aborted !== true) return undefined;
  return Predicate.hasProperty(signal.reason, "name") && signal.reason.name === "TimeoutError" ? "caller" : "user";
};

/** The failure that a stop from outside amounts to. */
export const stopFailure = (by: Stopper): Failure => {
  if (by === "caller_failed") return { kind: "caller_failed" };
  return { kind: "cancelled", by: by === "consumer_finished" ? "caller" : by };
};

/** The parties that may sign an interrupt. */
type Signer = "user" | "lifecycle";

/** How an interrupt was signed: `client_gone` by Effect's HTTP server. */
type Signature = Signer | "client_gone";

/**
 * Signs an interrupt: `Fiber.interruptAs(fiber, id, Context.make(InterruptSignature, "user"))`. An interrupt without it, a
 * shutdown, a timeout or a lost race around us, is `caller_interrupted`.
 *
 * The signature reaches a run through whatever stands between the interrupted fiber and the run: an `Effect.timeout`, a
 * race, a toolkit, fibers of fibers.
 */
export class InterruptSignature extends Context.Service<InterruptSignature, Signer>()(
  "effect-stream-recovery/InterruptSignature",
) {}

/** What Effect's HTTP server signs a request's fiber with when its client has gone away: a user's cancel. Named by its key, so that the core pulls no http module in. */
class ClientAbort extends Context.Service<ClientAbort, true>()("effect/http/HttpServerError/ClientAbort") {}

/** Reads the stopper from how the consumer's scope was closed. Of two signatures the user's counts. */
export const stopperOf = (exit: Exit.Exit<unknown, unknown>): Stopper => {
  if (Exit.isSuccess(exit)) return "consumer_finished";
  if (!Cause.hasInterrupts(exit.cause)) return "caller_failed";
  const signatures = signaturesOf(exit.cause);
  if (signatures.has("user") || signatures.has("client_gone")) return "user";
  return signatures.has("lifecycle") ? "lifecycle" : "caller";
};

/**
 * Whether a consumer that went away so may come back: it had not all that it wanted, and nobody has signed a cancel. A client that left
 * Effect's HTTP server may have lost its network.
 */
export const departs = (exit: Exit.Exit<unknown, unknown>): boolean => {
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

/** The annotation of an interrupt that is signed so. */
const annotationOf = (signature: Signature): Context.Context<never> =>
  signature === "client_gone" ? Context.make(ClientAbort, true) : Context.make(InterruptSignature, signature);

/** How a fiber is interrupted; the same function stands in the prototype of every fiber. */
interface Interruptible {
  interruptUnsafe: Fiber.Fiber<unknown, unknown>["interruptUnsafe"];
}

/** Prototypes of fibers whose interrupts pass their signature on. */
const passing = new WeakSet<Interruptible>();

/**
 * Lets the interrupts of a signed one be signed as well, in every fiber of the same Effect.
 *
 * `Effect.timeout`, a race, a scope that closes and a parent that ends interrupt the fibers below them plainly, and Effect
 * gives no way to add to that from below. So the method that interrupts a fiber is wrapped: where a fiber that was
 * interrupted with a signature interrupts another one, the other gets the signature too.
 *
 * @param fiber any fiber of that Effect
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
    // The first signature of a fiber is the one that is passed on, but for the user's, which is, and then its client's.
    const before = signed.get(this);
    const isOutdone = before === undefined || signer === "user" || (signer === "client_gone" && before !== "user");
    if (signer !== undefined && isOutdone) signed.set(this, signer);
    if (own !== undefined || inherited === undefined) return interruptUnsafe.call(this, fiberId, annotations);
    const signature = annotationOf(inherited);
    const all = annotations === undefined ? signature : Context.merge(annotations, signature);
    return interruptUnsafe.call(this, fiberId, all);
  };
};
