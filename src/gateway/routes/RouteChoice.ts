/**
 * Chooses the routes of one request: the route on which it starts, and those to which it may move.
 *
 * A request may use a route only if its token permits the upstream. A client that sends its own provider key does not get the operator's
 * credential. A request that is bound to an account moves only between upstreams with the same `state`. A conversation stays on the route
 * from which its history came.
 */
import { Effect } from "effect";
import { membersInTurns } from "../../adapters/relay/form/JsonMembers.ts";
import type { AdmittedToken, GatewaySettings } from "../config/GatewayOptions.ts";
import type { RouteList } from "../config/RouteSettings.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { forbiddenRefusal, type Refused } from "../routing/Admission.ts";
import { hasClientCredential } from "../routing/OwnCredential.ts";
import { searchBody } from "./Bound.ts";
import type { RouteMemory } from "./RouteMemory.ts";
import { type MeantRequest, type RouteTarget, targetOf } from "./RouteTarget.ts";
import { type RouteWish, routeRefusal } from "./RouteWish.ts";

/** A request whose routes are chosen. */
export interface RoutedRequest extends MeantRequest {
  /** The route of the upstream that the request addresses. */
  readonly first: RouteTarget;
  readonly token: AdmittedToken | undefined;
  readonly wish: RouteWish;
}

/** The routes that a request may use. */
export interface ChosenRoutes {
  /** The route on which the request starts. */
  readonly first: RouteTarget;
  /** The routes to which the request may move, in order. */
  readonly further: ReadonlyArray<RouteTarget>;
  /** The field that binds the request to its provider's account. Undefined if no field does, or if there is no fallback route. */
  readonly bound: string | undefined;
  /** Routes that cannot serve the request, each with the reason. */
  readonly left_out: ReadonlyArray<{ readonly id: string; readonly reason: string }>;
}

/** The settings that describe the upstreams. */
export type RouteConfig = Pick<GatewaySettings, "servers" | "upstreams">;

/** Chooses the routes of a request, or refuses the request if it cannot use the route that it asks for. */
export const chosenOf = (
  request: RoutedRequest,
  list: RouteList,
  config: RouteConfig,
  memory: RouteMemory,
): Effect.Effect<ChosenRoutes | Refused> => {
  if (!request.body.isOutline || !hasBodyChanges(list)) return chooseRoutes(request, list, config, memory);
  return Effect.flatMap(membersInTurns(request.body.plain), (members) =>
    chooseRoutes({ ...request, members }, list, config, memory),
  );
};

const hasBodyChanges = ({ routes }: RouteList): boolean =>
  routes.some(({ drop, set }) => set.body.length > 0 || drop.body.length > 0);

const chooseRoutes = (
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
    return Effect.succeed(routeRefusal(wish.pinned, left_out.find(({ id }) => id === wish.pinned)?.reason));
  }
  if (targets.length === 0) return Effect.succeed({ first, further: [], bound: undefined, left_out });
  return Effect.map(searchBody(request.body, request.plan.protocol.id), ({ bound, marks }) => {
    const known = memory.find({ tenant: request.token?.name, upstream: first.id }, marks);
    const begins = all.find(({ id }) => id === known) ?? first;
    const others = all.filter((target) => target !== begins);
    const further =
      bound === undefined ? others : others.filter((target) => hasSameState(target.server, begins.server));
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
 * True if a request may use an upstream. Only clients with a token of the gateway may use the operator's credential. A client that sends
 * its own key may not, if the addressed upstream uses the client's key: the operator does not pay for requests that the client's provider
 * refuses.
 */
const mayUse = ({ plan, server: meant, token }: RoutedRequest, server: UpstreamSettings): boolean => {
  if (forbiddenRefusal(token, { upstream: server.name }) !== undefined) return false;
  if (!hasOwnCredential(server)) return true;
  return token !== undefined && (hasOwnCredential(meant) || !hasClientCredential(plan.request));
};

const hasSameState = ({ state }: UpstreamSettings, other: UpstreamSettings): boolean =>
  state !== undefined && state === other.state;
