/** A provider's lasting refusal through the gateway: its own words reach the person, and its client's repeat costs nothing. */
import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { serverOf } from "../../Servers.ts";
import { samples } from "../../samples/index.ts";
import { bodies, front, type Got, protocols, send } from "../GatewayCases.ts";

const secret = "sk-test-1234567890abcdef";

const message = `Overloaded: too many of your team "blue" are here, key ${secret}`;

/** Every event with which a stream can be refused. */
const inStream = (protocol: ProtocolId): string => {
  const { errorEvent, frame, refusal } = samples[protocol];
  return frame(errorEvent(refusal(message).document));
};

const refusing =
  (protocol: ProtocolId, seen: Array<IncomingHttpHeaders>): RequestListener =>
  (request, response) => {
    seen.push(request.headers);
    const { document, status } = samples[protocol].refusal(message);
    response.writeHead(status, {
      "content-type": "application/json",
      "x-provider": "theirs",
      "x-should-retry": "true",
      "set-cookie": "a=b",
      connection: "x-hop, close",
      "x-hop": "1",
    });
    response.end(JSON.stringify(document));
  };

const agents = {
  codex: "codex_exec/0.169.0 (Debian 12.0.0; x86_64)",
  "claude-code": "claude-cli/2.1.330 (external, sdk-cli)",
  pi: "OpenAI/JS 6.26.0",
  unknown: "curl/8.5.0",
} as const;

/** A budget of one retry, whatever the default is. */
const budget = { max_not_processed: 1, max_auto_retries: 1 };

const asks = (url: string, protocol: ProtocolId, client: keyof typeof agents, stream = true) => {
  const path = stream ? samples[protocol].path : samples[protocol].documentPath;
  // No client repeats the request of another.
  const body = JSON.stringify({
    ...bodies[protocol],
    user: client,
    ...(stream ? {} : samples[protocol].streams(false)),
  });
  const headers = {
    "content-type": "application/json",
    "user-agent": agents[client],
    authorization: `Bearer ${secret}`,
  };
  return Effect.promise(() => send(`${url}${path}`, { body, headers }));
};

/** The message of an error document, which is its `error` in Ollama's protocol, and beside it in Cohere's. */
const messageOf = ({ text }: Got): string => {
  const { error, message } = JSON.parse(text);
  return message ?? error.message ?? error;
};

/** The words that pi considers a transient fault, copied from pi. */
const pi =
  /overloaded|provider.?returned.?error|rate.?limit|too many requests|429|500|502|503|504|service.?unavailable|server.?error|internal.?error|network.?error|connection.?error|timed? out|timeout|terminated|retry delay/i;

describe.concurrent("a lasting refusal", () => {
  for (const protocol of protocols) {
    for (const stream of [true, false]) {
      it.live(`is quoted to a client with a row, ${protocol}, stream ${stream}`, () =>
        Effect.gen(function* () {
          const seen: Array<IncomingHttpHeaders> = [];
          const { url } = yield* front(yield* serverOf(refusing(protocol, seen)), { budget });
          for (const [client, status] of [
            ["codex", 400],
            ["claude-code", 424],
          ] as const) {
            seen.length = 0;
            const got = yield* asks(url, protocol, client, stream);
            assert.strictEqual(got.status, status);
            assert.strictEqual(got.headers["x-should-retry"], "false");
            assert.include(
              messageOf(got),
              "says \"Overloaded: too many of your team 'blue' are here, key [redacted]\"",
            );
            assert.notInclude(got.text, secret);
            assert.lengthOf(seen, 2);
            const again = yield* asks(url, protocol, client, stream);
            assert.strictEqual(again.status, status);
            assert.include(messageOf(again), "team 'blue'");
            assert.lengthOf(seen, 2, "a repeat was sent");
          }
        }),
      );

      it.live(`reaches an unknown client as it was, ${protocol}, stream ${stream}`, () =>
        Effect.gen(function* () {
          const seen: Array<IncomingHttpHeaders> = [];
          const { url } = yield* front(yield* serverOf(refusing(protocol, seen)), { budget });
          for (const isRepeat of [false, true]) {
            const got = yield* asks(url, protocol, "unknown", stream);
            const { document, status } = samples[protocol].refusal(message.replace(secret, "[redacted]"));
            assert.strictEqual(got.status, status);
            assert.deepStrictEqual(JSON.parse(got.text), document);
            assert.isFalse(got.broken);
            const { "set-cookie": cookie, "x-hop": hop, "x-provider": own, "x-should-retry": retry } = got.headers;
            assert.deepStrictEqual(
              { cookie, hop, own, retry },
              { cookie: undefined, hop: undefined, own: "theirs", retry: "false" },
            );
            assert.match(String(got.headers["x-recovery-age"]), isRepeat ? /^\d+$/ : /^undefined$/);
          }
          assert.lengthOf(seen, 2, "a repeat was sent");
        }),
      );
    }

    it.live(`gives pi no reason to ask again, ${protocol}`, () =>
      Effect.gen(function* () {
        const { url } = yield* front(yield* serverOf(refusing(protocol, [])), { budget });
        const got = yield* asks(url, protocol, "pi");
        assert.strictEqual(got.status, 400);
        assert.include(messageOf(got), "too many of your team 'blue' are here");
        assert.notMatch(got.text, pi);
      }),
    );

    it.live(`is quoted if it came as an event of a stream, ${protocol}`, () =>
      Effect.gen(function* () {
        let requests = 0;
        const at = yield* serverOf((_, response) => {
          requests += 1;
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.end(inStream(protocol));
        });
        const { url } = yield* front(at, { budget });
        for (const client of ["codex", "unknown"] as const) {
          requests = 0;
          const got = yield* asks(url, protocol, client);
          assert.strictEqual(got.status, 400, got.text);
          assert.include(messageOf(got), "too many of your team 'blue' are here, key [redacted]");
          assert.strictEqual(requests, 2);
        }
      }),
    );
  }

  it.live("is reported with a status, not after a head of the gateway's own, whatever its budget", () =>
    Effect.gen(function* () {
      for (const stream of [true, false]) {
        const seen: Array<IncomingHttpHeaders> = [];
        const clients = { unknown: { patienceMs: 2_500 } };
        const program = { clients, budget: { max_not_processed: 9 } };
        const { url } = yield* front(yield* serverOf(refusing("anthropic-messages", seen)), program);
        const got = yield* asks(url, "anthropic-messages", "unknown", stream);
        assert.strictEqual(got.status, 529);
        assert.include(got.text, "Overloaded");
        assert.lengthOf(seen, 2, "the second wait would outlast the client's patience");
      }
    }),
  );

  it.live("of an account without credit is not retried, with any status and in any place", () =>
    Effect.gen(function* () {
      const spent = { code: 1113, msg: "Insufficient balance", success: false };
      for (const [status, body] of [
        [200, spent],
        [429, { error: { message: "insufficient balance (1008)", type: "x" } }],
        [500, { error: { message: "You have reached your weekly limit", type: "x" } }],
      ] as const) {
        let requests = 0;
        const at = yield* serverOf((_, response) => {
          requests += 1;
          response.writeHead(status, { "content-type": "application/json" });
          response.end(JSON.stringify(body));
        });
        const { url } = yield* front(at);
        const got = yield* asks(url, "openai-chat", "unknown");
        assert.deepStrictEqual(
          { status: got.status, body: JSON.parse(got.text), requests },
          { status, body, requests: 1 },
        );
      }
    }),
  );
});
