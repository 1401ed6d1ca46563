/**
 * Describes the further routes of an upstream: where a request goes when the upstream that it was meant for does not answer, for
 * which models, and what is changed in the request on the way.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";

/** A finish that a list of routes may take for a failure. */
export type FinishFailure = "refused" | "empty" | "model_length";

/** A further route. */
export interface RouteSettings {
  /** Names the route to clients, in logs, on record and in its breaker. */
  readonly id: string;
  /** The name of the upstream that it leads to. */
  readonly upstream: string;
  /** The requested models that it serves, `*` for any text; left out, all. */
  readonly models?: ReadonlyArray<string>;
  /** What a request has on this route in place of its own. A field of the body is named by its key, or by two with a dot between. */
  readonly set: {
    readonly headers: RelayHeaders;
    readonly body: ReadonlyArray<readonly [field: string, value: unknown]>;
  };
  /** What a request does not have on this route. */
  readonly drop: { readonly headers: ReadonlyArray<string>; readonly body: ReadonlyArray<string> };
}

/** The further routes of one upstream, in the order in which a request moves to them. */
export interface RouteList {
  readonly routes: ReadonlyArray<RouteSettings>;
  /** Finishes that are failures, so that the next route takes the request. */
  readonly movesOn: ReadonlyArray<FinishFailure>;
}

/** The lists by the name of the upstream that requests go to. */
export type RouteLists = Readonly<Record<string, RouteList>>;
