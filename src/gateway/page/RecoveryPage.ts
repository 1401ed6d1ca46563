/**
 * Serves `/recovery/` (the page), `/recovery/api/…` and `/metrics`.
 */

import { readFileSync } from "node:fs";
// Namespace import, because Bun does not export `stripTypeScriptTypes`: a named import of it would end every command in Bun.
import * as modules from "node:module";
import { Clock, type Context, Effect, Layer, Option, Result } from "effect";
import { HttpRouter, HttpServer } from "effect/http";
import { HttpApiBuilder } from "effect/http-api";
import type { Prices } from "../../domain/Prices.ts";
import { type PathStatus, Paths } from "../../paths/Paths.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { TokenPrices } from "../../runtime/contract/TokenPrices.ts";
import type { Absence } from "../../story/AbsenceWords.ts";
import { formatRelative } from "../../story/Times.ts";
import { Api } from "../api/Api.ts";
import * as Feed from "../api/Feed.ts";
import * as Handlers from "../api/Handlers.ts";
import * as Metrics from "../api/Metrics.ts";
import { PathBoard } from "../api/PathBoard.ts";
import { isDisturbed } from "../api/PathList.ts";
import * as RunSearch from "../api/RunSearch.ts";
import * as SharedMetrics from "../api/SharedMetrics.ts";
import { StoreHealth, type StoreState } from "../api/StoreHealth.ts";
import * as Totals from "../api/Totals.ts";
import { Traffic } from "../api/Traffic.ts";
import { Page } from "../proxy/PageHandler.ts";
import { WorkerSockets } from "../workers/WorkerSockets.ts";
import { Html, html } from "./Html.ts";
import { overview } from "./Overview.ts";
import { runDocument } from "./RunDocument.ts";
import { runView } from "./RunPicture.ts";
import { parseQuery, searchOf } from "./SearchForm.ts";
import { style } from "./style/Style.ts";

/** Runs per page of the list. */
export const pageRuns = 40;

/** Maximum runs with an open question that are read, newest first. The page shows the most urgent of them. */
const askingMax = 100;

/** Serves the page for this recorder's runs. In a gateway it also shows the current traffic. */
export const layer: Layer.Layer<Page, never, RunRecorder> = Layer.effect(
  Page,
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    const traffic = yield* Effect.serviceOption(Traffic);
    const context = yield* Effect.context<never>();
    const paths = yield* PathBoard.here;
    const prices = yield* TokenPrices;
    const totals = yield* Totals.make(recorder, prices);
    const script = browserScript();
    const api = HttpRouter.toWebHandler(
      HttpApiBuilder.layer(Api, { openapiPath: "/recovery/api/openapi.json" }).pipe(
        Layer.provide(Handlers.layer(totals)),
        Layer.provide(Layer.succeedContext(context)),
        Layer.provide(Layer.succeed(RunRecorder, recorder)),
        Layer.provide(HttpServer.layerServices),
      ),
      { disableLogger: true },
    );
    yield* Effect.addFinalizer(() => Effect.promise(api.dispose));
    const list = paths?.list ?? Effect.succeed([]);
    const metrics = yield* renderMetrics(traffic);
    const sources: PageSources = {
      ...{ prices, recorder, traffic, context, totals, script, list, metrics },
      api: api.handler,
    };
    return { handle: (request) => handle(sources, request) };
  }),
);

/** The services and data that the page uses. */
interface PageSources {
  readonly prices: Prices;
  readonly recorder: RunRecorder["Service"];
  readonly traffic: Option.Option<Traffic["Service"]>;
  readonly context: Context.Context<never>;
  readonly totals: Effect.Effect<Totals.Totals, RecorderError>;
  readonly script: string;
  /** Lists the paths that this process and its sibling workers know. */
  readonly list: Effect.Effect<ReadonlyArray<PathStatus>>;
  readonly metrics: Effect.Effect<string>;
  readonly api: (request: Request) => Promise<Response>;
}

