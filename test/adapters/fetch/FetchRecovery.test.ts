import { createServer } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect, ManagedRuntime } from "effect";
import { recoveringFetch } from "../../../src/adapters/fetch/FetchRecovery.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import type { Answer } from "../../../src/testing/script/FaultScript.ts";
import { hasLines, talkIds } from "../../samples/index.ts";
import { bodies, protocols, read, setup } from "./Cases.ts";

const reset = (at: "before_head" | "after_head") => ({ content: [{ text: 3 }], break: { kind: "rst", at } }) as const;
const whole = { content: [{ text: 3 }] } as const;
const tags = (events: ReadonlyArray<{ readonly _tag: string }>) => events.map((event) => event._tag);

describe.concurrent("recoveringFetch", () => {
  for (const protocol of protocols) {
    it.live(`hands a healthy ${protocol} answer on byte for byte, with its own head`, () =>
      Effect.gen(function* () {
        const answer = { ...whole, headers: { "x-request-id": "req_1", "x-strange": "é" } };
        const { post, server } = yield* setup({ answers: [answer] });
        const response = yield* Effect.promise(() => post(protocol));
        const body = yield* Effect.promise(() => read(response));
        assert.isUndefined(body.error);
        const digest = yield* Effect.promise(() => crypto.subtle.digest("SHA-256", new Uint8Array(body.bytes)));
        assert.strictEqual(Buffer.from(digest).toString("hex"), (yield* server.ended(1)).sent_hash);
        assert.strictEqual(response.status, 200);
        assert.strictEqual(response.url, server.endpoint(protocol));
        assert.strictEqual(response.headers.get("x-request-id"), "req_1");
        const type = hasLines(protocol) ? "application/x-ndjson" : "text/event-stream; charset=utf-8";
        assert.strictEqual(response.headers.get("content-type"), type);
        assert.match(response.headers.get("x-recovery-run") ?? "", /^run_/);
        assert.strictEqual(response.headers.get("x-recovery-attempts"), "1");
      }),
    );

    for (const at of ["before_head", "after_head"] as const) {
      it.live(`recovers a ${protocol} answer that is reset at ${at} unseen`, () =>
        Effect.gen(function* () {
          const { events, post, server } = yield* setup({ answers: [reset(at), whole] });
          const body = yield* Effect.promise(async () => read(await post(protocol)));
          assert.isUndefined(body.error);
          assert.deepStrictEqual(body.text.match(/r\d+\.\d+·/g)?.slice(0, 3), ["r2.0·", "r2.1·", "r2.2·"]);
          assert.strictEqual((yield* server.log).length, 2);
          const seen = ["AttemptStarted", "RetryScheduled", "AttemptStarted", "RunCompleted"];
          assert.deepStrictEqual(tags(events), seen);
        }),
      );
    }

    it.live(`breaks a ${protocol} answer that ended cleanly without its marker after shown text`, () =>
      Effect.gen(function* () {
        const cut = { content: [{ text: 3 }], break: { kind: "end", at: "terminal" } } as const;
        const { post, server } = yield* setup({ answers: [cut, whole] });
        const body = yield* Effect.promise(async () => read(await post(protocol)));
        assert.strictEqual(Reflect.get(Object(body.error), "rule"), "text_shown");
        assert.include(body.text, "r1.2·");
        assert.strictEqual((yield* server.log).length, 1);
      }),
    );

    it.live(`recovers the same unseen where ${protocol} is revealed on completion`, () =>
      Effect.gen(function* () {
        const cut = { content: [{ text: 3 }], break: { kind: "end", at: "terminal" } } as const;
        const { post } = yield* setup({ answers: [cut, whole] }, { reveal: "on_complete" });
        const body = yield* Effect.promise(async () => read(await post(protocol)));
        assert.isUndefined(body.error);
        assert.notInclude(body.text, "r1.");
        assert.include(body.text, "r2.2·");
      }),
    );

    it.live.skipIf(!talkIds.includes(protocol))(
      `hands out no call of a ${protocol} answer before its end is proven`,
      () =>
        Effect.gen(function* () {
          const called = { content: [{ tool: "pay", input: { amount: 1 } }] } as const;
          const cut = { ...called, break: { kind: "rst", at: "terminal" } } as const;
          const { post } = yield* setup({ answers: [cut, cut, called] });
          const body = yield* Effect.promise(async () => read(await post(protocol)));
          assert.isUndefined(body.error);
          assert.notInclude(body.text, "r1.t");
          assert.notInclude(body.text, "r2.t");
          assert.include(body.text, "r3.t1");
        }),
    );

    it.live(`hands the ${protocol} provider's own error event on where nothing more helps, and then breaks`, () =>
      Effect.gen(function* () {
        const refused = { content: [{ error: "invalid_request" }] } as const;
        const { post, server } = yield* setup({ answers: [refused] });
        const body = yield* Effect.promise(async () => read(await post(protocol)));
        assert.isDefined(body.error);
        const sent = yield* Effect.promise(async () => {
          const direct = await fetch(server.endpoint(protocol), {
            method: "POST",
            body: JSON.stringify(bodies[protocol]),
          });
          return (await read(direct)).text;
        });
        assert.strictEqual(body.text.replaceAll("r1", "r2"), sent);
      }),
    );
  }
});

