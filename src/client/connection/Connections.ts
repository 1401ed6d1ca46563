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

/** What the connections of a client need. */
export interface ConnectionOptions extends ClientClocks {
  readonly connector: Connector;
  /** Longest idle time of a kept connection, in milliseconds. */
  readonly keepAliveMs: number;
  /** Most connections to one origin. */
  readonly connections: number | undefined;
  readonly origins: Origins;
}

/** Makes the connections; they are closed with their scope. */
export const make = (options: ConnectionOptions): Effect.Effect<Undici.Dispatcher, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => open(options)),
    (agent) => Effect.promise(() => agent.destroy()),
  );

/** Makes the connections; the caller destroys them. */
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
  const slot = (url: URL, slotOptions: object): ConnectionSlot =>
    new ConnectionSlot(url, slotOptions, {
      origin: origins.of(url.origin),
      connector,
      keepAliveMs,
      now,
      nowMs,
      number,
    });
  return new Agent({
    // A pool also for one connection: a connect error of a bare Client fails every request that waits behind it.
    factory: (url, poolOptions) => new Pool(url, { ...poolOptions, factory: slot }),
    ...(connections === undefined ? {} : { connections }),
    pipelining: 1,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    // With both equal, a server's Keep-Alive header may shorten the idle time and never lengthen it.
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
  });
};
