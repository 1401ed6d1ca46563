/**
 * Determines the address, headers and body of a request on a fallback route, or the reason why the request cannot use the route.
 *
 * The gateway does not guess: if a value is unclear, the route is not used. A client's credential is sent to another upstream only if both
 * upstreams have the same address, vendor or `state`, and so belong to the same account.
 */
import { type JsonObject, membersOf } from "../../adapters/relay/form/JsonMembers.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import { headerOf, type RelayHeaders, type RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import { label } from "../../domain/Limits.ts";
import { protocols } from "../../provider/Protocols.ts";
import type { KnownBody } from "../body/BodyOutline.ts";
import type { UpstreamName, Upstreams } from "../config/Options.ts";
import type { RouteSettings } from "../config/RouteSettings.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { namedRouteOf } from "../routing/NamedRoute.ts";
import { toOutgoing, withoutClientCredentials } from "../routing/OwnCredential.ts";
import { ownerOf, plainPath } from "../routing/Vendor.ts";
import { type Bytes, isEncoded } from "../upstream/ContentDecoding.ts";
import { type BodyChanges, editBody, findUneditableField } from "./BodyEdit.ts";

/** A request that addresses one upstream and may move to others. */
export interface MeantRequest {
  readonly plan: RelayPlan;
  /** The upstream that the request addresses. */
  readonly server: UpstreamSettings;
  /** The provider's path and query, as the client sent them. */
  readonly target: string;
  readonly body: KnownBody;
  /** The members of a large body, which are parsed in advance. Undefined for a small body, which is parsed when it is edited. */
  readonly members?: JsonObject | undefined;
}

/** The destination of a request on a route. The addressed upstream is the first route, and has a destination too. */
export interface RouteTarget {
  readonly id: string;
  readonly server: UpstreamSettings;
  readonly plan: RelayPlan;
  /** Converts the client's request to the request that is sent. */
  readonly convert: (request: RelayRequest) => RelayRequest;
}

/** The reason why a request cannot use a route, in a few words. It is logged, and sent to a client that asked for this route. */
export interface NoTarget {
  readonly reason: string;
}

/** Determines the destination of a request on a route. */
export const targetOf = (
  request: MeantRequest,
  route: RouteSettings,
  server: UpstreamSettings,
  upstreams: Upstreams,
): RouteTarget | NoTarget => {
  const { body, members, plan, server: from } = request;
  const { headers } = plan.request;
  const model = modelSet(request, route);
  if (!canServeModel(route, plan)) return { reason: "the route does not serve the model" };
  if (model === "unclear") return { reason: "the model is in a place where it cannot be set" };
  const changes = {
    set: route.set.body.filter(([field]) => model === undefined || field !== "model"),
    drop: route.drop.body,
  };
  const changesBody = changes.set.length > 0 || changes.drop.length > 0;
  if (changesBody && isEncoded(headerOf(headers, "content-encoding") ?? ""))
    return { reason: "the body is compressed and cannot be changed" };
  if (changesBody && body.isOutline && members === undefined) return { reason: "the body is too large to be changed" };
  const inTheWay = findUneditableField(body.json, changes);
  if (inTheWay !== undefined) return { reason: `the body's ${inTheWay} cannot be changed` };
  const asked = { url: model ?? request.target, headers };
  const shown = canShareCredential(from, server) ? asked : withoutClientCredentials(asked);
  const found = namedRouteOf(shown.url, shown.headers, server, upstreams);
  if ("refused" in found) return { reason: "the upstream does not accept such requests" };
  const claimed = protocolAt(found.url, headers);
  if (claimed !== plan.protocol.id) return { reason: "the upstream does not speak the request's protocol" };
  const named = route.set.body.find(([field]) => field === "model")?.[1];
  return {
    ...{ id: route.id, server },
    plan: {
      ...plan,
      // A request that resumes the response goes to the address of this route, not to the upstream that was addressed first.
      request: { ...plan.request, url: found.url },
      provider: {
        ...plan.provider,
        id: label(new URL(found.url).host),
        ...(typeof named === "string" ? { model: label(named) } : {}),
      },
      ...(server.tolerance === undefined ? {} : { tolerance: { ...server.tolerance, ...plan.tolerance } }),
    },
    convert: (given) =>
      requestOnRoute(given, {
        upstream: found.upstream,
        route,
        server,
        changes: changesBody ? changes : undefined,
        read: members && { of: body.plain, members },
        from,
      }),
  };
};

