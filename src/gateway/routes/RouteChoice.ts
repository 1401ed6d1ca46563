/**
 * Chooses the routes of one request: the one that it begins on, and those that it may move to.
 *
 * What must not cross: a route exists for a request only where its token permits the upstream, and where the operator's credential is
 * not bought with a key that the client shows. What is bound to an account goes between upstreams of one `state` alone. A conversation
 * goes where its history came from.
 */
import { Effect } from "effect";
import { condensed } from "../body/CondensedBody.ts";
import type { AdmittedToken, GatewaySettings } from "../config/GatewayOptions.ts";
import type { RouteList } from "../config/RouteSettings.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { forbidden, type Refused } from "../routing/Admission.ts";
import { showsCredential } from "../routing/OwnCredential.ts";
import { searched } from "./Bound.ts";
import type { RouteMemory } from "./RouteMemory.ts";
import { type MeantRequest, type RouteTarget, targetOf } from "./RouteTarget.ts";
import { noSuchRoute, type RouteWish } from "./RouteWish.ts";

/** A request whose routes are chosen. */
export interface RoutedRequest extends MeantRequest {
  /** The route of the upstream that it is meant for. */
  readonly first: RouteTarget;
  readonly token: AdmittedToken | undefined;
  readonly wish: RouteWish;
}

/** The routes of a request. */
export interface ChosenRoutes {
  /** Where it begins. */
  readonly first: RouteTarget;
  /** Where it may move, in this order. */
  readonly further: ReadonlyArray<RouteTarget>;
  /** What binds it to its provider's account; undefined where nothing does, and where it has nowhere to move. */
  readonly bound: string | undefined;
  /** Routes that do not take it, and why. */
  readonly left_out: ReadonlyArray<{ readonly id: string; readonly reason: string }>;
}

/** What is configured. */
export type RouteConfig = Pick<GatewaySettings, "servers" | "upstreams">;

/** Chooses. */
export const chosenOf = (
  request: RoutedRequest,
  list: RouteList,
  config: RouteConfig,
  memory: RouteMemory,
): Effect.Effect<ChosenRoutes | Refused> => {
  if (!request.body.isOutline || !changesBodies(list)) return chosenFrom(request, list, config, memory);
  return Effect.flatMap(condensed(request.body.plain), (found) =>
    chosenFrom({ ...request, condensed: found }, list, config, memory),
  );
};

const changesBodies = ({ routes }: RouteList): boolean =>
  routes.some(({ drop, set }) => set.body.length > 0 || drop.body.length > 0);

const chosenFrom = (
  request: RoutedRequest,
  list: RouteList,
  config: RouteConfig,
  memory: RouteMemory,
): Effect.Effect<ChosenRoutes | Refused> => {
  const { first, wish } = request;
  const { left_out, targets } = targetsOf(request, list, config);
  const all = [first, ...targets];
  if (wish.pinned !== undefined) {
    const pinned = all.find(({ id }) => id === wish.pinned);
    if (pinned !== undefined) return Effect.succeed({ first: pinned, further: [], bound: undefined, left_out });
    return Effect.succeed(noSuchRoute(wish.pinned, left_out.find(({ id }) => id === wish.pinned)?.reason));
  }
  if (targets.length === 0) return Effect.succeed({ first, further: [], bound: undefined, left_out });
  return Effect.map(searched(request.body, request.plan.protocol.id), ({ bound, marks }) => {
    const known = memory.find({ tenant: request.token?.name, upstream: first.id }, marks);
    const begins = all.find(({ id }) => id === known) ?? first;
    const others = all.filter((target) => target !== begins);
    const further = bound === undefined ? others : others.filter((target) => sharesState(target.server, begins.server));
    return { first: begins, further: wish.moves ? further : [], bound, left_out };
  });
};

const targetsOf = (request: RoutedRequest, list: RouteList, { servers, upstreams }: RouteConfig) => {
  const targets: Array<RouteTarget> = [];
  const left_out: Array<ChosenRoutes["left_out"][number]> = [];
  for (const route of list.routes) {
    const server = servers.get(route.upstream);
    if (server === undefined || !mayUse(request, server)) continue;
    const target = targetOf(request, route, server, upstreams);
    if ("reason" in target) left_out.push({ id: route.id, reason: target.reason });
    else targets.push(target);
  }
  return { targets, left_out };
};

/**
 * Whether an upstream exists for a request. The operator's credential is for clients with a token of the gateway. A client that shows a
 * key of its own where that key counts has asked for nothing else: what its provider refuses, the operator does not pay for.
 */
const mayUse = ({ plan, server: meant, token }: RoutedRequest, server: UpstreamSettings): boolean => {
  if (forbidden(token, { upstream: server.name }) !== undefined) return false;
  if (!hasOwnCredential(server)) return true;
  return token !== undefined && (hasOwnCredential(meant) || !showsCredential(plan.request));
};

const sharesState = ({ state }: UpstreamSettings, other: UpstreamSettings): boolean =>
  state !== undefined && state === other.state;