describe.concurrent("recoveringFetch's answer to a failure before the response", () => {
  it.live("is the provider's own, with run, attempts and rule", () =>
    Effect.gen(function* () {
      const refusal: Partial<Answer> = {
        status: 401,
        headers: { "x-request-id": "req_9", "www-authenticate": "Bearer" },
        body: { error: { type: "invalid_request_error", code: "invalid_api_key", message: "no · such key" } },
      };
      const { post } = yield* setup({ answers: [refusal] });
      const response = yield* Effect.promise(() => post("openai-chat"));
      assert.strictEqual(response.status, 401);
      assert.strictEqual(response.headers.get("x-request-id"), "req_9");
      assert.strictEqual(response.headers.get("x-recovery-rule"), "not_retryable");
      assert.strictEqual(response.headers.get("x-recovery-attempts"), "1");
      const body = yield* Effect.promise(() => response.text());
      assert.strictEqual(body, JSON.stringify(refusal.body));
    }),
  );

  it.live("is the last of several, when the budget is spent", () =>
    Effect.gen(function* () {
      const { post, server } = yield* setup(
        { answers: [{ status: 500 }, { status: 502 }] },
        { budget: { max_auto_retries: 1 } },
      );
      const response = yield* Effect.promise(() => post("anthropic-messages"));
      assert.strictEqual(response.status, 502);
      assert.strictEqual(response.headers.get("x-recovery-rule"), "budget_exhausted");
      assert.strictEqual(response.headers.get("x-recovery-attempts"), "2");
      assert.strictEqual((yield* server.log).length, 2);
    }),
  );

  it.live("is the original error where there is no answer", () =>
    Effect.gen(function* () {
      const { post } = yield* setup({ answers: [reset("before_head")] }, { budget: { max_auto_retries: 0 } });
      const error = yield* Effect.promise(() =>
        post("openai-chat").then(
          () => undefined,
          (caught: unknown) => caught,
        ),
      );
      assert.instanceOf(error, TypeError);
      assert.strictEqual(Reflect.get(Object(Reflect.get(Object(error), "cause")), "code"), "ECONNRESET");
    }),
  );

  it.live("keeps its status after a recovered head where the head waits for content", () =>
    Effect.gen(function* () {
      const answers = [reset("after_head"), { status: 401 }];
      const late = yield* setup({ answers }, { head: "content" });
      assert.strictEqual((yield* Effect.promise(() => late.post("openai-chat"))).status, 401);
      const first = yield* setup({ answers });
      const response = yield* Effect.promise(() => first.post("openai-chat"));
      assert.strictEqual(response.status, 200);
      assert.isDefined((yield* Effect.promise(() => read(response))).error);
    }),
  );
});

