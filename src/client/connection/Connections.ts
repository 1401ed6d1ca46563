/**
 * Keeps the connections of a client: HTTP/1.1, one request at a time on each, without undici's own timeouts and retries.
 */
import type * as Undici from "@effect/platform-node/Undici";
import { Effect, type Scope } from "effect";
import { ConnectionSlot } from "./ConnectionSlot.ts";
import type { Connector } from "./Connector.ts";
import type { ClientClocks } from "./IdleTime.ts";
import type { Origins } from "./Origin.ts";
import { Agent, Pool } from "./Undici.ts";

/** The connector, the maximum number of connections, and the time for which an idle one is kept. */
export interface ConnectionOptions extends ClientClocks {
  readonly connector: Connector;
  /** Maximum idle time of a kept connection, in milliseconds. */
  readonly keepAliveMs: number;
  /** Maximum connections to one origin; undefined for no limit. */
  readonly connections: number | undefined;
  readonly origins: Origins;
}

/** Creates the dispatcher. It opens connections as requests need them, and closes them with the scope. */
export const make = (options: ConnectionOptions): Effect.Effect<Undici.Dispatcher, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => open(options)),
    (agent) => Effect.promise(() => agent.destroy()),
  );

/** Creates the dispatcher. The caller has to destroy it, which closes its connections. */
export const open = ({
  connections,
  connector,
  keepAliveMs,
  now,
  nowMs,
  origins,
}: ConnectionOptions): Undici.Dispatcher => {
  let opened = 0;
  const number = (): number => {
    opened += 1;
    return opened;
  };
  const makeSlot = (url: URL, slotOptions: object): ConnectionSlot =>
    new ConnectionSlot(url, slotOptions, {
      origin: origins.of(url.origin),
      connector,
      keepAliveMs,
      now,
      nowMs,
      number,
    });
  return new Agent({
    // A pool is used even for one connection, because a connect error of a bare Client fails every request that is queued on that Client.
    factory: (url, poolOptions) => new Pool(url, { ...poolOptions, factory: makeSlot }),
    ...(connections === undefined ? {} : { connections }),
    pipelining: 1,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    // The default and the maximum are equal, so a server's Keep-Alive header may shorten the idle time but never extend it.
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
  });
};
