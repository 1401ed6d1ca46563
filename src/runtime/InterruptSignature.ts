/**
 * Says who stopped a run that ended from outside (law L10): only a signature makes an interrupt a user's or a lifecycle's.
 */
import * as Cause from "effect/Cause";
import * as Context from "effect/Context";
import * as Exit from "effect/Exit";
import * as Option from "effect/Option";
import type { Stopper } from "./Stopper.ts";

/**
 * Signs an interrupt: `Fiber.interruptAs(fiber, id, Context.make(InterruptSignature, "user"))`. An interrupt without it, a
 * shutdown, a timeout or a lost race around us, is `caller_interrupted`.
 */
export class InterruptSignature extends Context.Service<InterruptSignature, "user" | "lifecycle">()(
  "effect-stream-recovery/InterruptSignature",
) {}

/** What Effect's HTTP server signs a request's fiber with when its client has gone away: a user's cancel. Named by its key, so that the core pulls no http module in. */
class ClientAbort extends Context.Service<ClientAbort, true>()("effect/http/HttpServerError/ClientAbort") {}

/** Reads the stopper from how the consumer's scope was closed. */
export const stopperOf = (exit: Exit.Exit<unknown, unknown>): Stopper => {
  if (Exit.isSuccess(exit)) return "consumer_finished";
  if (!Cause.hasInterrupts(exit.cause)) return "caller_failed";
  const signed = Cause.annotations(exit.cause);
  const signature = Context.getOption(signed, InterruptSignature);
  if (Option.isSome(signature)) return signature.value;
  return Option.isSome(Context.getOption(signed, ClientAbort)) ? "user" : "caller";
};
