/**
 * Plays every example of the table of wires through a gateway: each is treated as docs/gateway.md says.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Metrics from "../../src/gateway/api/Metrics.ts";
import { maskPath, ReportedPaths, reportedPathsMax } from "../../src/gateway/wires/PassedStreams.ts";
import { type Wire, type WireExample, wires } from "../../src/gateway/wires/Wires.ts";
import { front, type Got, send } from "../gateway/GatewayCases.ts";
import { logging } from "../gateway/log/Logged.ts";
import { serverOf } from "../Servers.ts";

/** Answers every POST with a stream of events and every GET with a document. */
const answering = (asked: IncomingMessage, response: ServerResponse): void => {
  const type = asked.method === "POST" ? "text/event-stream" : "application/json";
  response.writeHead(200, { "content-type": type }).end(asked.method === "POST" ? "data: {}\n\n" : "{}");
};

/** A body that every protocol accepts as its own. */
const body = {
  ...{ messages: [], input: "x", inputs: "x", contents: [], prompt: "x", model: "m" },
  ...{ request: { contents: [] }, anthropic_version: "x" },
};

const ask = (url: string, { body: field, method, target }: WireExample, wire?: Wire): Promise<Got> =>
  send(`${url}${target}`, {
    method,
    ...(method === "POST" ? { body: JSON.stringify({ ...body, ...field }) } : {}),
    headers: {
      "content-type": "application/json",
      ...(wire?.treatment === "refused" ? { upgrade: "websocket", connection: "upgrade" } : {}),
    },
  });

describe("the table of wires", () => {
  for (const wire of wires)
    for (const example of wire.examples)
      it.live(`${example.method} ${example.target} ${JSON.stringify(example.body ?? {})} is ${wire.treatment}`, () =>
        Effect.gen(function* () {
          let requests = 0;
          const provider = yield* serverOf((asked, response) => {
            requests += 1;
            const document = { "content-type": "application/json" };
            if (wire.treatment === "replayed") response.writeHead(200, document).end('{"object":"list"}');
            else if (wire.treatment === "recovered") response.writeHead(400, document).end("{}");
            else answering(asked, response);
          });
          const gateway = yield* front(provider);
          const got = yield* Effect.promise(() => ask(gateway.url, example, wire));
          const isRun = got.headers["x-recovery-run"] !== undefined;
          assert.strictEqual(isRun, wire.treatment === "recovered" || wire.treatment === "replayed", got.text);
          assert.strictEqual(got.headers["x-recovery-passed"], wire.reason);
          if (wire.treatment === "replayed") assert.strictEqual(got.text, '{"object":"list"}');
          if (wire.treatment === "refused") assert.strictEqual(got.status, 426);
          if (wire.treatment === "refused") assert.strictEqual(requests, 0);
        }),
      );
});