describe.concurrent("recoveringFetch and requests that are no streams", () => {
  const document = { id: "1", choices: [{ index: 0, finish_reason: "stop", message: { content: "hi" } }] };
  const asked = JSON.stringify({ model: "m", messages: [] });

  it.live("recovers a document before its response, also one that is cut", () =>
    Effect.gen(function* () {
      const cut = { body: document, break: { kind: "fin", at: "byte", n: 20 } } as const;
      const { post, server } = yield* setup({ answers: [{ status: 503 }, cut, { body: document }] });
      const response = yield* Effect.promise(() => post("openai-chat", { body: asked }));
      assert.deepStrictEqual(yield* Effect.promise(() => response.json()), document);
      assert.strictEqual(response.headers.get("x-recovery-attempts"), "3");
      assert.strictEqual((yield* server.log).length, 3);
    }),
  );

  it.live("hands a document on that answers a request for a stream", () =>
    Effect.gen(function* () {
      const { post, server } = yield* setup({ answers: [{ body: document }] });
      const response = yield* Effect.promise(() => post("openai-chat"));
      assert.deepStrictEqual(yield* Effect.promise(() => response.json()), document);
      assert.strictEqual((yield* server.log).length, 1);
    }),
  );

  it.live("retries a page that a proxy sends in place of a stream, and hands it on in the end", () =>
    Effect.gen(function* () {
      const page = { body: "<html>one moment</html>" };
      const { post, server } = yield* setup({ answers: [page] }, { budget: { max_auto_retries: 1 } });
      const response = yield* Effect.promise(() => post("openai-chat"));
      assert.strictEqual(yield* Effect.promise(() => response.text()), page.body);
      assert.strictEqual(response.headers.get("content-type"), "text/html");
      assert.strictEqual((yield* server.log).length, 2);
    }),
  );

  it.live("passes what is none of the protocols through untouched", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = [];
      const under: typeof fetch = (...given) => {
        seen.push(...given);
        return Promise.resolve(new Response("ok"));
      };
      const made = recoveringFetch({ fetch: under });
      const init = { method: "POST", body: new FormData() };
      const url = new URL("http://localhost/v1/files");
      assert.strictEqual(yield* Effect.promise(async () => (await made(url, init)).text()), "ok");
      assert.strictEqual(seen[0], url);
      assert.strictEqual(seen[1], init);
      yield* Effect.promise(made.close);
    }),
  );
});

describe.concurrent("recoveringFetch's call", () => {
  const text = JSON.stringify(bodies["openai-chat"]);
  const forms: ReadonlyArray<readonly [string, () => RequestInit]> = [
    ["text", () => ({ body: text })],
    ["bytes", () => ({ body: Buffer.from(text) })],
    ["a Blob", () => ({ body: new Blob([text]) })],
    ["a stream", () => ({ body: new Blob([text]).stream(), duplex: "half" })],
  ];
  for (const [name, init] of forms) {
    it.live(`takes a body that is ${name}, and sends it again`, () =>
      Effect.gen(function* () {
        const { post, server } = yield* setup({ answers: [reset("before_head"), whole] });
        const body = yield* Effect.promise(async () => read(await post("openai-chat", init())));
        assert.include(body.text, "r2.2·");
        const [first, second] = yield* server.log;
        assert.strictEqual(first?.body_hash, second?.body_hash);
        assert.strictEqual(second?.body_bytes, text.length);
      }),
    );
  }

  it.live("accepts a Request object", () =>
    Effect.gen(function* () {
      const { fetch: made, server } = yield* setup({ answers: [reset("before_head"), whole] });
      const request = new Request(server.endpoint("openai-chat"), {
        method: "POST",
        body: text,
        headers: { "x-mine": "1" },
      });
      const body = yield* Effect.promise(async () => read(await made(request)));
      assert.include(body.text, "r2.2·");
      assert.include((yield* server.log)[1]?.header_names ?? [], "x-mine");
    }),
  );

  it.live("releases the provider's body when its reader leaves", () =>
    Effect.gen(function* () {
      const given: Array<Response> = [];
      const stalled = { content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 3 } } as const;
      const { post } = yield* setup(
        { answers: [stalled] },
        {
          fetch: async (input, init) => {
            const response = await fetch(input, init);
            given.push(response);
            return response;
          },
        },
      );
      const response = yield* Effect.promise(() => post("openai-chat"));
      const reader = response.body?.getReader();
      yield* Effect.promise(async () => reader?.read());
      yield* Effect.promise(async () => reader?.cancel());
      assert.strictEqual(given[0]?.body?.locked, false);
    }),
  );

  it("has what its own fetch has beside itself", () => {
    const under = Object.assign((...call: Parameters<typeof fetch>) => fetch(...call), { Response });
    assert.strictEqual(Reflect.get(recoveringFetch({ fetch: under }), "Response"), Response);
  });

  it.live("hands on what else a caller gives", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = [];
      const { post } = yield* setup(
        { answers: [whole] },
        {
          fetch: (input, init) => {
            seen.push(Reflect.get(init ?? {}, "redirect"), Reflect.get(init ?? {}, "keepalive"));
            return fetch(input, init);
          },
        },
      );
      yield* Effect.promise(async () => read(await post("openai-chat", { redirect: "error", keepalive: false })));
      assert.deepStrictEqual(seen, ["error", false]);
    }),
  );
});

