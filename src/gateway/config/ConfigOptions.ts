/**
 * Turns a decoded configuration file into a gateway's options, in its own words: what names nothing outside of the file.
 */
import type { Budget } from "../../domain/RunFacts.ts";
import type { StricterRules } from "../../policy/RecoveryPolicy.ts";
import type { ClockOptions } from "../../runtime/contract/Clocks.ts";
import type { ConfigSchema } from "./ConfigSchema.ts";
import type { GatewayLimits } from "./GatewayOptions.ts";
import type { ProgramOptions } from "./ProgramOptions.ts";
import type { RouteLists, RouteSettings } from "./RouteSettings.ts";

/** The options; a key that is left out leaves its option out. */
export const optionsOf = (config: ConfigSchema): ProgramOptions => ({
  ...defined({
    host: config.listen?.host,
    port: config.listen?.port,
    allowedHosts: config.allowed_hosts,
    reveal: config.reveal,
    onBreak: config.on_break,
    continueText: config.continue_text,
    prefills: config.prefills,
    onQuestion: config.on_question,
    holdMs: config.hold_ms,
    holdMaxMs: config.hold_max_ms,
    keepAliveMs: config.comment_ms,
    lingerMs: config.linger_ms,
    lingerMaxMs: config.linger_max_ms,
    clocks: config.clocks === undefined ? undefined : clocksOf(config.clocks),
    connectMs: config.clocks?.connect,
    budget: config.budget === undefined ? undefined : (defined(config.budget) satisfies Partial<Budget>),
    prices: config.prices,
    limits: config.limits === undefined ? undefined : limitsOf(config.limits),
    logFormat: config.log?.format,
    accessLog: config.log?.access,
    requireStore: config.require_store,
    retryEmpty: config.retry_empty,
    db: config.db,
    deliveryLog: config.delivery_log,
    keepRuns: config.keep_runs,
    keepRunsMax: config.keep_runs_max,
    leaseMs: config.lease_ms,
    workers: config.workers,
  }),
  // Each rule and action was checked by the policy itself.
  ...(config.policy === undefined ? {} : { policy: config.policy as StricterRules }),
});

type Defined<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> };

/** All that is set. */
export const defined = <T extends object>(given: T): Defined<T> =>
  // The values that are left are not undefined, which the type of fromEntries does not say.
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Defined<T>;

const clocksOf = (clocks: NonNullable<ConfigSchema["clocks"]>): ClockOptions => {
  const set = (value: number | "off" | undefined) => (value === "off" ? (false as const) : value);
  return defined({
    first_progress: set(clocks.first_progress),
    idle: set(clocks.idle),
    silence: set(clocks.silence),
    attempt: set(clocks.attempt),
    run: set(clocks.run),
  });
};

const limitsOf = (limits: NonNullable<ConfigSchema["limits"]>): Partial<GatewayLimits> =>
  defined({
    maxBodyBytes: limits.max_body_bytes,
    maxBodiesBytes: limits.max_bodies_bytes,
    maxPassedBytes: limits.max_passed_bytes,
    maxHeaderBytes: limits.max_header_bytes,
    maxConnections: limits.max_connections,
    headMs: limits.head_ms,
    requestMs: limits.request_ms,
    slowClientMs: limits.slow_client_ms,
    idleConnectionMs: limits.idle_connection_ms,
    drainMs: limits.drain_ms,
  });

/** The rows of the file in the words of the table of clients, which checks them. */
export const clientsOf = (clients: NonNullable<ConfigSchema["clients"]>): { readonly [name: string]: object } =>
  Object.fromEntries(
    Object.entries(clients).map(([name, it]) => [
      name,
      defined({
        match: it.match !== undefined && "user_agent" in it.match ? { userAgent: it.match.user_agent } : it.match,
        as: it.as,
        reveal: it.reveal,
        onBreak: it.on_break,
        patienceMs: it.patience_ms,
        holdMaxMs: it.hold_max_ms,
        status: it.status,
        ending: it.ending,
        firstNoOp: it.first_no_op,
      }),
    ]),
  );

/** The lists as a configuration file has them; undefined where it has none. */
export const routeListsOf = ({
  moves_on = {},
  routes,
}: Pick<ConfigSchema, "moves_on" | "routes">): RouteLists | undefined => {
  const finishes = new Map(Object.entries(moves_on));
  return routes === undefined
    ? undefined
    : Object.fromEntries(
        Object.entries(routes).map(([name, list]) => [
          name,
          { routes: list.map(routeOf), movesOn: [...new Set(finishes.get(name))] },
        ]),
      );
};

type Configured = NonNullable<ConfigSchema["routes"]>[string][number];

const routeOf = ({ drop = {}, id, models, set = {}, upstream }: Configured): RouteSettings => ({
  ...{ id: id ?? upstream, upstream },
  ...defined({ models }),
  set: { headers: Object.entries(set.headers ?? {}), body: Object.entries(set.body ?? {}) },
  drop: { headers: drop.headers ?? [], body: drop.body ?? [] },
});