/** A body whose members were parsed in advance. */
interface ReadBody {
  readonly of: Bytes;
  readonly members: JsonObject;
}

interface Leaving {
  readonly upstream: UpstreamName;
  readonly route: RouteSettings;
  readonly server: UpstreamSettings;
  readonly from: UpstreamSettings;
  readonly changes: BodyChanges | undefined;
  readonly read: ReadBody | undefined;
}

const requestOnRoute = (
  request: RelayRequest,
  { changes, from, read, route, server, upstream }: Leaving,
): RelayRequest => {
  const shown = canShareCredential(from, server) ? request : withoutClientCredentials(request);
  const left = toOutgoing(shown, server, upstream);
  return {
    ...request,
    url: left.url,
    headers: editHeaders(left.headers, route),
    body: changes === undefined ? request.body : bodyOf(request.body, changes, read),
  };
};

/** True if the client's credential for the upstream `from` may be sent to the upstream `to`. */
const canShareCredential = (from: UpstreamSettings, to: UpstreamSettings): boolean => {
  if (hasOwnCredential(to)) return true; // Its own credential replaces the client's.
  if (hasOwnCredential(from)) return false;
  const [one, other] = [new URL(from.url), new URL(to.url)];
  const owner = ownerOf(one.hostname);
  return (
    one.origin === other.origin ||
    (owner !== undefined && owner === ownerOf(other.hostname)) ||
    (from.state !== undefined && from.state === to.state)
  );
};

const editHeaders = (headers: RelayHeaders, { drop, set }: RouteSettings): RelayHeaders => {
  const gone = new Set([...drop.headers, ...set.headers.map(([name]) => name)].map((name) => name.toLowerCase()));
  return [...headers.filter(([name]) => !gone.has(name.toLowerCase())), ...set.headers];
};

/** Edits a body. An earlier check has shown that the body is an object. */
const bodyOf = (body: RelayRequest["body"], changes: BodyChanges, read: ReadBody | undefined): RelayRequest["body"] => {
  if (body === undefined) return body;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const members = bytes === read?.of ? read.members : membersOf(bytes);
  if (members === undefined) throw new Error("a body that must be changed is not a JSON object");
  return editBody(bytes, members, changes);
};

/**
 * Returns the target with the route's model in its path. Returns undefined if the route sets no model or the path contains none, and
 * `unclear` if it is unknown where the path contains the model.
 */
const modelSet = ({ plan, target }: MeantRequest, { set }: RouteSettings): string | "unclear" | undefined => {
  const model = set.body.find(([field]) => field === "model")?.[1];
  if (typeof model !== "string") return undefined;
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  const place = modelPlaces.map((pattern) => pattern.exec(path)).find((found) => found !== null);
  if (place === undefined) return namingInPath.has(plan.protocol.id) || isDeploymentPath(path) ? "unclear" : undefined;
  return `${place[1]}${encodeURIComponent(model)}${place[2]}${end === -1 ? "" : target.slice(end)}`;
};

/** The paths of Gemini and Bedrock, which contain the model between the two groups. */
const modelPlaces = [/^(.*\/models\/)[^/:]+(:\w+\/*)$/, /^(.*\/model\/)[^/]+(\/(?:converse|invoke)[a-z-]*\/*)$/];

/** Protocols whose requests name the model in the path only. */
const namingInPath: ReadonlySet<string> = new Set(["google-gemini", "bedrock-converse", "bedrock-invoke"]);

/** True for Azure's older paths. They name a deployment of the operator, and the server ignores a model in the body. */
const isDeploymentPath = (path: string): boolean => /\/deployments\//i.test(plainPath(path) ?? path);

/** True if a route serves the requested model. `*` in a pattern matches any text. */
const canServeModel = ({ models }: RouteSettings, { provider }: RelayPlan): boolean =>
  models === undefined || models.some((pattern) => isModelMatch(pattern, provider.model ?? ""));

const isModelMatch = (pattern: string, model: string): boolean => {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return model === pattern;
  if (!model.startsWith(first) || !model.endsWith(last) || model.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of others) {
    const found = model.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= model.length - last.length;
};

const protocolAt = (text: string, headers: RelayHeaders): string | undefined => {
  const { pathname, searchParams } = new URL(text);
  const has = (name: string) => headerOf(headers, name) !== undefined;
  return protocols.at({ path: pathname.replace(/\/+$/, ""), query: searchParams, has })?.protocol.id;
};
