/**
 * Admits a request, routes it, and decides whether it is relayed, passed through or served by the page.
 */
import type { IncomingMessage } from "node:http";
import { Cause, Effect, Exit, type Scope } from "effect";
import { mayBeRelayed, type RelayPlan, recogniseBody } from "../adapters/relay/RelayPlan.ts";
import { headerOf, type RelayHeaders, type RelayRequest, readAddress } from "../adapters/relay/RelayTransport.ts";
import type { StreamProcessor } from "../runtime/StreamProcessor.ts";
import { type RunServing, serveRun } from "./attach/RunHandler.ts";
import { type StreamServing, serveStream, streamOf } from "./attach/StreamHandler.ts";
import { type KnownBody, readKnownBody, type UnknownBody } from "./body/BodyOutline.ts";
import { clientNameOf } from "./clients/Manner.ts";
import { Derived } from "./config/Derived.ts";
import type { GatewaySettings } from "./config/GatewayOptions.ts";
import type { UpstreamName } from "./config/Options.ts";
import type { UpstreamSettings } from "./config/UpstreamSettings.ts";
import { askAgain } from "./limits/Descriptors.ts";
import { type Connections, type Holder, holderOf } from "./limits/Shares.ts";
import type { Access } from "./log/AccessRecord.ts";
import { logDefect } from "./log/Defect.ts";
import { accessLine } from "./log/GatewayLog.ts";
import * as RequestMeasures from "./log/RequestMeasures.ts";
import { extractIds } from "./owners/NamedIds.ts";
import type { ResponseOwners } from "./owners/ResponseOwners.ts";
import { guardPass } from "./proxy/AccountPass.ts";
import type { ClientResponse } from "./proxy/ClientResponse.ts";
import { type Page, pageBodyBytesMax, serve } from "./proxy/PageHandler.ts";
import { pass, type Unrecovered } from "./proxy/PassHandler.ts";
import { type ProbeServing, probeOf, serveProbe } from "./proxy/Probes.ts";
import { relay } from "./proxy/RelayHandler.ts";
import { type BodyRefused, BodyStore, counted, hasBody } from "./proxy/RequestBody.ts";
import { headOf, type Routed } from "./RequestHead.ts";
import { routeRefusal } from "./routes/RouteWish.ts";
import { type RouteServing, type Routing, routingOf } from "./routes/Routing.ts";
import * as AccountGuard from "./routing/AccountGuard.ts";
import { type Address, addressOf } from "./routing/Address.ts";
import { type Admitted, forbiddenRefusal, hasPlainHost, type Refused, strangeHost } from "./routing/Admission.ts";
import { plainPath } from "./routing/Vendor.ts";
import { type Way, wayOf } from "./routing/Way.ts";
import { type Bytes, isEncoded } from "./upstream/ContentDecoding.ts";
import { requestHeadersOf } from "./upstream/Headers.ts";
import { secretsOf } from "./upstream/Secrets.ts";
import type { Upstream } from "./upstream/Upstream.ts";
import type { ReportedPaths } from "./wires/PassedStreams.ts";
import { mayBeReplayed, replayPlan } from "./wires/Replays.ts";
import { type PassedReason, passThroughReason } from "./wires/Wires.ts";

/** Services and settings that every request of the gateway uses. */
export interface RequestServing
  extends ProbeServing,
    Omit<RunServing, "routing">,
    Pick<RouteServing, "memory">,
    Pick<StreamServing, "cancels"> {
  readonly owners: ResponseOwners;
  readonly settings: GatewaySettings;
  readonly reach: (server: UpstreamSettings) => Upstream;
  readonly bodies: BodyStore;
  readonly connections: Connections;
  /** Paths of unrecovered streams that were logged already. */
  readonly reported: ReportedPaths;
  readonly page: Page["Service"] | undefined;
  /** Returns true after a shutdown has begun. */
  readonly draining: () => boolean;
  /** Completes when a shutdown begins. */
  readonly closing: Effect.Effect<void>;
}

