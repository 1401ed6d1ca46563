/**
 * Says where a request goes by a further route, and with what: its address there, its headers and its body, or why it cannot go.
 *
 * What would have to be guessed is not sent. A client's credential goes to another upstream only where that is the same account's: the
 * same address, the same vendor, or the same `state`.
 */
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import { headerOf, type RelayHeaders, type RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import { label } from "../../domain/Limits.ts";
import { protocols } from "../../provider/Protocols.ts";
import type { KnownBody } from "../body/BodyOutline.ts";
import { type CondensedBody, filled } from "../body/CondensedBody.ts";
import type { UpstreamName, Upstreams } from "../config/Options.ts";
import type { RouteSettings } from "../config/RouteSettings.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { namedRouteOf } from "../routing/NamedRoute.ts";
import { outgoing, withoutClientCredentials } from "../routing/OwnCredential.ts";
import { ownerOf, plainPath } from "../routing/Vendor.ts";
import { isEncoded } from "../upstream/ContentDecoding.ts";
import { edited, obstacle } from "./BodyEdit.ts";

/** A request that is meant for one upstream, and may go to others. */
export interface MeantRequest {
  readonly plan: RelayPlan;
  /** The upstream that it is meant for. */
  readonly server: UpstreamSettings;
  /** The provider's own path and query, as its client sent them. */
  readonly target: string;
  readonly body: KnownBody;
  /** Where its body may be changed piece by piece; undefined for one that is changed whole. */
  readonly condensed?: CondensedBody | undefined;
}

/** Where it goes by a route, the first one included. */
export interface RouteTarget {
  readonly id: string;
  readonly server: UpstreamSettings;
  readonly plan: RelayPlan;
  /** The request as it leaves. */
  readonly leaving: (request: RelayRequest) => RelayRequest;
}

/** Why a request cannot go by a route, in a few words for a log and for a client that asks for the route. */
export interface NoTarget {
  readonly reason: string;
}

/** Finds it. */
export const targetOf = (
  request: MeantRequest,
  route: RouteSettings,
  server: UpstreamSettings,
  upstreams: Upstreams,
): RouteTarget | NoTarget => {
  const { body, condensed, plan, server: from } = request;
  const { headers } = plan.request;
  const model = modelSet(request, route);
  if (!servesModel(route, plan)) return { reason: "the route does not serve the model" };
  if (model === "unclear") return { reason: "the model stands where it cannot be set" };
  const changes = {
    set: route.set.body.filter(([field]) => model === undefined || field !== "model"),
    drop: route.drop.body,
  };
  const changesBody = changes.set.length > 0 || changes.drop.length > 0;
  if (changesBody && isEncoded(headerOf(headers, "content-encoding") ?? ""))
    return { reason: "the body is compressed, and cannot be changed" };
  if (changesBody && body.isOutline && condensed === undefined)
    return { reason: "the body is too large to be changed" };
  const inTheWay = obstacle(body.json, changes);
  if (inTheWay !== undefined) return { reason: `the body's ${inTheWay} cannot be changed` };
  const asked = { url: model ?? request.target, headers };
  const shown = keepsCredential(from, server) ? asked : withoutClientCredentials(asked);
  const found = namedRouteOf(shown.url, shown.headers, server, upstreams);
  if ("refused" in found) return { reason: "the upstream is not asked such a request" };
  const claimed = protocolAt(found.url, headers);
  if (claimed !== plan.protocol.id) return { reason: "the upstream does not speak the request's protocol" };
  const named = route.set.body.find(([field]) => field === "model")?.[1];
  return {
    ...{ id: route.id, server },
    plan: {
      ...plan,
      // What reads its response on goes behind this address, not behind that of the upstream that it was meant for.
      request: { ...plan.request, url: found.url },
      provider: {
        ...plan.provider,
        id: label(new URL(found.url).host),
        ...(typeof named === "string" ? { model: label(named) } : {}),
      },
      ...(server.tolerance === undefined ? {} : { tolerance: { ...server.tolerance, ...plan.tolerance } }),
    },
    leaving: (given) =>
      leaving(given, {
        upstream: found.upstream,
        route,
        server,
        changes: changesBody ? changes : undefined,
        condensed,
        from,
      }),
  };
};

interface Leaving {
  readonly upstream: UpstreamName;
  readonly route: RouteSettings;
  readonly server: UpstreamSettings;
  readonly from: UpstreamSettings;
  readonly changes: Parameters<typeof edited>[1] | undefined;
  readonly condensed: CondensedBody | undefined;
}

const leaving = (
  request: RelayRequest,
  { changes, condensed, from, route, server, upstream }: Leaving,
): RelayRequest => {
  const shown = keepsCredential(from, server) ? request : withoutClientCredentials(request);
  const left = outgoing(shown, server, upstream);
  return {
    ...request,
    url: left.url,
    headers: changed(left.headers, route),
    body: changes === undefined ? request.body : bodyOf(request.body, changes, condensed),
  };
};

/** Whether a client's credential for one upstream may be shown to another one. */
const keepsCredential = (from: UpstreamSettings, to: UpstreamSettings): boolean => {
  if (hasOwnCredential(to)) return true; // Its own takes the place of each of the client's.
  if (hasOwnCredential(from)) return false;
  const [one, other] = [new URL(from.url), new URL(to.url)];
  const owner = ownerOf(one.hostname);
  return (
    one.origin === other.origin ||
    (owner !== undefined && owner === ownerOf(other.hostname)) ||
    (from.state !== undefined && from.state === to.state)
  );
};

const changed = (headers: RelayHeaders, { drop, set }: RouteSettings): RelayHeaders => {
  const gone = new Set([...drop.headers, ...set.headers.map(([name]) => name)].map((name) => name.toLowerCase()));
  return [...headers.filter(([name]) => !gone.has(name.toLowerCase())), ...set.headers];
};

/** A byte is a character, so that every byte that is not changed stays. */
const bodyOf = (
  body: RelayRequest["body"],
  changes: Parameters<typeof edited>[1],
  condensed: CondensedBody | undefined,
): RelayRequest["body"] => {
  if (body === condensed?.of && condensed !== undefined) return filled(edited(condensed.text, changes), condensed);
  if (body === undefined || typeof body === "string") return body === undefined ? body : edited(body, changes);
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  return Buffer.from(edited(text, changes), "latin1");
};

/** The path with the route's model, where models stand in the path; undefined where nothing is set there. */
const modelSet = ({ plan, target }: MeantRequest, { set }: RouteSettings): string | "unclear" | undefined => {
  const model = set.body.find(([field]) => field === "model")?.[1];
  if (typeof model !== "string") return undefined;
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  const place = /^(.*\/models\/)[^/:]+(:\w+\/*)$/.exec(path);
  if (place === null) return plan.protocol.id === "google-gemini" || namesDeployment(path) ? "unclear" : undefined;
  return `${place[1]}${encodeURIComponent(model)}${place[2]}${end === -1 ? "" : target.slice(end)}`;
};

/** Azure's older paths name a deployment, which is a name of the operator's own: a model beside it in the body means nothing. */
const namesDeployment = (path: string): boolean => /\/deployments\//i.test(plainPath(path) ?? path);

/** Whether a route serves the requested model: a pattern's `*` stands for any text. */
const servesModel = ({ models }: RouteSettings, { provider }: RelayPlan): boolean =>
  models === undefined || models.some((pattern) => fits(pattern, provider.model ?? ""));

const fits = (pattern: string, model: string): boolean => {
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
