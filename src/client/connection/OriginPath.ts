/** Describes the path to an origin, and allows probing it over the connections of a client. */
import type { Dispatcher } from "@effect/platform-node/Undici";
import { Effect } from "effect";
import type { Path, PathWay } from "../../paths/Path.ts";
import type { Connector } from "./Connector.ts";
import { addressOf, type EgressProxy } from "./EgressProxy.ts";
import type { Origins } from "./Origin.ts";
import * as Probe from "./Probe.ts";

/** The connections of a client, and the time limit of a probe. */
export interface Reach {
  readonly agent: Dispatcher;
  readonly connector: Connector;
  readonly origins: Origins;
  /** Maximum duration of a probe, in milliseconds. Default 5,000. */
  readonly probeMs?: number;
}

/**
 * Returns the path of requests to an address: scheme, host, port and the egress proxy, without the proxy's login.
 *
 * @throws TypeError if the address cannot be read
 */
export const pathTo = (reach: Reach, url: string | URL): Path => {
  const { origin } = new URL(url);
  return { id: idOf(origin, reach.connector.proxyOf(origin)), way: probeTo(reach, origin) };
};

const idOf = (origin: string, proxy: EgressProxy | undefined): string =>
  proxy === undefined ? origin : `${origin} via ${addressOf(proxy)}`;

const probeTo = ({ connector, origins, probeMs = Probe.probeMs }: Reach, origin: string): PathWay => {
  const dropIdle = (): void => origins.of(origin).suspect();
  const asked = Effect.suspend(() => Probe.connection(connector, origin, probeMs));
  return {
    // If no connection can be made, the open connections may be dead too.
    probe: Effect.tap(asked, ({ _tag }) => Effect.sync(() => (_tag === "failed" ? dropIdle() : undefined))),
    dropIdle,
  };
};