/**
 * Serves one request to its end. Every request passes through here, so that no defect is silent (L11): it is logged, and the
 * client gets an error status or a broken connection.
 */
export const take = (
  request: IncomingMessage,
  client: ClientResponse,
  serving: RequestServing,
  address = addressOf(request.url ?? ""),
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.onExit(serveRequest(request, address, client, serving), (exit) => {
    const settled =
      Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
        ? client.settle
        : Effect.andThen(logDefect("a defect ended a request", exit.cause), client.fail);
    return Effect.ensuring(
      settled,
      Effect.suspend(() => recordAccess(client.access, serving.settings.accessLog)),
    );
  });

const recordAccess = (access: Access, isLogged: boolean): Effect.Effect<void> => {
  const { isOwn, record } = access;
  const line = isLogged ? accessLine({ isOwn }, record) : Effect.void;
  return isOwn ? line : Effect.andThen(RequestMeasures.count(record), line);
};

const serveRequest = (
  request: IncomingMessage,
  address: ReturnType<typeof addressOf>,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.suspend(() => {
    const { settings } = serving;
    const headers = requestHeadersOf(request);
    const method = request.method ?? "GET";
    client.access.recordRequest(method, request.url ?? "");
    client.access.addFacts({ client: clientNameOf({ headers }, settings.manner) });
    if (!hasPlainHost(headers)) return refuse(strangeHost, undefined, client, serving);
    const probe = probeOf(request.url ?? "");
    if (probe !== undefined) return serveProbe(probe, { method, headers }, client, serving);
    if ("refused" in address) return refuse(address.refused, undefined, client, serving);
    const head = headOf({ method, headers, address }, settings);
    const { admitted } = head;
    // A connection that was opened before the shutdown still gets its first request served.
    const isLate = serving.draining() && !serving.connections.isUnclaimed(request.socket);
    const refused = isLate ? closing : "reason" in admitted ? admitted : undefined;
    if (refused !== undefined || !isAdmitted(admitted))
      return refuse(refused ?? closing, errorFormatFor(address, headers, refused, serving), client, serving);
    const tenant = admitted.token?.name;
    client.access.addFacts({ token: tenant });
    const holder = holderOf(tenant, request.socket.remoteAddress, settings.tokens);
    if (!serving.connections.claim(request.socket, holder))
      return refuse(tooManyConnections, wayOf(address, headers, settings).upstream, client, serving);
    serving.meter.admitted(tenant);
    const stream = streamOf(address);
    const { target } = address;
    if (stream !== undefined) return serveStream(stream, { method, headers, target, tenant }, client, serving);
    if (address.own) client.access.markOwn();
    if (address.own) return serveOwn(request, address, { admitted, headers, holder }, client, serving);
    const ofRoot = /^(?:GET|HEAD)$/.test(method) ? rootFiles.get(pathOf(target)) : undefined;
    if (ofRoot === "nothing") return refuse(nothingThere, undefined, client, serving);
    const { page, routed, upstream } = head.destination(admitted);
    client.access.addFacts({ upstream });
    if (page !== undefined) return refuse(page, undefined, client, serving);
    if (ofRoot === "pointer") return servePointer(client, serving);
    if ("refused" in routed) return refuse(routed.refused, routed.upstream, client, serving);
    return serveByVerdict(request, { ...routed, holder, isNaming: routed.verdict._tag === "Named" }, client, serving);
  });

/** Serves a request after the account guard has judged its path: refuses it, passes it through, or reads it as a possible model request. */
const serveByVerdict = (
  request: IncomingMessage,
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void, never, StreamProcessor> => {
  const { isNaming, method, server, tenant, upstream, verdict } = asked;
  if (verdict._tag === "Refused") return refuse(AccountGuard.refusalOf(server, verdict.why), upstream, client, serving);
  if (verdict._tag === "Stored")
    return Effect.flatMap(serving.owners.ownerOf(verdict.id, tenant), (owner) =>
      owner === "own" || (owner === "unknown" && verdict.isListed)
        ? passThrough(request, asked, client, serving)
        : refuse(AccountGuard.storedRefusal("Response"), upstream, client, serving),
    );
  if (!isNaming && !mayBeRelayed(method, asked.url, asked.headers) && !mayBeKept(request, asked, serving.settings))
    return passThrough(request, asked, client, serving);
  return Effect.scoped(serveModelRequest(request, asked, client, serving)).pipe(
    Effect.catchTag("BodyRefused", (error) => refuseBody(error, upstream, client, serving)),
  );
};

/** Recognises a replayable request: a GET without a body, or a POST whose declared length can be buffered. Others pass through. */
const mayBeKept = (
  request: IncomingMessage,
  { method, url }: Pick<RoutedRequest, "method" | "url">,
  { limits }: Pick<GatewaySettings, "limits">,
): boolean => {
  if (!mayBeReplayed(method, url)) return false;
  const length = request.headers["content-length"];
  if (method === "GET") return !hasBody(request);
  return length !== undefined && Number(length) <= limits.maxBodyBytes;
};

/** The root, and files that browsers and crawlers request from every server. These requests reach no provider. */
const rootFiles: ReadonlyMap<string, "pointer" | "nothing"> = new Map([
  ["/", "pointer"],
  ["/favicon.ico", "nothing"],
  ["/robots.txt", "nothing"],
]);

const pathOf = (target: string): string => {
  const [path = ""] = target.split(/[?#]/, 1);
  return (plainPath(path) ?? path).toLowerCase();
};

/** Identifies the gateway to a program. A browser that opens this path was refused earlier, with a message that names the page. */
const servePointer = (client: ClientResponse, { page }: RequestServing): Effect.Effect<void> =>
  Effect.suspend(() => {
    client.access.markOwn();
    client.answer(200, { gateway: "stream-recovery", ...(page === undefined ? {} : { page: "recovery/" }) }, []);
    return client.end;
  });

const nothingThere: Refused = { status: 404, reason: "not_found", message: "This path does not exist." };

/** Selects the provider's error format for an admitted client whose upgrade or method is not supported. */
const errorFormatFor = (
  address: Address,
  headers: RelayHeaders,
  refused: Refused | undefined,
  { settings }: RequestServing,
): UpstreamName | undefined =>
  refused?.status === 426 || refused?.status === 405 || refused?.status === 501
    ? wayOf(address, headers, settings).upstream
    : undefined;

interface RoutedRequest extends Routed {
  readonly holder: Holder;
  /** True if the body may name a stored response, which belongs to the token that created it. */
  readonly isNaming: boolean;
}

const isAdmitted = (admitted: Admitted | Refused): admitted is Admitted => "token" in admitted;

/** Serves a probable model request, and keeps its body until the run has ended. */
const serveModelRequest = (
  request: IncomingMessage,
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void, BodyRefused, StreamProcessor | Scope.Scope> => {
  if (serving.settings.requireStore && serving.store().writes === "failing")
    return refuse(storeAway, asked.upstream, client, serving);
  return Effect.flatMap(serving.bodies.read(request, client.invite, asked.holder), (body) =>
    Effect.flatMap(routeBody(body, asked, serving), (routing) =>
      typeof routing === "string"
        ? passUnknown(request, { body, why: routing }, asked, client, serving)
        : "message" in routing
          ? refuse(routing, asked.upstream, client, serving)
          : serveRouting(routing, asked, client, serving),
    ),
  );
};

/** Recognises and routes a request. The parsed body is released afterwards, since the run may take minutes. */
const routeBody = (
  body: Bytes,
  asked: RoutedRequest,
  serving: RequestServing,
): Effect.Effect<Routing | Refused | UnknownBody, BodyRefused, Scope.Scope> => {
  const { headers, method, target, tenant, token, url, wish } = asked;
  const keeps = canContinue(asked, serving.settings);
  const recognising = recognise({ method, url, headers, body, tenant }, { ...asked, keeps }, serving);
  const routed = Effect.flatMap(
    recognising,
    (found): Effect.Effect<Routing | Refused | UnknownBody> =>
      typeof found === "string" || "message" in found
        ? Effect.succeed(found)
        : routingOf(
            { plan: found.plan, body: found.body, target, token, wish, way: limitContinuation(asked, found.body) },
            serving,
          ),
  );
  // A decoded copy is kept only while a request that continues the response may be built from it.
  return isEncoded(encodingOf(asked)) && !keeps ? Effect.scoped(routed) : routed;
};

const encodingOf = ({ headers }: Pick<RelayRequest, "headers">): string => headerOf(headers, "content-encoding") ?? "";

/** Forwards a request whose body matches no protocol or is too large to be read. */
const passUnknown = (
  request: IncomingMessage,
  { body, why }: { readonly body: Bytes; readonly why: UnknownBody },
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void> => {
  const { method, outgoing, upstream, wish } = asked;
  const isUnread = why === "unread";
  const passed = Effect.suspend(() => {
    if (isElsewhere(asked)) return refuse(routeRefusal(wish.pinned ?? ""), upstream, client, serving);
    serving.meter.count("passed_through");
    const sent = { method, ...outgoing(asked), body: hasBody(request) ? body : undefined, length: undefined };
    const unrecovered = unrecoveredOf(asked, serving, isUnread ? "unread_body" : undefined);
    return pass(sent, upstream, client, upstreamForPass(asked, serving), unrecovered);
  });
  return isUnread ? Effect.andThen(logUnread(client), passed) : passed;
};

const serveRouting = (
  routing: Routing,
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void, never, StreamProcessor> => {
  serving.meter.count("relayed");
  const options = asked.group === undefined ? serving.options : { ...serving.options, ...groupOf(asked) };
  const run = { ...serving, options, routing };
  // An opaque response (a document, for example a token count) can be requested again for free, so no client attaches to it.
  const serve = routing.plan.isOpaque ? relay : serveRun;
  const served = serve(routing.plan, asked, client, run);
  return routing.left_out.length === 0 ? served : Effect.andThen(logSkippedRoutes(routing), served);
};

/** True if the request is pinned to another route, which only a model request can take. */
const isElsewhere = ({ server, wish }: RoutedRequest): boolean =>
  wish.pinned !== undefined && wish.pinned !== server.name;

const logSkippedRoutes = ({ left_out }: Routing): Effect.Effect<void> =>
  Effect.logDebug(`routes cannot serve a request: ${left_out.map(({ id, reason }) => `${id}: ${reason}`).join("; ")}`);

/**
 * Disables automatic continuation for a body that must not be parsed. The continuing request is built from the whole body, and
 * parsing one of millions of objects would take gigabytes.
 */
const limitContinuation = (way: Way, { mayBeParsed }: KnownBody): Way =>
  mayBeParsed ? way : { ...way, continueText: "ask" };

/** True if the text of a response may be continued without asking, on any of its routes. */
const canContinue = ({ continueText }: Pick<Way, "continueText">, settings: GatewaySettings): boolean =>
  continuesByDefault.of(settings) ? continueText !== "ask" : continueText === "auto";

/** True if a client that states no preference may get a continued response. */
const continuesByDefault = new Derived(({ continueText, servers }: GatewaySettings): boolean =>
  [continueText, ...[...servers.values()].map((server) => server.continueText)].includes("auto"),
);

/**
 * Recognises a request by its decoded body. A compressed body is decoded into a copy, and the original is sent.
 *
 * @param keeps true if the decoded copy is kept for the whole run, because a continuation of the response may be built from it
 */
const recognise = (
  request: RelayRequest & { readonly body: Bytes },
  {
    holder,
    isNaming,
    keeps,
    upstream,
  }: Pick<RoutedRequest, "holder" | "isNaming" | "upstream"> & { readonly keeps: boolean },
  { bodies, owners }: RequestServing,
): Effect.Effect<Recognised | Refused | UnknownBody, BodyRefused, Scope.Scope> => {
  const sent = request.body;
  if (request.method === "GET") return Effect.succeed(recogniseBodiless(request, upstream));
  const unknown = <Why extends UnknownBody>(why: Why) => Effect.succeed(isNaming ? AccountGuard.unreadBody : why);
  const encoding = encodingOf(request);
  const decoded = isEncoded(encoding) ? bodies.decode(encoding, sent, holder) : Effect.succeed(sent);
  return Effect.flatMap(decoded, (plain): Effect.Effect<Recognised | Refused | UnknownBody> => {
    if (plain === undefined) return unknown("not_an_object");
    return Effect.flatMap(readKnownBody(plain), (body): Effect.Effect<Recognised | Refused | UnknownBody> => {
      if (typeof body === "string") return unknown(body);
      const plan = recogniseBody(request, body.json) ?? replayPlan(request, upstream, body.json);
      const found =
        plan === undefined ? "not_an_object" : { plan: keeps && plain !== sent ? { ...plan, plain } : plan, body };
      if (!isNaming) return Effect.succeed(found);
      return Effect.map(refuseForeign(plain, request, owners), (refused) => refused ?? found);
    });
  });
};

/** Refuses a body that names a stored response of another token, or that cannot be checked for one. */
const refuseForeign = Effect.fnUntraced(function* (
  plain: Bytes,
  { tenant }: Pick<RelayRequest, "tenant">,
  owners: ResponseOwners,
): Effect.fn.Return<Refused | undefined> {
  const named = yield* extractIds(plain);
  if (named === undefined) return AccountGuard.unreadBody;
  for (const { id, what } of named)
    if ((yield* owners.ownerOf(id, tenant)) === "other") return AccountGuard.storedRefusal(what);
  return undefined;
});

const recogniseBodiless = (request: RelayRequest & { readonly body: Bytes }, upstream: UpstreamName) => {
  const plan = replayPlan({ ...request, body: undefined }, upstream, undefined);
  const body: KnownBody = { plain: request.body, json: {}, isOutline: false, mayBeParsed: true };
  return plan === undefined ? "not_an_object" : { plan, body };
};

interface Recognised {
  readonly plan: RelayPlan;
  readonly body: KnownBody;
}

/** Logs that a request to a model's address passes through without recovery. */
const logUnread = ({ access }: ClientResponse): Effect.Effect<void> =>
  Effect.suspend(() => {
    access.addFacts({ unread: true });
    return Effect.logWarning(
      "a request passes through without recovery: its body without the conversation exceeds the maximum that the gateway reads",
    );
  });

const passThrough = (
  request: IncomingMessage,
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void> => {
  const { maxPassedBytes } = serving.settings.limits;
  if (isElsewhere(asked)) return refuse(routeRefusal(asked.wish.pinned ?? ""), asked.upstream, client, serving);
  const length = request.headers["content-length"];
  if (Number(length ?? 0) > maxPassedBytes) return refuse(tooLong, asked.upstream, client, serving);
  serving.meter.count("passed_through");
  client.invite();
  const body = hasBody(request) ? counted(request, maxPassedBytes) : undefined;
  return pass(
    { method: asked.method, ...asked.outgoing(asked), body, length: body === undefined ? undefined : length },
    asked.upstream,
    client,
    upstreamForPass(asked, serving),
    unrecoveredOf(asked, serving),
  );
};

/**
 * Describes a POST that passes through, in case its response streams.
 *
 * @param reason derived from the address by default
 */
const unrecoveredOf = (
  { headers, method, target, url }: RoutedRequest,
  { reported }: Pick<RequestServing, "reported">,
  reason?: PassedReason,
): Unrecovered | undefined => {
  if (method !== "POST") return undefined;
  const path = (readAddress(url)?.pathname ?? "").replace(/\/+$/, "");
  const found = reason ?? (mayBeRelayed(method, url, headers) ? "unknown_body" : passThroughReason(path));
  return { reason: found, target, reported };
};

/**
 * Returns the upstream of a request that is not a run. The request is sent at once regardless of its path's state, and its failure does
 * not count against the path. A response proves that the path is reachable.
 */
const upstreamForPass = (
  { isNaming, server, tenant }: RoutedRequest,
  { owners, reach, watch }: RequestServing,
): Upstream => {
  const secrets = secretsOf(server);
  const keep = isNaming ? (id: string) => owners.keep(tenant, id) : undefined;
  const upstream = secrets === undefined ? reach(server) : guardPass(reach(server), secrets, keep);
  return {
    ...upstream,
    pass: async (request, signal) => {
      const response = await upstream.pass(request, signal);
      watch.onResponse(upstream.pathOf(request.url).id);
      return response;
    },
  };
};

/**
 * Prefixes a group with its token's name, because clients with different tokens may share the upstream's credential. The separator is
 * unambiguous, because a token's name has no space.
 */
const groupOf = ({ group, tenant }: Pick<RoutedRequest, "group" | "tenant">): Pick<RunServing["options"], "group"> =>
  group === undefined ? {} : { group: tenant === undefined ? group : `${tenant} ${group}` };

const pageBodies = new BodyStore({ maxBodyBytes: pageBodyBytesMax, maxBodiesBytes: 64 * pageBodyBytesMax });

const serveOwn = (
  request: IncomingMessage,
  { target }: Address,
  {
    admitted,
    headers,
    holder,
  }: Pick<RelayRequest, "headers"> & {
    readonly admitted: Admitted;
    readonly holder: Holder;
  },
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const barred = forbiddenRefusal(admitted.token, { own: target.startsWith("/metrics") ? "metrics" : "page" });
    if (barred !== undefined) return yield* refuse(barred, undefined, client, serving);
    const body = hasBody(request) ? yield* pageBodies.read(request, client.invite, holder) : undefined;
    yield* serve(request, { headers, target, body }, client, serving);
  }).pipe(
    Effect.scoped,
    Effect.catchTag("BodyRefused", (error) => refuseBody(error, undefined, client, serving)),
  );

const refuse = (
  refused: Refused,
  upstream: UpstreamName | undefined,
  client: ClientResponse,
  { meter }: RequestServing,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    meter.count("refused");
    client.refuse(refused, upstream);
    return client.end;
  });

const refuseBody = (
  { reason }: BodyRefused,
  upstream: UpstreamName | undefined,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void> =>
  reason === "broken" ? client.break : refuse(refusedBodies[reason], upstream, client, serving);

const storeAway: Refused = {
  status: 503,
  reason: "store_away",
  message: "The gateway's store of runs does not accept writes (--require-store); try again.",
  headers: askAgain,
};
const closing: Refused = { status: 503, reason: "closing", message: "The gateway is shutting down." };
const tooLong: Refused = {
  status: 413,
  reason: "body",
  message: "The request's body is longer than the gateway accepts (--max-body-bytes).",
};
const busy: Refused = {
  status: 503,
  reason: "busy",
  message: "The gateway's memory for request bodies is full; try again.",
  headers: askAgain,
};
const shared: Refused = {
  status: 429,
  reason: "share",
  message: "This client's request bodies use its whole share of the gateway's memory; try again.",
  headers: askAgain,
};
const slow: Refused = {
  status: 408,
  reason: "slow",
  message: "The request's body did not arrive in time; send it again.",
  headers: askAgain,
};
const refusedBodies: Readonly<Record<Exclude<BodyRefused["reason"], "broken">, Refused>> = {
  too_long: tooLong,
  busy,
  share: shared,
  slow,
};
const tooManyConnections: Refused = {
  status: 429,
  reason: "share",
  message: "This client uses its whole share of the gateway's connections; try again when one is free.",
  headers: [...askAgain, ["connection", "close"]],
};