describe("a stream that no run recovers", () => {
  const shapes: ReadonlyArray<readonly [string, string, Record<string, string>, string | undefined]> = [
    ["events", "/v1/other", { "content-type": "text/event-stream" }, "unknown_path"],
    ["lines of JSON", "/v1/complete", { "content-type": "application/x-ndjson" }, "unknown_format"],
    ["frames of Amazon's APIs", "/other", { "content-type": "application/vnd.amazon.eventstream" }, "unknown_path"],
    [
      "a JSON array",
      "/v1beta/models/M:streamGenerateContent",
      { "content-type": "application/json" },
      "unknown_format",
    ],
    ["sound", "/v1/audio/speech", { "content-type": "audio/mpeg" }, "other_api"],
    ["text", "/v1/other", { "content-type": "text/plain" }, "unknown_path"],
    ["a document in chunks", "/v1/other", { "content-type": "application/json" }, undefined],
    ["sound with a length", "/v1/audio/speech", { "content-type": "audio/mpeg", "content-length": "2" }, undefined],
  ];
  for (const [what, target, headers, reason] of shapes)
    it.live(`has the header ${reason ?? "not at all"} for ${what}`, () =>
      Effect.gen(function* () {
        const provider = yield* serverOf((_, response) => {
          response.writeHead(200, headers);
          response.write("{");
          setImmediate(() => response.end("}"));
        });
        const gateway = yield* front(provider);
        const got = yield* Effect.promise(() => ask(gateway.url, { method: "POST", target }));
        assert.strictEqual(got.text, "{}");
        assert.strictEqual(got.headers["x-recovery-passed"], reason);
      }),
    );

  it.live("has the header at a model's path if the body is not the model's", () =>
    Effect.gen(function* () {
      const provider = yield* serverOf(answering);
      const gateway = yield* front(provider);
      const got = yield* Effect.promise(() => send(`${gateway.url}/v1/messages`, { body: "[]" }));
      assert.strictEqual(got.headers["x-recovery-passed"], "unknown_body");
    }),
  );

  it.live("has no header if it is refused, or is no POST", () =>
    Effect.gen(function* () {
      const provider = yield* serverOf((asked, response) => {
        response.writeHead(asked.method === "POST" ? 500 : 200, { "content-type": "text/event-stream" }).end();
      });
      const gateway = yield* front(provider);
      for (const method of ["POST", "GET"] as const) {
        const got = yield* Effect.promise(() => ask(gateway.url, { method, target: "/v1/other" }));
        assert.strictEqual(got.headers["x-recovery-passed"], undefined);
      }
    }),
  );

  it.live("is counted by its reason, named in the access line, and reported once for its path", () =>
    Effect.gen(function* () {
      const provider = yield* serverOf(answering);
      const { accessed, lines, services, texts, url } = yield* logging(provider);
      for (const id of ["one_1", "two_2"])
        yield* Effect.promise(() => ask(url, { method: "POST", target: `/v1/threads/${id}/runs?key=hunter2` }));
      const access = yield* accessed(2);
      assert.deepStrictEqual(
        access.map(({ passed }) => passed),
        ["other_api", "other_api"],
      );
      const reports = lines.filter(({ message }) => message.startsWith("a stream passes"));
      assert.lengthOf(reports, 1);
      assert.deepInclude<object | undefined>(reports[0], {
        level: "warn",
        path: "/v1/threads/{id}/runs",
        reason: "other_api",
      });
      assert.notInclude(texts.join("\n"), "hunter2");
      const metrics = yield* Effect.provide(Metrics.text(), services);
      assert.match(metrics, /gateway_passed_streams_total\{[^}]*reason="other_api"[^}]*\} [1-9]\d*$/m);
    }),
  );
});

describe("the path of an unrecovered stream in the log", () => {
  it("has no query and no id", () => {
    assert.strictEqual(maskPath("/v1/threads/thread_9aZ/runs?key=AIzaSecret"), "/v1/threads/{id}/runs");
    assert.strictEqual(
      maskPath("/v1beta/models/gemini-2.5-pro:streamGenerateContent"),
      "/v1beta/models/{id}:streamGenerateContent",
    );
    assert.strictEqual(maskPath("/v1internal:streamGenerateContent"), "/v1internal:streamGenerateContent");
    assert.strictEqual(maskPath("/model/anthropic.claude-v1%3A0/converse-stream"), "/model/{id}/converse-stream");
    assert.strictEqual(maskPath("/x/sk-ant-api03-abcdef"), "/x/{id}");
    assert.isAtMost(maskPath("/a".repeat(4_000)).length, 128);
  });

  it("is reported once, and for a bounded number of paths", () => {
    const reported = new ReportedPaths();
    const word = (at: number) => `/${[...String(at)].map((digit) => "abcdefghij"[Number(digit)]).join("")}`;
    assert.strictEqual(reported.takeNew("/v1/a?one"), "/v1/a");
    assert.strictEqual(reported.takeNew("/v1/a?other"), undefined);
    for (let at = 1; at < reportedPathsMax; at += 1) assert.strictEqual(reported.takeNew(word(at)), word(at));
    assert.strictEqual(reported.takeNew("/further"), undefined);
  });
});
