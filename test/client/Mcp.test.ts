import { assert, describe, it } from "@effect/vitest";
import { Effect, References, Result, Stream } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import { documentBytesMax } from "../../src/client/ResponseReader.ts";
import { AnySse } from "../../src/provider/index.ts";
import type { Part } from "../../src/provider/Protocols.ts";
import type { AttemptContext } from "../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { serverOf } from "../Servers.ts";
import { withBody } from "./Server.ts";

const id = "call-7";
const progress = (n: number) => ({ jsonrpc: "2.0", method: "notifications/progress", params: { progress: n } });
const result = { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "charged" }] } };
const error = { jsonrpc: "2.0", id, error: { code: -32602, message: "no such tool" } };

interface McpOptions {
  /** Messages of the answer, in order. */
  readonly messages: ReadonlyArray<object>;
  /** True to number the events, so that `Last-Event-ID` can resume after one of them. */
  readonly ids: boolean;
  /** Number of events after which the connection is destroyed, or the stream ends properly. */
  readonly breakAfter?: number;
  readonly breaks?: "reset" | "end";
  readonly document?: boolean;
}

/** An MCP server over streamable HTTP with one call, which runs when it is posted and whose answer can be resumed. */
const mcp = ({ breakAfter, breaks = "reset", document = false, ids, messages }: McpOptions) =>
  Effect.gen(function* () {
    const seen: Array<string> = [];
    let ran = 0;
    const url = yield* serverOf((request, response) =>
      withBody(request, () => {
        const last = request.headers["last-event-id"]?.toString();
        seen.push(`${request.method}${last === undefined ? "" : ` ${last}`}`);
        if (request.method === "POST") ran += 1;
        if (document) {
          response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
          response.end(JSON.stringify(messages.at(-1), undefined, 2));
          return;
        }
        response.writeHead(200, { "content-type": "text/event-stream" });
        const from = Number(last ?? 0);
        const until = request.method === "POST" ? (breakAfter ?? messages.length) : messages.length;
        const frames = messages
          .slice(from, until)
          .map(
            (message, index) =>
              `${ids ? `id: ${from + index + 1}\n` : ""}event: message\ndata: ${JSON.stringify(message)}\n\n`,
          );
        const broken = request.method === "POST" && breakAfter !== undefined;
        if (broken && breaks === "reset") response.write(frames.join(""), () => response.destroy());
        else response.end(frames.join(""));
      }),
    );
    return { url: `${url}/mcp`, seen, ran: () => ran };
  });

type Mcp = Effect.Success<ReturnType<typeof mcp>>;

const request = (server: Mcp, attempt?: AttemptContext) => ({
  protocol: AnySse.protocol(AnySse.jsonRpc(id)),
  url: server.url,
  ...(attempt?.request === "resume"
    ? { method: "GET" as const, headers: { "last-event-id": attempt.cursor ?? "" } }
    : {
        headers: { accept: "application/json, text/event-stream" },
        body: { jsonrpc: "2.0", id, method: "tools/call", params: { name: "charge_card" } },
      }),
  ...(attempt === undefined ? {} : { delivery: attempt.delivery, bytes: attempt.bytes }),
});

/** Runs the call through StreamProcessor, as a caller that declares its side effects. */
const call = (server: Mcp) =>
  Effect.gen(function* () {
    const client = yield* ProviderClient.make();
    const messages: Array<unknown> = [];
    const rules: Array<string> = [];
    const run = (yield* StreamProcessor).run<Part<"sse">, unknown, never>({
      provider: { id: "mcp" },
      tools: [{ name: "charge_card", executor: "provider", effect: "mutating" }],
      attempt: (attempt) => client.stream(request(server, attempt)),
      observe: AnySse.observe,
      cursor: AnySse.cursor,
    });
    const end = yield* run.pipe(
      Stream.runForEach((event) =>
        Effect.sync(() => {
          if (event._tag === "Part") messages.push(event.part.json);
          if (event._tag === "RetryScheduled") rules.push(`${event.mode} ${event.rule}`);
          if (event._tag === "QuestionAsked") rules.push(`ask ${event.question.rule}`);
        }),
      ),
      Effect.result,
    );
    return { messages, rules, completed: Result.isSuccess(end) };
  }).pipe(Effect.provideService(References.MinimumLogLevel, "None"), Effect.provide(StreamProcessor.layerDefault));

describe("ProviderClient with MCP's streamable HTTP", () => {
  const messages = [progress(1), progress(2), progress(3), result];

  it.live("reads a stream up to the response with the request's id", () =>
    Effect.gen(function* () {
      const server = yield* mcp({ messages, ids: false });
      const seen = yield* call(server);
      assert.deepStrictEqual(seen, { messages, rules: [], completed: true });
    }),
  );

  for (const breaks of ["reset", "end"] as const) {
    it.live(`resumes with Last-Event-ID after a ${breaks}: no message twice, none lost, and the call ran once`, () =>
      Effect.gen(function* () {
        const server = yield* mcp({ messages, ids: true, breakAfter: 2, breaks });
        const seen = yield* call(server);
        assert.deepStrictEqual(seen, { messages, rules: ["resume resume_cursor"], completed: true });
        assert.deepStrictEqual(server.seen, ["POST", "GET 2"]);
        assert.strictEqual(server.ran(), 1);
      }),
    );
  }

  it.live("asks instead of repeating a call that may have run, if the server does not number its events", () =>
    Effect.gen(function* () {
      for (const breakAfter of [0, 2]) {
        const server = yield* mcp({ messages, ids: false, breakAfter });
        const seen = yield* call(server);
        assert.isFalse(seen.completed);
        assert.deepStrictEqual(seen.rules, ["ask side_effects_unprovable"]);
        assert.strictEqual(server.ran(), 1);
      }
    }),
  );

  it.live("accepts a JSON document as an answer, even one of several lines", () =>
    Effect.gen(function* () {
      const server = yield* mcp({ messages, ids: false, document: true });
      const seen = yield* call(server);
      assert.deepStrictEqual(seen, { messages: [result], rules: [], completed: true });
    }),
  );

  it.live("passes a JSON-RPC error on as an answer", () =>
    Effect.gen(function* () {
      for (const document of [true, false]) {
        const server = yield* mcp({ messages: [error], ids: false, document });
        assert.deepStrictEqual(yield* call(server), { messages: [error], rules: [], completed: true });
      }
    }),
  );

  it.live("fails if a document is larger than an event may be", () =>
    Effect.gen(function* () {
      const large = { ...result, result: "x".repeat(documentBytesMax) };
      const server = yield* mcp({ messages: [large], ids: false, document: true });
      const client = yield* ProviderClient.make();
      const failed = yield* Effect.flip(Stream.runDrain(client.stream(request(server))));
      assert.deepInclude(failed.reason, { kind: "protocol", reason: "oversize" });
    }),
  );

  it.live("fails if a document is not a response to this request", () =>
    Effect.gen(function* () {
      const server = yield* mcp({ messages: [{ ...result, id: "another" }], ids: false, document: true });
      const client = yield* ProviderClient.make();
      const failed = yield* Effect.flip(Stream.runDrain(client.stream(request(server))));
      assert.strictEqual(failed.reason.kind, "truncated");
    }),
  );
});
