/**
 * Takes a request in: admits it, finds where it goes, and says whether it is relayed, passed through or the page's.
 */
import type { IncomingMessage } from "node:http";
import { Cause, Effect, Exit, Scope } from "effect";
import { mayBeRelayed, type RelayPlan, recogniseBody } from "../adapters/relay/RelayPlan.ts";
import { headerOf, type RelayHeaders, type RelayRequest } from "../adapters/relay/RelayTransport.ts";
import type { StreamProcessor } from "../runtime/StreamProcessor.ts";
import { attachWishOf } from "./attach/AttachWish.ts";
import { type AttachingRequest, type RunServing, serveRun } from "./attach/RunHandler.ts";
import { type StreamServing, serveStream, streamOf } from "./attach/StreamHandler.ts";
import { type KnownBody, knownBody, type UnknownBody } from "./body/BodyOutline.ts";
import { clientNameOf } from "./clients/Manner.ts";
import { Derived } from "./config/Derived.ts";
import type { GatewaySettings, UpstreamName } from "./config/GatewayOptions.ts";
import type { UpstreamSettings } from "./config/UpstreamSettings.ts";
import { askAgain } from "./limits/Descriptors.ts";
import { type Connections, type Holder, holderOf } from "./limits/Shares.ts";
import type { Access } from "./log/AccessRecord.ts";
import { logged } from "./log/Defect.ts";
import { accessLine } from "./log/GatewayLog.ts";
import * as RequestMeasures from "./log/RequestMeasures.ts";
import type { ClientResponse } from "./proxy/ClientResponse.ts";
import { type Page, pageBodyBytesMax, serve } from "./proxy/PageHandler.ts";
import { pass } from "./proxy/PassHandler.ts";
import { type ProbeServing, probeOf, serveProbe } from "./proxy/Probes.ts";
import { type BodyRefused, BodyStore, counted, hasBody } from "./proxy/RequestBody.ts";
import { noSuchRoute, type RouteWish, wishOf } from "./routes/RouteWish.ts";
import { type RouteServing, type Routing, routingOf } from "./routes/Routing.ts";
import { type Address, addressOf } from "./routing/Address.ts";
import { type Admitted, admit, browsed, forbidden, type Refused } from "./routing/Admission.ts";
import { type Way, wayOf } from "./routing/Way.ts";
import { type Bytes, isEncoded } from "./upstream/ContentDecoding.ts";
import { pairsOf } from "./upstream/Headers.ts";
import type { Upstream } from "./upstream/Upstream.ts";

/** What serving a request needs of the gateway. */
export interface RequestServing
  extends ProbeServing,
    Omit<RunServing, "routing">,
    Pick<RouteServing, "memory">,
    Pick<StreamServing, "cancels"> {
  readonly settings: GatewaySettings;
  /** The way to an upstream. */
  readonly reach: (server: UpstreamSettings) => Upstream;
  readonly bodies: BodyStore;
  readonly connections: Connections;
  readonly page: Page["Service"] | undefined;
  /** A shutdown has begun. */
  readonly draining: () => boolean;
  /** Done when a shutdown begins. */
  readonly closing: Effect.Effect<void>;
}

/**
 * Serves one request to its end; whatever becomes of it stands in its response. Every request goes through here, so that no
 * defect behind one is silence (L11): it is logged, and the client gets a status or a broken connection.
 */
export const take = (
  request: IncomingMessage,
  client: ClientResponse,
  serving: RequestServing,
  address = addressOf(request.url ?? ""),
): Effect.Effect<void, never, StreamProcessor> =>
  served(request, address, client, serving).pipe(
    Effect.onExit((exit) =>
      Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
        ? client.settle
        : Effect.andThen(logged("a defect ended a request", exit.cause), client.fail),
    ),
    Effect.ensuring(Effect.suspend(() => accounted(client.access, serving.settings.accessLog))),
  );

const accounted = (access: Access, isLogged: boolean): Effect.Effect<void> => {
  const { own, record } = access;
  const line = isLogged ? accessLine({ own }, record) : Effect.void;
  return own ? line : Effect.andThen(RequestMeasures.count(record), line);
};