const handle = (sources: PageSources, request: Request): Effect.Effect<Response | undefined> => {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname.startsWith("/recovery/api/") && pathname !== "/recovery/api/events") return fromApi(sources, request);
  const serve = views[pathname];
  if (serve === undefined) return Effect.undefined;
  if (request.method !== "GET" && request.method !== "HEAD") {
    return Effect.succeed(
      respond("This address accepts only GET and HEAD.", { status: 405, type: plain, more: { allow: "GET, HEAD" } }),
    );
  }
  const response = Effect.catchTag(serve(sources, searchParams), "RecorderError", () =>
    Effect.succeed(respondUnreadable()),
  );
  return request.method === "HEAD" ? Effect.flatMap(response, headOf) : response;
};

/** Returns the response to a HEAD request: the same head without a body. The body is cancelled, which stops a feed. */
const headOf = ({ body, headers, status }: Response): Effect.Effect<Response> =>
  Effect.as(
    Effect.promise(async () => body?.cancel()),
    new Response(null, { status, headers }),
  );

type View = (sources: PageSources, query: URLSearchParams) => Effect.Effect<Response, RecorderError>;

const plain = "text/plain; charset=utf-8";
const document = "text/html; charset=utf-8";

const views: Readonly<Record<string, View>> = {
  // The location is relative, because a prefix with a token may precede the path.
  "/recovery": () => Effect.succeed(respond("", { status: 308, type: plain, more: { location: "recovery/" } })),
  "/recovery/": (sources, query) => {
    const run = query.get("run");
    return run === null ? overviewPage(sources, query) : runPage(sources, run);
  },
  "/recovery/page.css": () => Effect.succeed(respond(style, { type: "text/css; charset=utf-8" })),
  "/recovery/page.js": ({ script }) => Effect.succeed(respond(script, { type: "text/javascript; charset=utf-8" })),
  "/recovery/picture.html": (sources, query) => pictureFile(sources, query.get("run") ?? ""),
  "/recovery/api/events": ({ context, list, recorder, traffic }, query) => {
    const feed = Feed.make(recorder, traffic, context, { list, shown: query.getAll("run") });
    // The gateway itself adds the headers that tell proxies not to buffer an event stream.
    return Effect.succeed(respond(feed, { type: "text/event-stream" }));
  },
  "/metrics": ({ metrics }) => Effect.map(metrics, (text) => respond(text, { type: Metrics.contentType })),
};

interface Head {
  readonly status?: number;
  readonly type: string;
  readonly more?: Readonly<Record<string, string>>;
}

