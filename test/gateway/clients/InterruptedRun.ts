import { RelayInterrupted } from "../../../src/adapters/relay/RelayInterrupted.ts";
import { type RelayRefusal, relayError } from "../../../src/adapters/relay/RelayTransport.ts";

/** A run that did not complete, by default after four attempts at a provider that failed. */
export const interruptedRun = (fields: Partial<RelayInterrupted> = {}, response?: RelayRefusal): RelayInterrupted => {
  const failure = fields.failure ?? { kind: "server_error" };
  return new RelayInterrupted({
    reason: fields.reason ?? "do_not_retry",
    run_id: "gw_1",
    rule: fields.rule ?? "budget_exhausted",
    failure,
    attempts: fields.attempts ?? 4,
    message: "The model provider is overloaded; the retry budget is used up. No tool was called.",
    cause: fields.cause ?? relayError(failure, response),
  });
};