const served = (
  request: IncomingMessage,
  address: ReturnType<typeof addressOf>,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.suspend(() => {
    const headers = pairsOf(request.rawHeaders);
    const method = request.method ?? "GET";
    client.access.asked(method, request.url ?? "");
    client.access.learned({ client: clientNameOf({ headers }, serving.settings.manner) });
    const probe = probeOf(request.url ?? "");
    if (probe !== undefined) return serveProbe(probe, { method, headers }, client, serving);
    if ("refused" in address) return refuse(address.refused, undefined, client, serving);
    const admitted = admit({ method, headers, token: address.token }, serving.settings);
    const refused = serving.draining() ? closing : "reason" in admitted ? admitted : undefined;
    if (refused !== undefined || !isAdmitted(admitted))
      return refuse(refused ?? closing, spokenBy(address, headers, refused, serving), client, serving);
    client.access.learned({ token: admitted.token?.name });
    const holder = holderOf(admitted.token?.name, request.socket.remoteAddress, serving.settings.tokens);
    if (!serving.connections.claim(request.socket, holder))
      return refuse(tooManyConnections, wayOf(address, headers, serving.settings).upstream, client, serving);
    serving.meter.admitted(admitted.token?.name);
    const stream = streamOf(address);
    if (stream !== undefined) {
      const asked = { method, headers, target: address.target, tenant: admitted.token?.name };
      return serveStream(stream, asked, client, serving);
    }
    if (address.own) client.access.isOwn();
    if (address.own) return own(request, address, { admitted, headers, holder }, client, serving);
    const way = wayOf(address, headers, serving.settings);
    client.access.learned({ upstream: "server" in way ? way.server.name : way.upstream });
    const page = browsed({ headers }, address.target);
    if (page !== undefined) return refuse(page, undefined, client, serving);
    if ("refused" in way) return refuse(way.refused, way.upstream, client, serving);
    const barred = forbidden(admitted.token, { upstream: way.server.name });
    if (barred !== undefined) return refuse(barred, way.upstream, client, serving);
    const wish = wishOf(headers);
    if ("reason" in wish) return refuse(wish, way.upstream, client, serving);
    const attach = attachWishOf(headers, serving.settings, way.server);
    if ("reason" in attach) return refuse(attach, way.upstream, client, serving);
    const { target } = address;
    const asked: RoutedRequest = {
      method,
      tenant: admitted.token?.name,
      holder,
      target,
      token: admitted.token,
      wish,
      attach,
      ...way,
    };
    if (!mayBeRelayed(method, way.url, way.headers)) return through(request, asked, client, serving);
    return Effect.scoped(modelRequest(request, asked, client, serving)).pipe(
      Effect.catchTag("BodyRefused", (error) => refuseBody(error, way.upstream, client, serving)),
    );
  });

/** A client that was admitted reads in its provider's words that its upgrade or method is not served. */
const spokenBy = (
  address: Address,
  headers: RelayHeaders,
  refused: Refused | undefined,
  { settings }: RequestServing,
): UpstreamName | undefined =>
  refused?.status === 426 || refused?.status === 405 || refused?.status === 501
    ? wayOf(address, headers, settings).upstream
    : undefined;

interface RoutedRequest
  extends Way,
    Pick<AttachingRequest, "attach">,
    Pick<RelayRequest, "method" | "tenant">,
    Admitted {
  /** The provider's own path and query. */
  readonly target: string;
  readonly holder: Holder;
  readonly wish: RouteWish;
}

const isAdmitted = (admitted: Admitted | Refused): admitted is Admitted => "token" in admitted;

/** A request that looks like one to a model: its body is kept until its run has ended. */
const modelRequest = Effect.fnUntraced(function* (
  request: IncomingMessage,
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.fn.Return<void, BodyRefused, StreamProcessor | Scope.Scope> {
  const { headers, method, outgoing, server, target, tenant, token, upstream, url, wish } = asked;
  const body = yield* serving.bodies.read(request, client.invite, asked.holder);
  // A copy of the body is kept for as long as a request that goes on with the response may have to be made of it.
  const copy = yield* Scope.fork(yield* Effect.scope);
  const keeps = mayGoOn(asked, serving.settings);
  const recognising = recognised({ method, url, headers, body, tenant }, asked.holder, keeps, serving);
  // What is known of the body is let go here: a run may take minutes.
  const routed = Effect.flatMap(
    recognising,
    (found): Effect.Effect<Routing | Refused | UnknownBody> =>
      typeof found === "string"
        ? Effect.succeed(found)
        : routingOf(
            { plan: found.plan, body: found.body, target, token, wish, way: followed(asked, found.body) },
            serving,
          ),
  );
  const routing = yield* Scope.provide(routed, copy);
  if (!keeps) yield* Scope.close(copy, Exit.void);
  if (typeof routing === "string") {
    if (routing === "unread") yield* unread(client);
    if (isElsewhere(asked)) return yield* refuse(noSuchRoute(asked.wish.pinned ?? ""), upstream, client, serving);
    serving.meter.count("passed_through");
    const sent = { method, ...outgoing(asked), body, length: undefined };
    return yield* pass(sent, upstream, client, passing(server, serving));
  }
  if ("message" in routing) return yield* refuse(routing, upstream, client, serving);
  serving.meter.count("relayed");
  yield* leftOut(routing);
  const options = asked.group === undefined ? serving.options : { ...serving.options, ...groupOf(asked) };
  yield* serveRun(routing.plan, asked, client, { ...serving, options, routing });
});

/** A request that names a route which only a model request has. */
const isElsewhere = ({ server, wish }: RoutedRequest): boolean =>
  wish.pinned !== undefined && wish.pinned !== server.name;

/** Says why routes do not take a request, to an operator who looks for it. */
const leftOut = ({ left_out }: Routing): Effect.Effect<void> =>
  left_out.length === 0
    ? Effect.void
    : Effect.logDebug(
        `routes do not take a request: ${left_out.map(({ id, reason }) => `${id}: ${reason}`).join("; ")}`,
      );

/** The request that goes on with a response is made of the whole body: one of millions of objects would be gigabytes. */
const followed = (way: Way, { mayBeParsed }: KnownBody): Way => (mayBeParsed ? way : { ...way, continueText: "ask" });

/** Whether shown text of a request's response may go on by itself, by whichever route it comes. */
const mayGoOn = ({ continueText }: Pick<Way, "continueText">, settings: GatewaySettings): boolean =>
  goesOn.of(settings) ? continueText !== "ask" : continueText === "auto";

/** Whether it may where its client says nothing. */
const goesOn = new Derived(({ continueText, servers }: GatewaySettings): boolean =>
  [continueText, ...[...servers.values()].map((server) => server.continueText)].includes("auto"),
);

/**
 * Clients that compress a body are recognised by a copy of it; what is sent is what they sent.
 *
 * @param keeps the plan keeps the copy, because its body may have to be changed
 */
const recognised = Effect.fnUntraced(function* (
  request: RelayRequest & { readonly body: Bytes },
  holder: Holder,
  keeps: boolean,
  { bodies }: RequestServing,
): Effect.fn.Return<Recognised | UnknownBody, BodyRefused, Scope.Scope> {
  const sent = request.body;
  const encoding = headerOf(request.headers, "content-encoding") ?? "";
  const plain = isEncoded(encoding) ? yield* bodies.decoded(encoding, sent, holder) : sent;
  if (plain === undefined) return "not_an_object";
  const body = yield* knownBody(plain);
  if (typeof body === "string") return body;
  const plan = recogniseBody(request, body.json);
  if (plan === undefined) return "not_an_object";
  return { plan: keeps && plain !== sent ? { ...plan, plain } : plan, body };
});

/** A model request, and what is known of its body. */
interface Recognised {
  readonly plan: RelayPlan;
  readonly body: KnownBody;
}

/** Says that a request goes without recovery although its address is a model's. */
const unread = ({ access }: ClientResponse): Effect.Effect<void> =>
  Effect.suspend(() => {
    access.learned({ unread: true });
    return Effect.logWarning("a request passes through: its body has more beside its conversation than is read");
  });

const through = (
  request: IncomingMessage,
  asked: RoutedRequest,
  client: ClientResponse,
  serving: RequestServing,
): Effect.Effect<void> => {
  const { maxPassedBytes } = serving.settings.limits;
  if (isElsewhere(asked)) return refuse(noSuchRoute(asked.wish.pinned ?? ""), asked.upstream, client, serving);
  const length = request.headers["content-length"];
  if (Number(length ?? 0) > maxPassedBytes) return refuse(tooLong, asked.upstream, client, serving);
  serving.meter.count("passed_through");
  client.invite();
  const body = hasBody(request) ? counted(request, maxPassedBytes) : undefined;
  return pass(
    { method: asked.method, ...asked.outgoing(asked), body, length: body === undefined ? undefined : length },
    asked.upstream,
    client,
    passing(asked.server, serving),
  );
};

/**
 * The way of a request that is no run: it goes at once, whatever is known of its path, and its failure says nothing of it. A response
 * proves that its path was reached.
 */
const passing = (server: UpstreamSettings, { reach, watch }: RequestServing): Upstream => {
  const upstream = reach(server);
  return {
    ...upstream,
    pass: async (request, signal) => {
      const response = await upstream.pass(request, signal);
      watch.answered(upstream.pathOf(request.url).id);
      return response;
    },
  };
};

/** Clients of different tokens may share the upstream's credential: their groups stand apart all the same. A token's name has no blank. */
const groupOf = ({ group, tenant }: Pick<RoutedRequest, "group" | "tenant">): Pick<RunServing["options"], "group"> =>
  group === undefined ? {} : { group: tenant === undefined ? group : `${tenant} ${group}` };

const pageBodies = new BodyStore({ maxBodyBytes: pageBodyBytesMax, maxBodiesBytes: 64 * pageBodyBytesMax });

const own = (
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
    const barred = forbidden(admitted.token, { own: target.startsWith("/metrics") ? "metrics" : "page" });
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

const closing: Refused = { status: 503, reason: "closing", message: "The gateway is shutting down." };
const tooLong: Refused = {
  status: 413,
  reason: "body",
  message: "The request's body is longer than the gateway takes (--max-body-bytes).",
};
const busy: Refused = {
  status: 503,
  reason: "busy",
  message: "The gateway holds as many request bodies as it may; try again.",
  headers: askAgain,
};
const shared: Refused = {
  status: 429,
  reason: "share",
  message: "This client's request bodies take its whole share of the gateway's memory; try again.",
  headers: askAgain,
};
const slow: Refused = {
  status: 408,
  reason: "slow",
  message: "The request's body came more slowly than the gateway waits for; send it again.",
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
  message: "This client has its whole share of the gateway's connections; try again once one of them is free.",
  headers: [...askAgain, ["connection", "close"]],
};