/** Content Security Policy (CSP Level 3): the page may use only its own script, style and API. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  // The search form sends GET requests.
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers of every response: no caching, framing or content sniffing, and no access from other sites. */
const guarding = {
  "cache-control": "no-store",
  "content-security-policy": contentSecurityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

const respond = (body: string | ReadableStream<Uint8Array>, { more, status = 200, type }: Head): Response =>
  new Response(body, { status, headers: { ...guarding, "content-type": type, ...more } });

/** State of the store's writes; undefined if it is not monitored. */
const storeState = Effect.flatMap(Effect.serviceOption(StoreHealth), (health) =>
  Option.isNone(health) ? Effect.undefined : health.value.state,
);

/** Returns the metrics of this process, or of all workers if there are several. */
const renderMetrics = Effect.fnUntraced(function* (traffic: Option.Option<Traffic["Service"]>) {
  const sockets = Option.getOrUndefined(yield* Effect.serviceOption(WorkerSockets));
  const paths = Option.getOrUndefined(yield* Effect.serviceOption(Paths));
  const readOwn = Effect.gen(function* () {
    const { own, status } = Option.getOrElse(traffic, () => noTraffic);
    return [yield* own ?? status, yield* storeState, paths?.list() ?? []] as const;
  });
  if (sockets === undefined) return Effect.flatMap(readOwn, (of) => Metrics.text(...of));
  const all = yield* SharedMetrics.share(
    sockets,
    Effect.flatMap(readOwn, (of) => Metrics.listRows(...of)),
  );
  return Effect.map(all, Metrics.textOf);
});

const noTraffic = { status: Effect.undefined, own: undefined };

const overviewPage: View = (sources, query) =>
  Effect.gen(function* () {
    const { recorder, totals } = sources;
    const paths = yield* sources.list;
    const asked = parseQuery(query);
    const now = yield* Clock.currentTimeMillis;
    const search = RunSearch.parse(searchOf(asked), { byDefault: pageRuns, max: pageRuns }, now);
    const found = Result.isFailure(search)
      ? Result.fail(search.failure)
      : Result.succeed(yield* RunSearch.find(recorder, search.success));
    const asking = yield* recorder.runs({ state: "asking", limit: askingMax + 1 });
    const view = overview({
      now,
      totals: yield* totals,
      paths,
      absences: yield* readAbsences(sources),
      asking: asking.slice(0, askingMax),
      asksMore: asking.length > askingMax,
      asked,
      found,
    });
    const hasLive = Result.isSuccess(found) && found.success.runs.some(({ state }) => state === "live");
    const grows = hasLive || paths.some(isDisturbed);
    const notices = yield* renderNotices(sources, now);
    const page = pageFrame(windowTitle("Runs", asking.length), html`<h1 class="sr">Runs</h1>${notices}${view}`, grows);
    return respond(page, { status: Result.isFailure(found) ? 400 : 200, type: document });
  });

/** Returns the runs that continue without their client. */
const readAbsences = ({ traffic }: PageSources): Effect.Effect<ReadonlyMap<string, Absence>> =>
  Option.isNone(traffic)
    ? Effect.succeed(new Map())
    : Effect.map(traffic.value.status, ({ absent = [] }) => new Map(absent.map((it) => [it.run_id, it])));

/** Renders notices about the whole gateway; nothing if all is well. */
const renderNotices = ({ traffic }: PageSources, now: number): Effect.Effect<Html> =>
  Effect.gen(function* () {
    const { reason, since = now, writes } = (yield* storeState) ?? wellStored;
    const isDraining = Option.isSome(traffic) && (yield* traffic.value.status).draining;
    return html`${writes === "failing" && html`<p class="notice bad" role="alert">The store does not accept writes${reason !== undefined && html` (<code>${reason}</code>)`}, first seen ${formatRelative(since, now)}. Responses and retries continue. Their record stays in memory for up to ten minutes until the store is back. Until then no question can be asked.</p>`}${isDraining && html`<p class="notice ask" role="status">The gateway is shutting down. It refuses new requests and finishes those in progress.</p>`}`;
  });

const wellStored: StoreState = { writes: "ok" };

/** Builds the window's title. It shows the number of open questions even in a background tab. */
const windowTitle = (title: string, asking: number): string =>
  asking === 0 ? title : `(${asking > askingMax ? `${askingMax}+` : asking}) ${title}`;

const runPage = (sources: PageSources, runId: string): Effect.Effect<Response, RecorderError> =>
  Effect.gen(function* () {
    const { recorder } = sources;
    const record = yield* recorder.run(runId);
    const now = yield* Clock.currentTimeMillis;
    if (record === undefined) return notFound();
    const asking = yield* recorder.runs({ state: "asking", limit: askingMax + 1 });
    const title = windowTitle(`Run ${record.run_id}`, asking.length);
    const absence = (yield* readAbsences(sources)).get(record.run_id);
    const view = html`${yield* renderNotices(sources, now)}${runView(record, now, sources.prices, absence)}`;
    return respond(pageFrame(title, view, record.state === "live"), { type: document });
  });

const pictureFile = ({ recorder }: PageSources, runId: string): Effect.Effect<Response, RecorderError> =>
  Effect.gen(function* () {
    const record = yield* recorder.run(runId);
    const now = yield* Clock.currentTimeMillis;
    if (record === undefined) return notFound();
    const more = { "content-disposition": 'attachment; filename="run.html"' };
    return respond(runDocument(record, now), { type: document, more });
  });

const notFound = (): Response =>
  respond(
    pageFrame(
      "No such run",
      html`<nav class="crumbs"><a href="./">← All runs</a></nav><p class="card empty">No run with this id is on record. It never started here, or it was deleted.</p>`,
      false,
    ),
    { status: 404, type: document },
  );

const respondUnreadable = (): Response =>
  respond(
    pageFrame(
      "The record cannot be read",
      html`<p class="card empty">The gateway cannot read the record of runs. See its log for the cause.</p>`,
      true,
    ),
    { status: 503, type: document },
  );

/** Adds the common headers to the API's response. Requests that the API cannot parse also get a JSON error with a reason. */
const fromApi = ({ api }: PageSources, request: Request): Effect.Effect<Response> =>
  Effect.promise(async () => {
    const response = await api(request);
    const headers = new Headers(response.headers);
    for (const [name, value] of Object.entries(guarding)) headers.set(name, value);
    if (response.status < 400 || headers.get("content-type")?.includes("json") === true) {
      return new Response(response.body, { status: response.status, headers });
    }
    await response.body?.cancel();
    headers.set("content-type", "application/json");
    headers.delete("content-length");
    return new Response(JSON.stringify(refusals[response.status] ?? refusals[500]), {
      status: response.status,
      headers,
    });
  });

const refusals: Readonly<Record<number, { readonly _tag: string; readonly reason: string; readonly message: string }>> =
  {
    400: { _tag: "ApiInvalid", reason: "invalid_request", message: "the request does not match api/openapi.json" },
    404: { _tag: "ApiNotFound", reason: "unknown_address", message: "this address does not exist" },
    500: { _tag: "ApiUnavailable", reason: "failed", message: "the gateway failed to serve the request" },
  };

/**
 * Renders the document around a view. Its addresses are relative, because a token's prefix may precede the page's path.
 *
 * @param title the window's title
 * @param view the content of `main`
 * @param live true if the view changes without news, for example a growing bar
 */
const pageFrame = (title: string, view: Html, live: boolean): string =>
  html`${new Html("<!doctype html>")}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script type="module" src="page.js"></script>
</head>
<body>
<a class="skip" href="#view">To the content</a>
<header class="bar-top"><div><a class="brand" href="./">stream<span>-</span>recovery</a><span class="feed" id="feed" data-feed="start"><span id="feed-words" role="status">connecting</span><small id="feed-age"></small></span></div></header>
<main id="view" tabindex="-1"${live && html` data-live="true"`}>${view}</main>
<footer><noscript><p>Without JavaScript this page shows what is on record, but it does not update and cannot answer.</p></noscript><p>Facts, lengths and labels; never a prompt or a response. <a href="api/openapi.json">API</a> · <a href="../metrics">Metrics</a></p></footer>
<dialog id="confirm" aria-labelledby="confirm-title"><h2 id="confirm-title"></h2><p id="confirm-run"></p><p id="confirm-text"></p><div><button type="button" class="plain" id="confirm-no"></button><button type="button" class="risky" id="confirm-yes"></button></div></dialog>
<p class="said" id="said" role="status"></p>
</body>
</html>
`.markup;

const isSource = import.meta.url.endsWith(".ts");

/** Returns the page's script, the `Browser` module. The package contains it as JavaScript; in a checkout its types are stripped. */
const browserScript = (): string => {
  const source = readFileSync(new URL(isSource ? "./Browser.ts" : "./Browser.js", import.meta.url), "utf8");
  return isSource ? modules.stripTypeScriptTypes(source) : source;
};
