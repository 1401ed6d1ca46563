/**
 * Prepares the chosen routes of a request for its run. Each route gets a transport that converts the request before it is sent and
 * remembers the responses of fallback routes.
 */
import { Effect } from "effect";
import type { RelayOptions } from "../../adapters/relay/Relay.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import { credentialIn, type RelayTransport } from "../../adapters/relay/RelayTransport.ts";
import * as CredentialDigest from "../../client/CredentialDigest.ts";
import type { Path } from "../../paths/Path.ts";
import type { KnownBody } from "../body/BodyOutline.ts";
import type { AdmittedToken, GatewaySettings } from "../config/GatewayOptions.ts";
import type { RouteList } from "../config/RouteSettings.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { withIdListener } from "../owners/MadeId.ts";
import type { ResponseOwners } from "../owners/ResponseOwners.ts";
import type { Refused } from "../routing/Admission.ts";
import type { Outgoing } from "../routing/OwnCredential.ts";
import type { Way } from "../routing/Way.ts";
import { secretsOf } from "../upstream/Secrets.ts";
import type { Upstream } from "../upstream/Upstream.ts";
import { withMarks } from "./AnswerMarks.ts";
import { type ChosenRoutes, chosenOf } from "./RouteChoice.ts";
import type { RememberedFor, RouteMemory } from "./RouteMemory.ts";
import type { RouteTarget } from "./RouteTarget.ts";
import { type RouteWish, routeRefusal } from "./RouteWish.ts";

/** A request to a model. */
export interface RoutingRequest {
  readonly plan: RelayPlan;
  readonly body: KnownBody;
  /** The provider's path and query, as the client sent them. */
  readonly target: string;
  readonly way: Pick<Way, "outgoing" | "server" | "continueText">;
  readonly token: AdmittedToken | undefined;
  readonly wish: RouteWish;
}

/** The parts of the gateway on which the choice of routes depends. */
export interface RouteServing {
  readonly settings: Pick<GatewaySettings, "continueText" | "routes" | "servers" | "upstreams">;
  readonly reach: (server: UpstreamSettings) => Upstream;
  readonly memory: RouteMemory;
  readonly owners: Pick<ResponseOwners, "keep">;
}

/** The routing options of a run. */
export interface Routing {
  readonly plan: RelayPlan;
  readonly transport: RelayTransport;
  readonly options: Pick<RelayOptions, "continueText" | "finishFailures" | "path" | "route" | "routes" | "tolerance">;
  readonly left_out: ChosenRoutes["left_out"];
}

/** Chooses the routes of a request. If its upstream has no fallback routes, the request is sent there unchanged. */
export const routingOf = (request: RoutingRequest, serving: RouteServing): Effect.Effect<Routing | Refused> => {
  const { body, plan, token, way, wish } = request;
  const { server } = way;
  const list = serving.settings.routes.get(server.name);
  const asked: RoutesAsked = { ...serving, continueText: way.continueText, stores: body.json.store !== false };
  const first: RouteTarget = {
    ...{ id: server.name, server },
    plan: server.tolerance === undefined ? plan : { ...plan, tolerance: { ...server.tolerance, ...plan.tolerance } },
    convert: (given) => {
      const { headers, url } = way.outgoing(given);
      return { method: given.method, url, headers, body: given.body, tenant: given.tenant };
    },
  };
  // The choice of routes reads fields that only a request for a response has. An opaque request (for example a token count) lacks them.
  if (list === undefined || plan.isOpaque === true) {
    if (wish.pinned !== undefined && wish.pinned !== first.id) return Effect.succeed(routeRefusal(wish.pinned));
    const { options, plan: own, transport } = startRoute(first, undefined, asked);
    return Effect.succeed({ options, plan: own, transport, left_out: [] });
  }
  const meant = { plan, server, target: request.target, body, first, token, wish };
  return Effect.map(chosenOf(meant, list, serving.settings, serving.memory), (chosen) =>
    "message" in chosen ? chosen : makeRouting(chosen, list, { tenant: token?.name, upstream: server.name }, asked),
  );
};

const makeRouting = (
  { first, further, left_out }: ChosenRoutes,
  { movesOn }: RouteList,
  remembered: RememberedFor,
  asked: RoutesAsked,
): Routing => {
  const { options, plan, transport } = startRoute(first, remembered, asked);
  return {
    ...{ plan, transport, left_out },
    options: {
      ...options,
      // A failure on the first route may be the client's mistake. Only a refused credential counts against this route, and only if it is
      // the operator's.
      route: { id: first.id, own: hasOwnCredential(first.server) ? "credential" : false },
      routes: further.map((target) => routeOf(target, remembered, asked)),
      ...(movesOn.length === 0 || further.length === 0 ? {} : { finishFailures: movesOn }),
    },
  };
};

interface RoutesAsked extends RouteServing {
  /** The client's choice to continue shown text automatically or to ask. */
  readonly continueText: Way["continueText"];
  /** True if the provider may store the response. */
  readonly stores: boolean;
}

const startRoute = (target: RouteTarget, remembered: RememberedFor | undefined, asked: RoutesAsked) => {
  const { continueText, path, plan, transport } = routeOf(target, remembered, asked);
  return { plan, transport, options: { path, continueText } };
};

const routeOf = (
  { id, convert, plan, server }: RouteTarget,
  remembered: RememberedFor | undefined,
  asked: RoutesAsked,
) => {
  const { memory, owners, reach, settings, stores } = asked;
  const { pathOf, transport } = reach(server);
  const { headers, method, tenant, url: address } = plan.request;
  const left = convert({ method, url: address, headers, body: undefined, tenant });
  const marks = remembered !== undefined && id !== remembered.upstream;
  const mask = secretsOf(server);
  const isKept = mask !== undefined && stores && plan.protocol.id === "openai-responses";
  const open: RelayTransport["open"] = (request, reporters) => {
    const opened = transport.open(convert(request), reporters);
    const exchange = isKept ? withIdListener(opened, (made) => owners.keep(tenant, made)) : opened;
    return marks ? withMarks(exchange, plan.protocol.framing, (text) => memory.keep(remembered, text, id)) : exchange;
  };
  return {
    ...{ id, plan, path: withCredential(pathOf(left.url), left) },
    transport: mask === undefined ? { open } : { open, mask },
    // The client's choice takes precedence, then the upstream's setting, then the gateway's.
    continueText: asked.continueText ?? server.continueText ?? settings.continueText,
  };
};

/**
 * Adds the digest of a credential to a path: the upstream's credential, or the client's if the upstream has none.
 *
 * @param path the path to the upstream
 */
export const withCredential = (path: Path, { headers, url }: Outgoing): Path =>
  CredentialDigest.withCredential(path, credentialIn(url, headers));
