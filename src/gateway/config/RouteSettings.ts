/**
 * Describes the fallback routes of an upstream: to which upstream a request moves if the addressed one fails, for which models, and with
 * which changes.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";

/** A finish (the reason for which a response ended) that a list of routes may treat as a failure. */
export type FinishFailure = "refused" | "empty" | "model_length";

/** A fallback route of an upstream. */
export interface RouteSettings {
  /** Name of the route for clients, logs, records and the route's circuit breaker. */
  readonly id: string;
  /** Name of the upstream that receives its requests. */
  readonly upstream: string;
  /** Requested models that the route serves; `*` matches any text. Default: all. */
  readonly models?: ReadonlyArray<string>;
  /** Headers and body fields that replace those of the request. A field is a key, or two keys joined by a dot. */
  readonly set: {
    readonly headers: RelayHeaders;
    readonly body: ReadonlyArray<readonly [field: string, value: unknown]>;
  };
  /** Headers and body fields that are removed from the request. */
  readonly drop: { readonly headers: ReadonlyArray<string>; readonly body: ReadonlyArray<string> };
}

/** The fallback routes of one upstream, in failover order. */
export interface RouteList {
  readonly routes: ReadonlyArray<RouteSettings>;
  /** Finishes that count as failures, so that the request moves to the next route. */
  readonly movesOn: ReadonlyArray<FinishFailure>;
}

/** Route lists by the name of the upstream to which clients address their requests. */
export type RouteLists = Readonly<Record<string, RouteList>>;
