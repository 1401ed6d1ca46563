import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { protocols as decoders, type ProtocolId } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { talkIds } from "../../samples/index.ts";
import { fronted, post, protocols, recovery, send } from "../GatewayCases.ts";

describe.concurrent("Gateway, its recoveries", () => {
  for (const protocol of protocols) {
    it.live(`relays a healthy ${protocol} stream with the bytes of a direct one, and names the run`, () =>
      Effect.gen(function* () {
        const { runs, server, url } = yield* fronted({ answers: [{ content: [{ reasoning: 2 }, { text: 5 }] }] });
        const got = yield* post(url, protocol);
        const direct = yield* post(server.url, protocol);
        assert.strictEqual(got.status, 200);
        assert.isFalse(got.broken);
        // Ids and serials count requests, so the two answers may differ only there.
        assert.strictEqual(got.text.replace(/\d+/g, "0"), direct.text.replace(/\d+/g, "0"));
        const [run] = yield* runs;
        assert.strictEqual(recovery(got, "run"), run?.run_id);
        assert.match(run?.run_id ?? "", /^gw_/);
        assert.strictEqual(recovery(got, "attempts"), "1");
        assert.strictEqual(run?.end?.state, "completed");
      }),
    );

    it.live(`replays a ${protocol} stream that is reset before its head, unseen`, () =>
      Effect.gen(function* () {
        const { server, url } = yield* fronted({
          answers: [{ break: { kind: "rst", at: "before_head" } }, { content: [{ text: 5 }] }],
        });
        const got = yield* post(url, protocol);
        assert.strictEqual(got.status, 200);
        assert.isFalse(got.broken);
        assert.strictEqual(recovery(got, "attempts"), "2");
        assert.lengthOf(yield* server.log, 2);
      }),
    );

    it.live(`breaks the connection if a ${protocol} stream ends cleanly without its marker after text`, () =>
      Effect.gen(function* () {
        const { runs, server, url } = yield* fronted({
          answers: [{ content: [{ text: 5 }], break: { kind: "end", at: "terminal" } }],
        });
        const got = yield* post(url, protocol);
        assert.isTrue(got.broken, "a cut stream must not end cleanly");
        const [row] = yield* server.log;
        for (const serial of row?.text ?? []) assert.include(got.text, serial);
        assert.strictEqual((yield* runs)[0]?.end?.reason, "text_shown");
        assert.lengthOf(yield* server.log, 1);
      }),
    );

    it.live(`reports a break to a ${protocol} client in its own protocol's format if so configured`, () =>
      Effect.gen(function* () {
        const script = { answers: [{ content: [{ text: 5 }], break: { kind: "rst", at: "terminal" } }] } as const;
        const { url } = yield* fronted(script, { onBreak: "tell" });
        const got = yield* post(url, protocol);
        assert.isTrue(got.broken, "an error event is no terminal marker: the body breaks all the same");
        const decoder = Decoder.make(decoders.get(protocol));
        const parts = decoder.push(new TextEncoder().encode(got.text));
        assert.isFalse(parts.some(({ observation }) => observation.terminal));
        const failed = parts.some(({ observation }) => observation.failure !== undefined);
        assert.isTrue(failed || decoder.failure !== undefined);
        const silent = yield* fronted(script, { onBreak: "abort" });
        assert.notInclude((yield* post(silent.url, protocol)).text, "stream-recovery gateway");
      }),
    );

    it.live.skipIf(!talkIds.includes(protocol))(
      `holds a ${protocol} call until its end is proven, and replays it if it broke`,
      () =>
        Effect.gen(function* () {
          const call = { tool: "pay", input: { amount: 1 } };
          const { server, url } = yield* fronted({
            answers: [
              { content: [call], break: { kind: "rst", at: "terminal" } },
              { content: [call], break: { kind: "end", at: "tool_arguments" } },
              { content: [call] },
            ],
          });
          const got = yield* post(url, protocol);
          assert.isFalse(got.broken);
          assert.strictEqual(got.text.split('"pay"').length - 1, namings[protocol] ?? 1);
          assert.lengthOf(yield* server.log, 3);
        }),
    );

    it.live(`on_complete recovers a ${protocol} stream that breaks in its text, unseen`, () =>
      Effect.gen(function* () {
        const { server, url } = yield* fronted(
          {
            answers: [
              { content: [{ text: 5 }], break: { kind: "rst", at: "event", n: 3 } },
              { content: [{ text: 5 }] },
            ],
          },
          { reveal: "on_complete" },
        );
        const got = yield* post(url, protocol);
        assert.isFalse(got.broken);
        const [cut, whole] = yield* server.log;
        for (const serial of whole?.text ?? []) assert.include(got.text, serial);
        for (const serial of cut?.text ?? []) assert.notInclude(got.text, serial);
      }),
    );
  }

  it.live("relays the provider's own refusal with its bytes and headers, and the rule beside it", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({
        answers: [{ status: 400, headers: { "X-Own": "kept" } }],
      });
      const direct = yield* post(server.url, "openai-chat");
      const got = yield* post(url, "openai-chat");
      assert.strictEqual(got.status, 400);
      assert.strictEqual(got.text, direct.text);
      assert.strictEqual(recovery(got, "rule"), "not_retryable");
      const own = direct.rawHeaders.filter((name) => !/^(connection|keep-alive|transfer-encoding)$/i.test(name));
      for (const name of own) assert.include(got.rawHeaders, name);
    }),
  );

  it.live("says in the provider's format that a run has failed, and that a retry is of no use", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({ answers: [{ break: { kind: "rst", at: "before_head" } }] });
      const got = yield* post(url, "anthropic-messages");
      assert.strictEqual(got.status, 400);
      assert.strictEqual(got.headers["x-should-retry"], "false");
      assert.strictEqual(recovery(got, "refused"), "upstream_failed");
      assert.strictEqual(JSON.parse(got.text).type, "error");
      assert.strictEqual(recovery(got, "rule"), "budget_exhausted");
      assert.strictEqual(recovery(got, "attempts"), String((yield* server.log).length));
    }),
  );

  it.live("recovers a document before its response", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({
        answers: [
          { break: { kind: "rst", at: "before_head" } },
          { body: { choices: [{ message: { content: "hi" } }] } },
        ],
      });
      const body = JSON.stringify({ model: "m", messages: [] });
      const got = yield* Effect.promise(() => send(`${url}/v1/chat/completions`, { body }));
      assert.strictEqual(got.status, 200);
      assert.lengthOf(yield* server.log, 2);
    }),
  );
});

/** Times that a protocol writes the name of a call, if not once. Every piece of a call of Mistral's has its name. */
const namings: Partial<Record<ProtocolId, number>> = { "openai-responses": 3, "mistral-conversations": 4 };
