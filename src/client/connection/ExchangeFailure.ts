/** Classifies a broken exchange: its cause, its error code, and if the same request may succeed later. */
import type { Failure } from "../../domain/Failure.ts";
import * as TransportCodes from "../../domain/TransportCodes.ts";
import { classify } from "../../failure/FailureClassifier.ts";
import { ConnectStalled } from "./Connector.ts";
import type { Exchange, ExchangeBreak } from "./Exchange.ts";
import type { Origin } from "./Origin.ts";

/** Facts that decide which failure a broken exchange is. */
export interface BreakContext {
  readonly origin: Origin;
  readonly exchange: Pick<Exchange, "times">;
  /** Monotonic milliseconds. */
  readonly now: number;
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: number;
}

/** Returns the failure. If no connection could be made, the history of the origin decides whether the same request may succeed later. */
export const failureOf = (broken: ExchangeBreak, context: BreakContext): Failure => {
  const failure = failureAt(broken, context);
  if (broken.operation !== "connect" || !(failure.kind === "transport" || failure.kind === "stalled")) return failure;
  const { exchange, now, origin } = context;
  // The origin was reached before, so for now another server, for example a captive portal, is answering in its place.
  if (origin.reached && TransportCodes.isForeign(failure.code ?? "")) return { ...failure, retryable: true };
  return origin.isWrongAddress(exchange.times.openedAt, now) ? { ...failure, retryable: false } : failure;
};

const failureAt = ({ error, operation, unsendable }: ExchangeBreak, { nowMs, origin }: BreakContext): Failure => {
  if (error instanceof ConnectStalled) return { kind: "stalled", clock: "connect", code: error.code };
  if (unsendable) return { kind: "caller_failed" };
  return classify(error, { operation, reachedHostBefore: origin.reached, nowMs });
};
