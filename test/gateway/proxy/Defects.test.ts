/**
 * Puts a defect into each component behind a request, before and after its head. No client may wait because of one, and each is
 * logged.
 */

import { createServer } from "node:http";
import { createServer as createSocketServer } from "node:net";
import { Readable } from "node:stream";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer, Logger } from "effect";
import { RelayRepeats } from "../../../src/adapters/relay/RelayRepeats.ts";
import type { RelayExchange } from "../../../src/adapters/relay/RelayTransport.ts";
import { Attachments } from "../../../src/gateway/attach/Attachments.ts";
import { type GatewaySettings, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import { Connections } from "../../../src/gateway/limits/Shares.ts";
import { Access } from "../../../src/gateway/log/AccessRecord.ts";
import { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import { BodyStore } from "../../../src/gateway/proxy/RequestBody.ts";
import { TrafficMeter } from "../../../src/gateway/proxy/TrafficMeter.ts";
import { type RequestServing, take } from "../../../src/gateway/Requests.ts";
import { RouteMemory } from "../../../src/gateway/routes/RouteMemory.ts";
import type { Upstream } from "../../../src/gateway/upstream/Upstream.ts";
import { ReportedPaths } from "../../../src/gateway/wires/PassedStreams.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { listening } from "../../Servers.ts";
import { bodies, front, type Got, send } from "../GatewayCases.ts";

const secret = "sk-ant-of-a-client";

/** Throws an error that repeats text of a client or a provider, like real errors do. */
const broken = (): never => {
  throw new TypeError(`Invalid character in ${secret}`);
};

const text = (content: string, finish: string | null = null) =>
  new TextEncoder().encode(
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`,
  );

const head = { status: 200, statusText: "OK", headers: [["content-type", "text/event-stream"]] } as const;

const exchange = (more: Partial<RelayExchange>): RelayExchange => ({
  head: async () => head,
  read: async () => undefined,
  abort: () => undefined,
  ...more,
});

const reached: Upstream = {
  transport: { open: () => exchange({}) },
  pass: async () => ({ head, body: Readable.from([]) }),
  pathOf: (url) => ({ id: new URL(url).origin }),
};

const relaying =
  (more: Partial<RelayExchange>): Change =>
  (desk) => ({
    ...desk,
    reach: () => ({ ...reached, transport: { open: () => exchange(more) } }),
  });

const passing =
  (pass: Upstream["pass"]): Change =>
  (desk) => ({ ...desk, reach: () => ({ ...reached, pass }) });

const paging =
  (handle: (request: Request) => Effect.Effect<Response | undefined>): Change =>
  (desk) => ({
    ...desk,
    page: { handle },
  });

const body = (pull: (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => void) =>
  new ReadableStream<Uint8Array<ArrayBuffer>>({ pull });

const changedMeter =
  (change: Partial<TrafficMeter["Service"]>): Change =>
  (desk) => ({
    ...desk,
    meter: { ...desk.meter, ...change },
  });

type Change = (desk: RequestServing) => RequestServing;

/** Reads of a stream that shows text and then has a defect. */
const shownThenBroken = () => {
  const reads = [[text("shown")], [text(" and more")]];
  return async () => reads.shift() ?? broken();
};

const stages: Readonly<Record<string, readonly [path: string, change: Change]>> = {
  "the check of a shutdown": ["/v1/files", (desk) => ({ ...desk, draining: broken })],
  "the settings": [
    "/v1/files",
    (desk) => ({ ...desk, settings: { ...desk.settings, upstreams: Object.freeze({}) as never } }),
  ],
  "the meter, at a refusal": ["http://elsewhere/", changedMeter({ count: broken })],
  "the meter, at a request that passes": ["/v1/files", changedMeter({ count: broken })],
  "the meter, at a model request": ["/v1/chat/completions", changedMeter({ count: broken })],
  "an observer of the run": ["/v1/chat/completions", changedMeter({ opened: broken, closed: broken, changed: broken })],
  "the store of bodies": [
    "/v1/chat/completions",
    (desk) => ({
      ...desk,
      bodies: new (class extends BodyStore {
        override read = broken;
      })(desk.settings.limits),
    }),
  ],
  "the way to a provider, at once": ["/v1/files", passing(broken)],
  "the way to a provider, later": ["/v1/files", passing(async () => broken())],
  "a passed head that cannot be written": [
    "/v1/files",
    passing(async () => ({ head: { ...head, status: 7 }, body: Readable.from([]) })),
  ],
  "a passed body": [
    "/v1/files",
    passing(async () => ({
      head,
      body: Readable.from(
        (async function* () {
          yield Buffer.from("{");
          broken();
        })(),
      ),
    })),
  ],
  "a passed body of no bytes": ["/v1/files", passing(async () => ({ head, body: Readable.from([{}]) }))],
  "the opening of an exchange": [
    "/v1/chat/completions",
    (desk) => ({ ...desk, options: { ...desk.options, transport: { open: broken } } }),
  ],
  "the head of an exchange": ["/v1/chat/completions", relaying({ head: async () => broken() })],
  "a head that cannot be written": [
    "/v1/chat/completions",
    relaying({ head: async () => ({ ...head, status: 2_000 }), read: async () => [text("x")] }),
  ],
  "the body of an exchange": ["/v1/chat/completions", relaying({ read: shownThenBroken() })],
  "the giving up of an exchange": ["/v1/chat/completions", relaying({ read: shownThenBroken(), abort: broken })],
  "the page, at once": ["/recovery/", paging(broken)],
  "the page, later": ["/recovery/", paging(() => Effect.die(new Error(secret)))],
  "the page, by giving up": ["/recovery/", paging(() => Effect.interrupt)],
  "a page's body": ["/recovery/", paging(() => Effect.succeed(new Response(body(broken))))],
  "a page's body of no bytes": [
    "/recovery/",
    paging(() => Effect.succeed(new Response(body((it) => it.enqueue({} as never))))),
  ],
};

const settings = (): GatewaySettings => {
  const made = settingsOf({ budget: { max_auto_retries: 0, max_not_processed: 0 } });
  if (!("limits" in made)) throw made;
  return made;
};

const behind = StreamProcessor.layer.pipe(
  Layer.provideMerge(UserDecisions.layerHeadless()),
  Layer.provideMerge(RunRecorder.layerMemory()),
  Layer.merge(TrafficMeter.layer),
);

/** Serves with a modified desk, and returns its address and its log. */
const served = (change: Change, wrap: (client: ClientResponse) => ClientResponse = (client) => client) =>
  Effect.gen(function* () {
    const logged: Array<string> = [];
    const log = Logger.layer([Logger.map(Logger.formatStructured, (line) => void logged.push(JSON.stringify(line)))]);
    const services = yield* Layer.build(Layer.merge(behind, log));
    const meter = Context.get(services, TrafficMeter);
    const desk: RequestServing = change({
      attachments: yield* Attachments.make({ meter, closing: Effect.never }),
      settings: settings(),
      reach: () => reached,
      bodies: new BodyStore(settings().limits),
      connections: new Connections(settings().limits.maxConnections),
      memory: new RouteMemory(),
      reported: new ReportedPaths(),
      owners: { keep: () => undefined, ownerOf: () => Effect.succeed("unknown" as const) },
      meter,
      page: undefined,
      watch: { look: () => undefined, onResponse: () => undefined, onWait: () => undefined },
      draining: () => false,
      store: () => ({ writes: "ok" as const }),
      closing: Effect.never,
      options: {
        keepAliveMs: 10_000,
        repeats: new RelayRepeats(),
        budget: { max_auto_retries: 0, max_not_processed: 0 },
      },
    });
    const port = yield* listening(
      createServer((request, response) => {
        const client = wrap(new ClientResponse(response, 1_000, new Access(() => 0)));
        Effect.runForkWith(services)(take(request, client, desk));
      }),
    );
    return { port, logged };
  });

/** The status, or the break of the connection. */
const asked = (port: number, path: string): Effect.Effect<Got | "broken"> =>
  Effect.promise(async () => {
    const posts = path.includes("completions");
    const sending = posts ? { body: JSON.stringify(bodies["openai-chat"]) } : {};
    try {
      return await send(`http://127.0.0.1:${port}`, { path, ...sending });
    } catch {
      return "broken" as const;
    }
  });

