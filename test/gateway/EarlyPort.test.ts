/**
 * The port of a gateway that does not serve yet, and how the gateway takes it over.
 */
import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as EarlyPort from "../../src/gateway/EarlyPort.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import { bodies, front, paths, protocols } from "./GatewayCases.ts";

const started = { port: 0, accessLog: false } as const;

interface Asked {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The client's end of the connection that it came by. */
  readonly from: number | undefined;
}

/** Asks by an agent's connection. */
const asking = (port: number, agent: Agent | false) => (path: string, body?: string) =>
  Effect.callback<Asked>((resume) => {
    const method = body === undefined ? "GET" : "POST";
    const headers = { "content-type": "application/json" };
    const request = httpRequest({ host: "127.0.0.1", port, path, method, agent, headers }, (response) => {
      let text = "";
      const from = response.socket.localPort;
      response.on("data", (chunk: Buffer) => {
        text += String(chunk);
      });
      response.on("end", () =>
        resume(Effect.succeed({ status: response.statusCode, headers: response.headers, text, from })),
      );
    });
    request.on("error", (error) => resume(Effect.die(error)));
    request.end(body);
  });

/** An agent with one connection. */
const single = Effect.acquireRelease(
  Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
  (agent) => Effect.sync(() => agent.destroy()),
);

/** Where each vendor's clients look for the kind of an error. */
const kindIn: Record<
  ProtocolId,
  (document: { readonly type?: string; readonly error: Record<string, unknown> }) => unknown
> = {
  "openai-chat": ({ error, type }) => type ?? error.code,
  "openai-responses": ({ error, type }) => type ?? error.code,
  "anthropic-messages": ({ error, type }) => `${type} ${error.code}`,
  "google-gemini": ({ error }) => `${error.code} ${error.status}`,
};

const kinds: Record<ProtocolId, string> = {
  "openai-chat": "starting",
  "openai-responses": "starting",
  "anthropic-messages": "error starting",
  "google-gemini": "503 STARTING",
};

describe("the port of a gateway that does not serve yet", () => {
  it.live("says so to its probes, and why", () =>
    Effect.gen(function* () {
      let why = "a store is opened";
      const { number } = yield* EarlyPort.make(started, () => why);
      const ask = asking(number, false);
      const live = yield* ask("/livez");
      assert.strictEqual(`${live.status} ${live.text}`, '200 {"status":"ok"}\n');
      const ready = yield* ask("/readyz");
      assert.strictEqual(`${ready.status} ${ready.text}`, '503 {"status":"starting","why":"a store is opened"}\n');
      why = "a store is away";
      assert.include((yield* ask("/readyz")).text, "a store is away");
    }),
  );

  it.live("refuses every other request by a 503 that is worth a repeat, in the words of its vendor", () =>
    Effect.gen(function* () {
      const { number } = yield* EarlyPort.make(started, () => "a store is opened");
      const ask = asking(number, false);
      for (const protocol of protocols) {
        const { headers, status, text } = yield* ask(paths[protocol], JSON.stringify(bodies[protocol]));
        assert.strictEqual(`${status} ${headers["x-recovery-refused"]}`, "503 starting", protocol);
        assert.strictEqual(headers["retry-after"], "1");
        assert.strictEqual(kindIn[protocol](JSON.parse(text)), kinds[protocol]);
        assert.include(text, "The gateway is starting, try again: a store is opened.");
      }
      for (const path of ["/recovery/", "/metrics", "/t/of-nobody/v1/models", "//livez"])
        assert.strictEqual((yield* ask(path)).status, 503, path);
    }),
  );

  it.live("is taken over with its connections, and closes with its gateway", () =>
    Effect.gen(function* () {
      const early = yield* EarlyPort.make(started, () => "a store is opened");
      const agent = yield* single;
      const ask = asking(early.number, agent);
      const before = yield* ask("/readyz");
      const { gateway } = yield* Effect.provideService(front("http://127.0.0.1:1"), EarlyPort.EarlyPort, early);
      const after = yield* ask("/readyz");
      assert.strictEqual(gateway.port, early.number);
      assert.deepStrictEqual([before.status, after.status], [503, 200]);
      assert.strictEqual(after.from, before.from);
      assert.strictEqual(early.sockets(), 1);
    }),
  );

  it.live("is refused where it is taken, and free again when its scope is closed", () =>
    Effect.gen(function* () {
      const number = yield* Effect.scoped(
        Effect.gen(function* () {
          const { number } = yield* EarlyPort.make(started, () => "");
          const error = yield* Effect.flip(EarlyPort.make({ port: number }, () => ""));
          assert.strictEqual(error.message, `cannot listen on 127.0.0.1:${number} (EADDRINUSE)`);
          return number;
        }),
      );
      assert.strictEqual((yield* EarlyPort.make({ port: number }, () => "")).number, number);
    }),
  );
});
