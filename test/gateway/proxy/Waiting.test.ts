/** The signals that a waiting client of the gateway gets, over real sockets: clients with their own timeouts, questions, ends. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect } from "effect";
import { Agent, request as undiciRequest } from "undici";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { protocols as decoders } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { serverOf } from "../../Servers.ts";
import { samples, talkIds } from "../../samples/index.ts";
import { bodies, front, fronted, type Got, paths, post, protocols, recovery, send } from "../GatewayCases.ts";

type ProtocolId = (typeof protocols)[number];

/** A known client, and an unknown one. */
const agents = {
  codex: { "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64)", originator: "codex_exec" },
  claude: { "user-agent": "claude-cli/2.1.330 (external, sdk-cli)", "x-app": "cli" },
  qwen: { "user-agent": "QwenCode/0.24.4 (linux; x64)" },
  gemini: { "user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64)" },
} as const;

/** Sends the head at once, so that later events follow one. */
const early: Pick<GatewayProgram, "clients"> = {
  clients: {
    unknown: { patienceMs: 0 },
    codex: { patienceMs: 0 },
    "claude-code": { patienceMs: 0 },
    "qwen-code": { patienceMs: 0 },
    "gemini-cli": { patienceMs: 0 },
  },
};

/** A client with its own timeouts: one for the head, and one that restarts with every chunk that it counts. */
const clocked = (
  url: string,
  protocol: ProtocolId,
  headers: Record<string, string>,
  { counts, headMs, idleMs }: { counts: RegExp; headMs: number; idleMs: number },
) =>
  new Promise<{ text: string; end: "whole" | "broken" | "no head" | "idle" }>((resolve) => {
    let text = "";
    let clock: AbortSignal | undefined;
    const give = (end: "whole" | "broken" | "no head" | "idle") => {
      clock = undefined;
      request.destroy();
      resolve({ text, end });
    };
    const wait = (ms: number, end: "no head" | "idle") => {
      const waits = AbortSignal.timeout(ms);
      clock = waits;
      waits.addEventListener("abort", () => void (clock === waits && give(end)));
    };
    const request = httpRequest(`${url}${paths[protocol]}`, { method: "POST", agent: false, headers });
    wait(headMs, "no head");
    request.on("error", () => undefined);
    request.on("response", (response: IncomingMessage) => {
      wait(idleMs, "idle");
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (counts.test(chunk.toString())) wait(idleMs, "idle");
      });
      response.on("error", () => undefined);
      response.on("close", () => give(response.complete ? "whole" : "broken"));
    });
    request.end(JSON.stringify(bodies[protocol]));
  });

/** Completes once a client has got `count` comments or no-ops of a chat. */
const hearing = (count: number) => {
  const heard = Deferred.makeUnsafe<void>();
  let text = "";
  const onData = (chunk: Buffer) => {
    text += chunk.toString();
    if (noOpsOf(text) >= count) Deferred.doneUnsafe(heard, Effect.void);
  };
  return { onData, heard: Deferred.await(heard) };
};

const noOpsOf = (text: string): number =>
  text.match(/^: keep-alive$|"delta":(?:\{\}|\{"role":"assistant"\}),"finish_reason":null/gm)?.length ?? 0;

const slowly = { content: [{ text: 5 }], delay_ms: 100 };