describe("a defect during a request", () => {
  for (const [stage, [path, change]] of Object.entries(stages)) {
    it.live(`is never silent: ${stage}`, () =>
      Effect.gen(function* () {
        const { logged, port } = yield* served(change);
        const got = yield* asked(port, path);
        // A run continues without its observer.
        const isTold = got === "broken" || got.broken || got.status >= 400;
        assert.isTrue(isTold || stage === "an observer of the run", JSON.stringify(got));
        // A deliberate end is no defect.
        if (stage !== "the page, by giving up") assert.isAbove(logged.length, 0, "it is in the log");
        assert.notInclude(logged.join("\n"), secret);
      }),
    );
  }

  it.live("is logged for a write after the end, and for a head that fails", () =>
    Effect.gen(function* () {
      const late = yield* served(
        passing(async () => ({ head, body: Readable.from(["x"]) })),
        (client) => Object.assign(client, { head: () => Effect.runSync(client.end) }),
      );
      yield* asked(late.port, "/v1/files");
      assert.include(late.logged.join("\n"), "a defect ended a request");
      const headless = yield* served(
        (desk) => desk,
        (client) => Object.assign(client, { head: broken, refuse: broken }),
      );
      assert.strictEqual(yield* asked(headless.port, "/v1/files"), "broken");
      assert.include(headless.logged.join("\n"), "a defect ended a request");
    }),
  );
});

describe("a response that cannot be written in its original form", () => {
  const raw = (reply: Buffer) =>
    Effect.map(
      listening(
        createSocketServer((socket) => {
          socket.on("error", () => undefined).once("data", () => socket.end(reply));
        }),
      ),
      (port) => `http://127.0.0.1:${port}`,
    );
  const spelt = (phrase: string, headers = "") =>
    Buffer.from(`HTTP/1.1 403 ${phrase}\r\nContent-Length: 2\r\n${headers}Connection: close\r\n\r\n{}`, "latin1");

  for (const [what, reply] of [
    ["a reason phrase in Latin-1", spelt("Acc\u00e8s refus\u00e9")],
    [
      "a reason phrase in UTF-8",
      Buffer.from(spelt("Zugriff ").toString("latin1").replace("Zugriff ", "Zugriff verweigert \u{1f512}")),
    ],
    ["no reason phrase", spelt("")],
    ["header values in Latin-1", spelt("No", "X-Said: Acc\u00e8s\r\n")],
  ] as const) {
    it.live(`still reaches its client: ${what}`, () =>
      Effect.gen(function* () {
        const { url } = yield* front(yield* raw(reply));
        const chat = { body: JSON.stringify(bodies["openai-chat"]) };
        for (const got of [
          yield* Effect.promise(() => send(`${url}/v1/files`)),
          yield* Effect.promise(() => send(`${url}/v1/chat/completions`, chat)),
        ]) {
          assert.strictEqual(got.status, 403);
          assert.strictEqual(got.text, "{}");
        }
      }),
    );
  }
});
