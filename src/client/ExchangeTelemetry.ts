/** Reports every exchange when it ends: to the client's `onExchange`, as a span, and as a line in the debug log. */
import { Effect, type Scope } from "effect";
import type { Failure } from "../domain/Failure.ts";
import type { Exchange } from "./connection/Exchange.ts";
import type { Origin } from "./connection/Origin.ts";
import { type Ending, type ExchangeRecord, recordOf } from "./ExchangeRecord.ts";

/** Observes a running exchange. Only the first reported end counts. */
export interface ExchangeTelemetry {
  readonly begin: (exchange: Exchange) => Exchange;
  /** Called when the terminal marker was seen. */
  readonly complete: () => void;
  readonly fail: (failure: Failure) => void;
}

/** Starts to observe an exchange. The record is created when the scope closes, after an unfinished exchange was aborted. */
export type Observe = (name: string, origin: Origin) => Effect.Effect<ExchangeTelemetry, never, Scope.Scope>;

/**
 * Creates the observer of a client's exchanges.
 *
 * @param now monotonic milliseconds
 */
export const make = (now: () => number, onExchange: ((record: ExchangeRecord) => void) | undefined): Observe => {
  let number = 0;
  return Effect.fnUntraced(function* (name: string, origin: Origin) {
    const span = yield* Effect.makeSpanScoped("stream_recovery.exchange", { kind: "client" });
    let close: ((ending: Ending) => ExchangeRecord) | undefined;
    let ending: Ending | undefined;
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        if (close === undefined) return Effect.void;
        const record = close(ending ?? { outcome: "aborted" });
        for (const [key, value] of attributesOf(record)) span.attribute(key, value);
        // The record for `onExchange` contains the origin, but a log must not contain an address.
        const { origin: _, ...logged } = record;
        return Effect.andThen(handOver(record, onExchange), Effect.logDebug("exchange with a provider", logged));
      }),
    );
    return {
      begin: (exchange) => {
        number += 1;
        const opening = { number, origin: name, ...origin.begin(now()) };
        close = (how) => {
          const at = now();
          origin.end(at);
          return recordOf(opening, exchange, how, at);
        };
        return exchange;
      },
      complete: () => {
        ending ??= { outcome: "complete" };
      },
      fail: (failure) => {
        ending ??= { outcome: "failed", failure };
      },
    } satisfies ExchangeTelemetry;
  });
};

/** Logs an error that `onExchange` throws. The error must not reach the stream or change the exchange. */
const handOver = (record: ExchangeRecord, onExchange: ((record: ExchangeRecord) => void) | undefined) =>
  Effect.catchDefect(
    Effect.sync(() => onExchange?.(record)),
    (defect) => Effect.logError("onExchange threw an error", { exchange: record.number, class: classOf(defect) }),
  );

const classOf = (defect: unknown): string => (defect instanceof Error ? defect.constructor.name : typeof defect);

/** Returns the attributes of a span. Uses OpenTelemetry's names for HTTP client spans where they exist. */
const attributesOf = (record: ExchangeRecord): ReadonlyArray<readonly [string, string | number | boolean]> => {
  const attributes: ReadonlyArray<readonly [string, string | number | boolean | undefined]> = [
    ["http.request.body.size", record.request_bytes],
    ["http.response.body.size", record.bytes],
    ["http.response.status_code", record.status],
    ["error.type", record.failure],
    ["stream_recovery.exchange", record.number],
    ["stream_recovery.outcome", record.outcome],
    ["stream_recovery.delivery", record.delivery],
    ["stream_recovery.code", record.code],
    ["stream_recovery.connection", record.connection],
    ["stream_recovery.connection_reused", record.reused],
    ["stream_recovery.connection_idle_ms", record.connection_idle_ms],
    ["stream_recovery.idle_ms", record.idle_ms],
    ["stream_recovery.head_ms", record.head_ms],
  ];
  return attributes.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
};