describe("Gateway, a waiting client", () => {
  for (const protocol of protocols) {
    for (const reveal of ["live", "on_complete"] as const) {
      it.live(`withholds the head of a ${protocol} response while it can still send a status, ${reveal}`, () =>
        Effect.gen(function* () {
          const { server, url } = yield* fronted(
            { answers: [{ break: { kind: "rst", at: "after_head" } }] },
            { reveal, keepAliveMs: 1, budget: { max_auto_retries: 1 } },
          );
          const got = yield* post(url, protocol);
          assert.strictEqual(got.status, 400);
          assert.strictEqual(recovery(got, "attempts"), "2");
          assert.lengthOf(yield* server.log, 2);
        }),
      );
    }

    it.live.skipIf(!talkIds.includes(protocol))(
      `keeps a ${protocol} client waiting for a call with its protocol's no-ops, never inside an event`,
      () =>
        Effect.gen(function* () {
          const { url } = yield* fronted(
            { answers: [{ content: [{ tool: "pay" }], delay_ms: 25 }] },
            { keepAliveMs: 5, ...early },
          );
          const got = yield* post(url, protocol);
          assert.isFalse(got.broken);
          assert.match(got.text, samples[protocol].noOp);
          if (protocol === "google-gemini") assert.notMatch(got.text, /^:/m);
          const decoder = Decoder.make(decoders.get(protocol));
          const parts = decoder.push(got.body);
          assert.isUndefined(decoder.failure);
          assert.isTrue(decoder.end().end.complete);
          assert.strictEqual(
            parts.flatMap(({ observation }) => observation.calls).filter(({ phase }) => phase === "ready").length,
            1,
          );
        }),
    );
  }

  it.live("outlasts a client that counts events, one that counts chunks, and one that waits for a head", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted(
        { answers: [slowly] },
        {
          keepAliveMs: 20,
          reveal: "on_complete",
          clients: { codex: { patienceMs: 60 }, "qwen-code": { patienceMs: 60 } },
        },
      );
      const event = { counts: /^(?:event|data):/m, headMs: 5_000, idleMs: 250 };
      const codex = yield* Effect.promise(() => clocked(url, "openai-responses", agents.codex, event));
      assert.strictEqual(codex.end, "whole");
      assert.match(codex.text, /^event: keepalive\ndata: \{"type":"keepalive","sequence_number":0\}/);
      const chunks = { counts: /"choices"/, headMs: 250, idleMs: 250 };
      const qwen = yield* Effect.promise(() => clocked(url, "openai-chat", agents.qwen, chunks));
      assert.strictEqual(qwen.end, "whole");
      assert.lengthOf(yield* server.log, 2, "a client asked again");
    }),
  );

  it.live("resets undici's body timeout, and sends its own head if the provider sends none", () =>
    Effect.gen(function* () {
      const { url } = yield* fronted(
        { answers: [{ head_delay_ms: 600, content: [{ text: 2 }] }] },
        { keepAliveMs: 20, ...early },
      );
      const dispatcher = new Agent({ bodyTimeout: 250, headersTimeout: 250 });
      const got = yield* Effect.promise(async () => {
        const address = `${url}${paths["google-gemini"]}`;
        const sent = { method: "POST", headers: agents.gemini, body: JSON.stringify(bodies["google-gemini"]) } as const;
        const { body, headers, statusCode } = await undiciRequest(address, { ...sent, dispatcher });
        return { statusCode, headers, text: await body.text() };
      });
      yield* Effect.promise(() => dispatcher.close());
      assert.strictEqual(got.statusCode, 200);
      assert.strictEqual(got.headers["x-recovery-waiting"], "true");
      assert.match(String(got.headers["content-type"]), /^text\/event-stream/);
      assert.strictEqual(got.headers["x-accel-buffering"], "no");
      assert.notMatch(got.text, /^:/m);
    }),
  );

  it.live("hands a response over as live once it has been held for the maximum time", () =>
    Effect.gen(function* () {
      const { url } = yield* fronted(
        { answers: [{ content: [{ text: 60 }], delay_ms: 20 }] },
        { reveal: "on_complete", holdMaxMs: 300 },
      );
      const came: Array<number> = [];
      yield* post(url, "openai-chat", { onData: () => came.push(came.length) });
      assert.isAbove(came.length, 5, "the response came at once");
    }),
  );

  it.live("writes no no-op into an event, even for a client that reads nothing for a while", () =>
    Effect.gen(function* () {
      const big = JSON.stringify({
        choices: [{ index: 0, delta: { content: "x".repeat(60_000) }, finish_reason: null }],
      });
      const call = JSON.stringify({
        choices: [
          {
            index: 0,
            delta: { tool_calls: [{ index: 0, id: "c", function: { name: "pay", arguments: "{" } }] },
            finish_reason: null,
          },
        ],
      });
      const at = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (let n = 0; n < 200; n += 1) response.write(`data: ${big}\n\n`);
        response.write(`data: ${call}\n\n`);
      });
      const { gateway } = yield* front(at, { keepAliveMs: 2, clients: early.clients ?? {} });
      const asked = JSON.stringify(bodies["openai-chat"]);
      const socket = connect(gateway.port, "127.0.0.1");
      const read = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            const request = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${asked.length}\r\n\r\n`;
            const chunks: Array<string> = [];
            let late = 0;
            socket.on("error", () => undefined);
            socket.write(request + asked);
            // It reads a little, then nothing during many no-ops, and then the rest.
            socket.once("data", () => {
              socket.pause();
              socket.setTimeout(300, () => void socket.resume());
            });
            socket.on("data", (bytes: Buffer) => {
              const chunk = bytes.toString("latin1");
              chunks.push(chunk);
              late = chunk.includes("xxx") ? 0 : late + noOpsOf(chunk);
              if (late >= 3) resolve(chunks.join(""));
            });
          }),
      );
      socket.destroy();
      // Removes the sizes of the transfer coding between the pieces.
      const body = read.slice(read.indexOf("\r\n\r\n") + 4).replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/g, "");
      const events = body.split("\n\n").slice(0, -1);
      for (const event of events) if (!event.startsWith(":")) JSON.parse(event.slice("data: ".length));
      assert.strictEqual(events.filter((event) => event.length > 60_000).length, 200);
    }),
  );
});

describe("Gateway, an open question", () => {
  const hold = { onQuestion: "hold", keepAliveMs: 5 } as const;
  const asking = JSON.stringify({ ...bodies["openai-chat"], tools: [{ type: "mcp", server_label: "shop" }] });
  const broken = { break: { kind: "rst", at: "after_head" } } as const;
  const whole = { content: [{ text: 3 }] } as const;

  /** Answers the first question with `retry` once it is asked and its client has waited for it. */
  const retried = ({ services, until }: Effect.Success<ReturnType<typeof fronted>>, waited: Effect.Effect<void>) =>
    Effect.gen(function* () {
      const recorder = Context.get(services, RunRecorder);
      const { question, run_id } = yield* until(([run]) =>
        run?.questions[0] === undefined ? undefined : { question: run.questions[0], run_id: run.run_id },
      );
      assert.include(question.choices, "retry");
      yield* waited;
      yield* recorder.answer({ run_id, revision: question.revision, choice: "retry", by: "person" });
    });

  it.live("keeps its client waiting: before the head, after one of our own, and for a document", () =>
    Effect.gen(function* () {
      const noStream = JSON.stringify({ ...JSON.parse(asking), stream: false });
      const json = { body: { choices: [{ message: { content: "hi" } }] } } as const;
      for (const [name, program, body, answer] of [
        ["before the head", hold, asking, whole],
        ["behind a head", { ...hold, ...early }, asking, whole],
        ["no stream", { ...hold, ...early }, noStream, json],
      ] as const) {
        const gateway = yield* fronted({ answers: [broken, answer] }, program);
        const { heard, onData } = hearing(3);
        const answered = retried(gateway, name === "behind a head" ? heard : Effect.void);
        const [got] = yield* Effect.all([post(gateway.url, "openai-chat", { body, onData }), answered], {
          concurrency: 2,
        });
        assert.strictEqual(got.status, 200, name);
        assert.isFalse(got.broken, name);
        assert.strictEqual(noOpsOf(got.text) >= 3, name === "behind a head", name);
      }
    }),
  );

  it.live("gets its default when it expires: a plain status before the head", () =>
    Effect.gen(function* () {
      const { until, url } = yield* fronted({ answers: [broken] }, { ...hold, holdMs: 50 });
      const got = yield* post(url, "openai-chat", { body: asking });
      assert.strictEqual(got.status, 400);
      assert.strictEqual(yield* until((runs) => runs[0]?.questions[0]?.answered_by), "expiry");
    }),
  );

  it.live("is not asked if no choice has an effect: the run ends at once, as with fail", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* fronted(
        { answers: [{ content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } }] },
        hold,
      );
      assert.isTrue((yield* post(url, "openai-chat")).broken);
      const [run] = yield* runs;
      assert.strictEqual(run?.end?.reason, "text_shown");
      assert.lengthOf(run?.questions ?? [], 0);
    }),
  );

  it.live("ends with its client", () =>
    Effect.gen(function* () {
      for (const program of [hold, { ...hold, ...early }]) {
        const { until, url } = yield* fronted({ answers: [broken] }, program);
        const request = httpRequest(`${url}/v1/chat/completions`, { method: "POST", agent: false });
        request.on("error", () => undefined);
        request.on("response", (response) => response.on("error", () => undefined).resume());
        request.end(asking);
        yield* until((runs) => runs[0]?.questions[0]);
        request.destroy();
        assert.strictEqual(yield* until((runs) => runs[0]?.end?.reason), "user_cancelled");
      }
    }),
  );
});

/** A response that fails once its client has seen text, and the number of requests. */
const failing = (error: object, headers: Record<string, string>) =>
  Effect.gen(function* () {
    let requests = 0;
    let fail = () => {};
    const at = yield* serverOf((_, response) => {
      requests += 1;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`${shown}\n\n`);
      fail = () => void response.end(`event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`);
    });
    const { url } = yield* front(at);
    const onData = (chunk: Buffer) => {
      if (chunk.includes("visible")) fail();
    };
    const got = yield* post(url, "anthropic-messages", { headers, onData });
    return { ...got, url, requests: () => requests };
  });

const overloaded = { type: "overloaded_error", message: "Overloaded" };

describe("Gateway, a failed run", () => {
  const cut = { content: [{ text: 5 }], break: { kind: "rst", at: "terminal" } } as const;

  for (const protocol of protocols) {
    it.live(
      `ends for a known ${protocol} client with an error and a clean end, and never with a terminal marker (L5)`,
      () =>
        Effect.gen(function* () {
          const { url } = yield* fronted({ answers: [cut] });
          const got = yield* post(url, protocol, { headers: agents.gemini });
          assert.isFalse(got.broken, "a known client is told by a clean end behind the error event");
          const decoder = Decoder.make(decoders.get(protocol));
          const parts = decoder.push(got.body);
          assert.isFalse(parts.some(({ observation }) => observation.terminal));
          assert.isFalse(decoder.end().end.complete);
          assert.include(got.text, "stream-recovery gateway");
          const unknown = yield* fronted({ answers: [cut] });
          const broken = yield* post(unknown.url, protocol);
          assert.isTrue(broken.broken, "an unknown client is told, and its body breaks behind that");
          assert.include(broken.text, "stream-recovery gateway");
        }),
    );
  }

  it.live("rewords the provider's transient failure, and passes its final one on", () =>
    Effect.gen(function* () {
      const told = yield* failing(overloaded, agents.claude);
      assert.isFalse(told.broken);
      assert.include(told.text, "visible");
      assert.notInclude(told.text, "overloaded");
      assert.include(told.text, "invalid_request_error");
      const kept = yield* failing({ type: "invalid_request_error", message: "too long" }, agents.claude);
      assert.include(kept.text, "too long");
      assert.isFalse(kept.broken);
      const unknown = yield* failing(overloaded, {});
      assert.include(unknown.text, "invalid_request_error");
      assert.notInclude(unknown.text, "overloaded");
      assert.isTrue(unknown.broken);
    }),
  );

  it.live("answers claude-code's second request, which does not stream, from memory with the same 424", () =>
    Effect.gen(function* () {
      const headers = { ...agents.claude, "content-type": "application/json" };
      const first = yield* failing(overloaded, headers);
      assert.include(first.text, "invalid_request_error");
      const { stream: _, ...body } = bodies["anthropic-messages"] as Record<string, unknown>;
      const again = yield* post(first.url, "anthropic-messages", { headers, body: JSON.stringify(body) });
      assert.strictEqual(again.status, 424);
      assert.strictEqual(JSON.parse(again.text).type, "error");
      assert.strictEqual(first.requests(), 1);
    }),
  );

  it.live("leaves a first break after text to a client that retries it, and answers its repeat from memory", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({ answers: [cut] });
      const first = yield* post(url, "openai-responses", { headers: agents.codex });
      assert.isTrue(first.broken);
      assert.notInclude(first.text, "stream-recovery gateway");
      const again = yield* post(url, "openai-responses", { headers: agents.codex });
      assert.isFalse(again.broken);
      assert.include(again.text, '"code":"invalid_prompt"');
      const third = yield* post(url, "openai-responses", { headers: agents.codex });
      assert.strictEqual(third.status, 400);
      assert.lengthOf(yield* server.log, 2);
    }),
  );

  it.live("answers no first cut after text from memory for a program above a client that does not retry it", () =>
    Effect.gen(function* () {
      const headers = { "user-agent": "langchainjs-openai/1.0.0" };
      const once = yield* fronted({ answers: [cut, { content: [{ text: 3 }] }] });
      assert.include((yield* post(once.url, "openai-chat", { headers })).text, "stream-recovery gateway");
      const again = yield* post(once.url, "openai-chat", { headers });
      assert.strictEqual(again.status, 200);
      assert.notInclude(again.text, "stream-recovery gateway");
      const always = yield* fronted({ answers: [cut] });
      const statuses: Array<number> = [];
      for (let n = 0; n < 4; n += 1) statuses.push((yield* post(always.url, "openai-chat", { headers })).status);
      assert.deepStrictEqual(statuses, [200, 200, 400, 400]);
    }),
  );

  it.live("ends as the provider did if so configured: a clean end after everything that may leave", () =>
    Effect.gen(function* () {
      const program = { onBreak: "as_provider" } as const;
      const ended = yield* fronted(
        { answers: [{ content: [{ text: 5 }], break: { kind: "end", at: "terminal" } }] },
        program,
      );
      const got = yield* post(ended.url, "openai-chat");
      assert.isFalse(got.broken);
      const [row] = yield* ended.server.log;
      for (const serial of row?.text ?? []) assert.include(got.text, serial);
      assert.notInclude(got.text, "stream-recovery");
      const calling = { content: [{ text: 5 }, { tool: "pay" }], break: { kind: "end", at: "terminal" } } as const;
      const held = yield* post((yield* fronted({ answers: [calling] }, program)).url, "openai-chat");
      assert.isFalse(held.broken);
      assert.notInclude(held.text, "pay");
      assert.isTrue((yield* post((yield* fronted({ answers: [cut] }, program)).url, "openai-chat")).broken);
    }),
  );

  it.live("passes on a refusal that was not retried, and one that was with its words and without a further retry", () =>
    Effect.gen(function* () {
      const refused = yield* fronted({ answers: [{ status: 401 }] });
      assert.strictEqual((yield* post(refused.url, "openai-chat")).status, 401);
      const statuses: Array<Got["status"]> = [];
      const overloaded = yield* fronted(
        { answers: [{ status: 529 }] },
        { budget: { max_auto_retries: 1, max_not_processed: 1 } },
      );
      for (const headers of [agents.codex, agents.claude, {}]) {
        const body = JSON.stringify({ ...bodies["anthropic-messages"], metadata: headers });
        const got = yield* post(overloaded.url, "anthropic-messages", { headers, body });
        statuses.push(got.status);
        assert.strictEqual(got.headers["x-should-retry"], "false");
        assert.match(got.text, /overloaded/i);
      }
      assert.deepStrictEqual(statuses, [400, 424, 529]);
    }),
  );

  it.live("breaks the connection of a client that waits when the gateway closes, so that it retries", () =>
    Effect.gen(function* () {
      const at = yield* serverOf(
        (_, response) => void response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders(),
      );
      const got = yield* Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* front(at, { keepAliveMs: 5, ...early });
          const { heard, onData } = hearing(1);
          const body = JSON.stringify(bodies["openai-chat"]);
          const sent = send(`${url}/v1/chat/completions`, { body, headers: agents.qwen, onData });
          yield* heard;
          return { sent };
        }),
      ).pipe(Effect.flatMap(({ sent }) => Effect.promise(() => sent)));
      assert.isTrue(got.broken);
      assert.notInclude(got.text, "stream-recovery gateway");
    }),
  );
});

/** An Anthropic response up to its first text. */
const shown = [
  { type: "message_start", message: { id: "m", content: [] } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "visible" } },
]
  .map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}`)
  .join("\n\n");