describe.concurrent("recoveringFetch in an application", () => {
  it.live("runs on a processor that it is given, and leaves it open", () =>
    Effect.gen(function* () {
      const runtime = ManagedRuntime.make(StreamProcessor.layerDefault);
      const { fetch: made, post } = yield* setup({ answers: [whole] }, { runtime });
      yield* Effect.promise(async () => read(await post("openai-chat")));
      yield* Effect.promise(made.close);
      assert.include((yield* Effect.promise(async () => read(await post("openai-chat")))).text, "r2.2·");
      yield* Effect.promise(() => runtime.dispose());
    }),
  );

  it.live("breaks what runs when it is closed", () =>
    Effect.gen(function* () {
      const stalled = { content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 3 } } as const;
      const { fetch: made, post, server } = yield* setup({ answers: [stalled] });
      const response = yield* Effect.promise(() => post("openai-chat"));
      const reading = read(response);
      yield* server.until((rows) => rows.find((row) => row.text.length > 0));
      yield* Effect.promise(made.close);
      const body = yield* Effect.promise(() => reading);
      assert.strictEqual(Reflect.get(Object(body.error), "rule"), "lifecycle_closed");
      assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
    }),
  );

  it.live("survives an observer that throws", () =>
    Effect.gen(function* () {
      const { post } = yield* setup(
        { answers: [reset("after_head"), whole] },
        {
          onEvent: () => {
            throw new Error("mine");
          },
        },
      );
      const body = yield* Effect.promise(async () => read(await post("openai-chat")));
      assert.isUndefined(body.error);
    }),
  );

  it.live("slows its provider with its reader, within bounded memory", () =>
    Effect.gen(function* () {
      const piece = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x".repeat(8000) } }] })}\n\n`;
      let written = 0;
      const server = yield* Effect.acquireRelease(
        Effect.promise(
          () =>
            new Promise<ReturnType<typeof createServer>>((resolve) => {
              const made = createServer((_, response) => {
                response.writeHead(200, { "content-type": "text/event-stream" });
                const write = (): void => {
                  while (written < 256 * 1024 * 1024) {
                    written += piece.length;
                    if (response.write(piece)) continue;
                    response.once("drain", write);
                    return;
                  }
                };
                response.on("close", () => response.destroy());
                write();
              });
              made.listen(0, "127.0.0.1", () => resolve(made));
            }),
        ),
        (made) => Effect.promise(() => new Promise((done) => made.close(done))),
      );
      const address = server.address();
      const port = typeof address === "object" ? address?.port : undefined;
      const { fetch: made } = yield* setup(undefined);
      const url = `http://127.0.0.1:${port}/v1/chat/completions`;
      const response = yield* Effect.promise(() =>
        made(url, { method: "POST", body: JSON.stringify(bodies["openai-chat"]) }),
      );
      const reader = response.body?.getReader();
      yield* Effect.promise(async () => reader?.read());
      let before = -1;
      // The server writes until the sockets between are full, and then no more.
      while (before !== written) {
        before = written;
        for (let turn = 0; turn < 200; turn++) yield* Effect.promise(() => new Promise((done) => setImmediate(done)));
      }
      assert.isBelow(written, 64 * 1024 * 1024);
      yield* Effect.promise(async () => reader?.cancel());
    }),
  );
});
