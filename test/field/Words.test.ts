/**
 * Plays failures whose messages were false or lost in the field, in every protocol: the client reads what really happened.
 */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import { bodies, front, type Got, paths, post, protocols, send } from "../gateway/GatewayCases.ts";
import { serverOf } from "../Servers.ts";

type Answer = (response: ServerResponse) => void;

const json = { "content-type": "application/json" };

const page = (title: string): string =>
  `<!doctype html><html><head><title>${title}</title></head><body>x</body></html>`;

const html =
  (title: string, type = "text/html; charset=utf-8"): Answer =>
  (response) =>
    response.writeHead(200, { "content-type": type }).end(page(title));

const refusing =
  (status: number, body: object): Answer =>
  (response) =>
    response.writeHead(status, json).end(JSON.stringify(body));

/** Plays the same answer to every attempt, or the answers in order and the last one from then on. */
const played = (protocol: ProtocolId, answers: ReadonlyArray<Answer>, headers: Record<string, string> = {}) =>
  Effect.gen(function* () {
    let requests = 0;
    const provider = yield* serverOf((asked, response) => {
      asked.resume().on("end", () => {
        requests += 1;
        answers[Math.min(requests, answers.length) - 1]?.(response);
      });
    });
    const gateway = yield* front(provider);
    const got = yield* post(gateway.url, protocol, { headers: { ...json, ...headers } });
    return { gateway, got, requests: () => requests };
  });

/** The message of an error document of any of the protocols. */
const messageOf = ({ text }: Got): string => {
  const { error, message } = JSON.parse(text);
  return String(message ?? error.message ?? error);
};

const agents = { unknown: {}, codex: { "user-agent": "codex_exec/0.169.0 (x)", originator: "codex_exec" } };

for (const protocol of protocols)
  describe.concurrent(`the words of ${protocol}`, () => {
    for (const [name, headers] of Object.entries(agents))
      it.live(`name the type and the title of a page under status 200, to a client that is ${name}`, () =>
        Effect.gen(function* () {
          const { got, requests } = yield* played(protocol, [html('Sign in &amp; go\n to "work"')], headers);
          assert.strictEqual(got.status, 400);
          assert.strictEqual(requests(), 4);
          const message = messageOf(got);
          assert.include(message, "a web page (text/html) arrived instead of the model provider's response");
          assert.include(message, "with the title \"Sign in &amp; go to 'work'\"");
        }),
      );

    it.live("do not repeat a title that makes clients retry, and truncate a long one", () =>
      Effect.gen(function* () {
        const { got } = yield* played(protocol, [html(`503 Service Unavailable ${"portal ".repeat(200)}`)]);
        const message = messageOf(got);
        assert.notMatch(message, /503|unavailable/i);
        assert.include(message, "portal");
        assert.isBelow(message.length, 400);
      }),
    );

    it.live("report a page that claims to be a stream of events", () =>
      Effect.gen(function* () {
        const { got } = yield* played(protocol, [html("Portal", "text/event-stream")]);
        assert.include(messageOf(got), 'with the title "Portal"');
      }),
    );

    it.live("report a body that is not in the encoding that its header names", () =>
      Effect.gen(function* () {
        const plain: Answer = (response) =>
          response
            .writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
            .end("data: {}\n\n");
        const { got } = yield* played(protocol, [plain]);
        assert.include(messageOf(got), "the response's header says gzip, but its body is not gzip");
        assert.strictEqual(got.headers["x-recovery-code"], "not_gzip");
      }),
    );

    it.live("do not report the encoding of a body that is damaged after its beginning", () =>
      Effect.gen(function* () {
        const whole = gzipSync(Buffer.from(": a\n\n".repeat(20_000)));
        const damaged: Answer = (response) => {
          response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" });
          response.write(gzipSync(Buffer.from(": a\n\n".repeat(100_000)), { level: 0 }).subarray(0, 300_000));
          response.end(Buffer.concat([Buffer.alloc(4_096, 0xff), whole]));
        };
        const { got } = yield* played(protocol, [damaged]);
        assert.notInclude(got.text, "is not gzip");
      }),
    );

    it.live("do not call a lost connection an invalid request before the head", () =>
      Effect.gen(function* () {
        const { got, requests } = yield* played(protocol, [(response) => response.socket?.resetAndDestroy()]);
        assert.strictEqual(requests(), 4);
        assert.strictEqual(got.status, 400);
        assert.strictEqual(got.headers["x-should-retry"], "false");
        assert.notMatch(got.text, /invalid_request|invalid_prompt/);
      }),
    );

    for (const [status, body] of [
      [500, { error: { type: "api_error", message: "insufficient balance (1008)" } }],
      [429, { error: { type: "rate_limit_error", message: "Your account balance is insufficient, please recharge" } }],
      [200, { code: 1113, msg: "Insufficient balance", success: false }],
    ] as const)
      it.live(`reach the client once if an empty account is reported only in words, with status ${status}`, () =>
        Effect.gen(function* () {
          const { got, requests } = yield* played(protocol, [refusing(status, body)]);
          assert.strictEqual(requests(), 1);
          assert.match(got.text, /balance/i);
        }),
      );

    it.live("are obeyed if only a sentence announces a wait", () =>
      Effect.gen(function* () {
        const limited = refusing(429, { error: { type: "rate_limit_error", message: "Please try again in 20ms." } });
        const stop = refusing(404, { error: { type: "not_found_error", message: "done" } });
        const { got, requests } = yield* played(protocol, [limited, stop]);
        assert.strictEqual(requests(), 2);
        assert.include(got.text, "done");
      }),
    );

    it.live("report a page instead of a document", () =>
      Effect.gen(function* () {
        let requests = 0;
        const provider = yield* serverOf((asked, response) => {
          asked.resume().on("end", () => {
            requests += 1;
            html("Portal")(response);
          });
        });
        const gateway = yield* front(provider);
        const path = paths[protocol].replace(":streamGenerateContent?alt=sse", ":generateContent");
        const body = JSON.stringify({ ...bodies[protocol], stream: false });
        const got = yield* Effect.promise(() => send(`${gateway.url}${path}`, { body }));
        assert.strictEqual(requests, 4);
        assert.include(messageOf(got), 'with the title "Portal"');
      }),
    );
  });
