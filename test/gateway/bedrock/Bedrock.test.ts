/**
 * Amazon Bedrock's two protocols through the gateway: binary messages in, the same bytes out, recovered like every other protocol.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { protocols as registry } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { eventStreamMessage } from "../../../src/testing/answers/Bedrock.ts";
import { Answers } from "../../../src/testing/index.ts";
import { samples } from "../../samples/index.ts";
import { fronted, type Got, post, recovery, send } from "../GatewayCases.ts";

const both = ["bedrock-converse", "bedrock-invoke"] as const;

/** What a client of the protocol reads in a response. */
const decoded = (id: (typeof both)[number], { body }: Got) => {
  const decoder = Decoder.make(registry.get(id));
  const parts = decoder.push(Uint8Array.from(body));
  return {
    parts,
    text: parts.map(({ json }) => samples[id].read(json).text).join(""),
    failure: decoder.failure,
    end: decoder.end().end,
    last: parts.at(-1)?.event,
  };
};

const script = (answers: ReadonlyArray<object>) => ({ answers }) as Parameters<typeof fronted>[0];

describe.concurrent("the gateway in front of Amazon Bedrock", () => {
  for (const id of both) {
    it.live(`${id}: relays a healthy stream byte for byte, with its content type`, () =>
      Effect.gen(function* () {
        const content = [{ reasoning: 2 }, { text: 5 }, { ping: 1 }, { tool: "bash", input: { cmd: "ls" } }];
        const { runs, url } = yield* fronted(script([{ content }]));
        const got = yield* post(url, id);
        assert.deepStrictEqual([got.status, got.broken], [200, false]);
        assert.strictEqual(got.headers["content-type"], "application/vnd.amazon.eventstream");
        const sent = Answers.render(id, 1, { content }).map(({ frame }) => Buffer.from(frame));
        assert.strictEqual(got.body.toString("hex"), Buffer.concat(sent).toString("hex"));
        assert.isTrue(decoded(id, got).end.complete);
        const [run] = yield* runs;
        assert.strictEqual(run?.end?.state, "completed");
        assert.strictEqual(run?.provider.model, "anthropic.m-v1:0");
      }),
    );

    it.live(`${id}: replays unseen breaks, exceptions and refusals`, () =>
      Effect.gen(function* () {
        for (const first of [
          { break: { kind: "rst", at: "before_head" } },
          { content: [{ reasoning: 1 }, { text: 2 }], break: { kind: "end", at: "event", n: 1 } },
          { content: [{ error: "rate_limited" }] },
          { content: [{ error: "server_error" }] },
          { status: 503 },
          { status: 429, headers: { "retry-after": "0" } },
          { content: [{ tool: "bash" }], break: { kind: "rst", at: "tool_arguments" } },
        ]) {
          const { server, url } = yield* fronted(script([first, { content: [{ text: 3 }] }]));
          const got = yield* post(url, id);
          assert.deepStrictEqual([got.status, got.broken], [200, false], JSON.stringify(first));
          assert.strictEqual(recovery(got, "attempts"), "2", JSON.stringify(first));
          assert.strictEqual(decoded(id, got).text, "r2.0·r2.1·r2.2·");
          assert.lengthOf(yield* server.log, 2);
        }
      }),
    );

    it.live(`${id}: forwards a refusal that a repeat cannot change, unchanged`, () =>
      Effect.gen(function* () {
        const { server, url } = yield* fronted(script([{ status: 400 }]));
        const got = yield* post(url, id);
        assert.deepStrictEqual([got.status, got.text], [400, '{"message":"status 400"}']);
        assert.match(String(got.headers["x-amzn-errortype"]), /^ValidationException/);
        assert.lengthOf(yield* server.log, 1);
      }),
    );

    it.live(`${id}: never completes a response that was cut, and says so in the protocol's own form`, () =>
      Effect.gen(function* () {
        const cut = { content: [{ text: 3 }], break: { kind: "end", at: "terminal" } };
        const { runs, server, url } = yield* fronted(script([cut]));
        const got = yield* post(url, id);
        assert.isTrue(got.broken, "the body breaks, because the client is unknown");
        const { failure, last, text } = decoded(id, got);
        assert.strictEqual(text, "r1.0·r1.1·r1.2·");
        assert.strictEqual(last?.event, "validationException");
        assert.match(last?.data ?? "", /stream-recovery gateway: /);
        assert.deepInclude(failure, { kind: "rejected", in_band: true });
        assert.strictEqual((yield* runs)[0]?.end?.reason, "text_shown");
        assert.lengthOf(yield* server.log, 1);
      }),
    );

    it.live(`${id}: ends cleanly for AWS's SDK, which throws the exception`, () =>
      Effect.gen(function* () {
        const cut = { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } };
        const { url } = yield* fronted(script([cut]));
        const headers = { "content-type": "application/json", "user-agent": "aws-sdk-js/3.1164.0 ua/2.1" };
        const got = yield* post(url, id, { headers });
        assert.isFalse(got.broken);
        assert.strictEqual(decoded(id, got).last?.event, "validationException");
      }),
    );

    it.live(`${id}: takes a flipped bit for a break, before and after text`, () =>
      Effect.gen(function* () {
        const damaged = Buffer.from(samples[id].frame(samples[id].delta("wrong")), "latin1");
        damaged[damaged.length - 9] = (damaged.at(-9) ?? 0) ^ 1;
        const bytes = { bytes: damaged.toString("base64") };
        const unseen = yield* fronted(script([{ content: [bytes, { text: 2 }] }, { content: [{ text: 2 }] }]));
        const got = yield* post(unseen.url, id);
        assert.deepStrictEqual([decoded(id, got).text, got.broken], ["r2.0·r2.1·", false]);
        const seen = yield* fronted(script([{ content: [{ text: 2 }, bytes, { text: 2 }] }]));
        const broken = yield* post(seen.url, id);
        assert.deepStrictEqual([decoded(id, broken).text, broken.broken], ["r1.0·r1.1·", true]);
        assert.notInclude(broken.body.toString("latin1"), "wrong");
      }),
    );

    it.live(`${id}: keeps a waiting client alive with an event that its SDK drops`, () =>
      Effect.gen(function* () {
        const slow = { head_delay_ms: 400, content: [{ text: 1 }] };
        const { url } = yield* fronted(script([slow]), {
          keepAliveMs: 50,
          clients: { unknown: { patienceMs: 0 } },
        });
        const got = yield* post(url, id);
        assert.strictEqual(got.headers["content-type"], "application/vnd.amazon.eventstream");
        assert.strictEqual(got.headers["x-recovery-waiting"], "true");
        const { end, parts, text } = decoded(id, got);
        assert.isAtLeast(parts.filter(({ observation }) => observation.keep_alive).length, 1);
        assert.deepStrictEqual([end.complete, text], [true, "r1.0·"]);
      }),
    );

    it.live(`${id}: takes a response without content for empty, as a stream and as a document`, () =>
      Effect.gen(function* () {
        const empty = samples[id].document([], { usage: [1, 1] });
        const whole = samples[id].document([{ text: "hi" }]);
        const { server, url } = yield* fronted(
          script([{ content: [] }, { content: [{ text: 1 }] }, { body: empty }, { body: whole }]),
        );
        assert.strictEqual(decoded(id, yield* post(url, id)).text, "r2.0·");
        const { bare, documentPath } = samples[id];
        const got = yield* Effect.promise(() => send(`${url}${documentPath}`, { body: JSON.stringify(bare) }));
        assert.deepStrictEqual(JSON.parse(got.text), whole);
        assert.lengthOf(yield* server.log, 4);
      }),
    );
  }

  it.live("refuses a failed run before its head in the form of Amazon's errors", () =>
    Effect.gen(function* () {
      const { url } = yield* fronted(script([{ break: { kind: "rst", at: "before_head" } }]), {
        budget: { max_auto_retries: 0 },
      });
      const got = yield* post(url, "bedrock-converse");
      assert.strictEqual(got.status, 400);
      const said: { readonly __type?: string; readonly message?: string } = JSON.parse(got.text);
      assert.strictEqual(said.__type, "ValidationException");
      assert.match(said.message ?? "", /^stream-recovery gateway: /);
    }),
  );

  it.live("passes a request of invoke for another vendor's model, and reports its stream", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted(script([{ content: [{ text: 1 }] }]));
      const { path } = samples["bedrock-invoke"];
      const got = yield* Effect.promise(() => send(`${url}${path}`, { body: '{"prompt":"hi"}' }));
      assert.strictEqual(got.headers["x-recovery-passed"], "unknown_body");
      assert.isUndefined(recovery(got, "run"));
      assert.lengthOf(yield* server.log, 1);
    }),
  );

  it.live("holds the message of an error event that a provider frames itself", () =>
    Effect.gen(function* () {
      const error = eventStreamMessage(
        { ":message-type": "error", ":error-code": "InternalFailure", ":error-message": "broken" },
        "",
      );
      const { url } = yield* fronted(
        script([{ content: [{ bytes: error.toString("base64") }], finish: "none" }, { content: [{ text: 1 }] }]),
      );
      assert.strictEqual(decoded("bedrock-converse", yield* post(url, "bedrock-converse")).text, "r2.0·");
    }),
  );
});
