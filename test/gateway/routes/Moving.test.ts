import { assert, describe, it } from "@effect/vitest";
import { Effect, Metric, Redacted } from "effect";
import { membersMax } from "../../../src/adapters/relay/form/JsonMembers.ts";
import { wholeBytesMax } from "../../../src/gateway/body/BodyOutline.ts";
import { samples, textAnswer } from "../../samples/index.ts";
import { protocols } from "../GatewayCases.ts";
import {
  ask,
  dying,
  failing,
  gone,
  paired,
  recording,
  routeIn,
  silent,
  streaming,
  token,
  upstreamsOf,
} from "./RouteCases.ts";

const ownKey = { credential: Redacted.make("operator-key-of-the-first") };

describe("a run of the gateway moves", () => {
  for (const protocol of protocols) {
    const [first, second] = upstreamsOf(protocol);
    const answer = textAnswer(protocol, "from the second");

    it.live(`to the next route where the first is dead, and says which one answered: ${protocol}`, () =>
      Effect.gen(function* () {
        const other = yield* recording(streaming(answer));
        const { runs, url } = yield* paired(yield* gone, other.url);
        const got = yield* ask(url, protocol);
        assert.strictEqual(got.status, 200);
        assert.strictEqual(got.text, answer);
        assert.strictEqual(routeIn(got), second);
        const [run] = yield* runs;
        assert.strictEqual(run?.end?.state, "completed");
        assert.strictEqual(run?.attempts.at(0)?.route, undefined);
        assert.strictEqual(run?.attempts.at(-1)?.route, second);
      }),
    );

    it.live(`to the next route where the first breaks before its head twice in a row: ${protocol}`, () =>
      Effect.gen(function* () {
        const [one, other] = [yield* recording(dying), yield* recording(streaming(answer))];
        const { url } = yield* paired(one.url, other.url);
        const got = yield* ask(url, protocol);
        assert.strictEqual(got.text, answer);
        assert.strictEqual(routeIn(got), second);
        assert.lengthOf(one.asked, 2);
        assert.lengthOf(other.asked, 1);
      }),
    );

    it.live(`to the next route at once where the first is slow: ${protocol}`, () =>
      Effect.gen(function* () {
        const [one, other] = [yield* recording(silent), yield* recording(streaming(answer))];
        const { url } = yield* paired(one.url, other.url, { program: { clocks: { first_progress: 200 } } });
        const got = yield* ask(url, protocol);
        assert.strictEqual(got.text, answer);
        assert.strictEqual(routeIn(got), second);
        assert.lengthOf(one.asked, 1);
      }),
    );

    it.live.skipIf(samples[protocol].calls.length === 0)(
      `to the next route at once for a 404, and for a 401 of the operator's own credential: ${protocol}`,
      () =>
        Effect.gen(function* () {
          for (const status of [404, 401]) {
            const [one, other] = [yield* recording(failing(status)), yield* recording(streaming(answer))];
            const { url } = yield* paired(one.url, other.url, { first: ownKey });
            const got = yield* ask(url, protocol);
            assert.strictEqual(got.status, 200, String(status));
            assert.strictEqual(routeIn(got), second);
            assert.lengthOf(one.asked, 1);
          }
        }),
    );

    it.live.skipIf(samples[protocol].calls.length === 0)(
      `nowhere for a 401 of the client's own credential, nor for a 400: ${protocol}`,
      () =>
        Effect.gen(function* () {
          for (const [status, key] of [
            [401, {}],
            [400, {}],
            [400, ownKey],
          ] as const) {
            const [one, other] = [yield* recording(failing(status)), yield* recording(streaming(answer))];
            const { url } = yield* paired(one.url, other.url, { first: key });
            const got = yield* ask(url, protocol);
            assert.strictEqual(got.status, status);
            assert.strictEqual(routeIn(got), first);
            assert.lengthOf(other.asked, 0);
          }
        }),
    );

    it.live(`and where the next route is worse, its client gets the failure of the first: ${protocol}`, () =>
      Effect.gen(function* () {
        const [one, other] = [
          yield* recording(failing(404, { type: "not_found_error", message: "first" })),
          yield* recording(failing(401, { type: "authentication_error", message: "second" })),
        ];
        const { url } = yield* paired(one.url, other.url);
        const got = yield* ask(url, protocol);
        assert.strictEqual(got.status, 404);
        assert.include(got.text, "first");
        assert.notInclude(got.text, "second");
        assert.strictEqual(routeIn(got), first);
        assert.lengthOf(other.asked, 1);
      }),
    );

    it.live(`and names the first route where that one answers: ${protocol}`, () =>
      Effect.gen(function* () {
        const [one, other] = [yield* recording(streaming(answer)), yield* recording(streaming(answer))];
        const { url } = yield* paired(one.url, other.url);
        const got = yield* ask(url, protocol);
        assert.strictEqual(routeIn(got), first);
        assert.lengthOf(other.asked, 0);
        for (const name of Object.keys(one.asked[0]?.headers ?? {})) assert.notMatch(name, /^x-recovery/);
      }),
    );
  }

  it.live("where a refused answer is configured for a failure, and only there", () =>
    Effect.gen(function* () {
      const refused = `data: ${JSON.stringify({
        id: "c1",
        choices: [{ index: 0, delta: {}, finish_reason: "content_filter" }],
      })}\n\ndata: [DONE]\n\n`;
      const answer = textAnswer("openai-chat", "from the second");
      const [one, other] = [yield* recording(streaming(refused)), yield* recording(streaming(answer))];
      const moving = yield* paired(one.url, other.url, { movesOn: ["refused"] });
      const got = yield* ask(moving.url, "openai-chat");
      assert.strictEqual(got.text, answer);
      assert.strictEqual(routeIn(got), "second");
      const staying = yield* paired(one.url, other.url);
      assert.strictEqual((yield* ask(staying.url, "openai-chat")).text, refused);
      assert.lengthOf(other.asked, 1);
    }),
  );

  it.live("to a route whose breaker is closed: a route that refuses what is its own is not asked by the next run", () =>
    Effect.gen(function* () {
      const answer = textAnswer("openai-chat", "x");
      const [one, other] = [yield* recording(failing(401)), yield* recording(streaming(answer))];
      const { url } = yield* paired(one.url, other.url, { first: ownKey });
      for (let run = 0; run < 3; run += 1) assert.strictEqual(routeIn(yield* ask(url, "openai-chat")), "second");
      assert.lengthOf(one.asked, 1);
      assert.lengthOf(other.asked, 3);
    }),
  );

  it.live("at once by the next route, once five runs have met a first one that breaks", () =>
    Effect.gen(function* () {
      const answer = textAnswer("openai-chat", "x");
      const [one, other] = [yield* recording(failing(500)), yield* recording(streaming(answer))];
      const { url } = yield* paired(one.url, other.url);
      for (let run = 0; run < 5; run += 1) assert.strictEqual(routeIn(yield* ask(url, "openai-chat")), "second");
      const before = one.asked.length;
      const got = yield* ask(url, "openai-chat");
      assert.strictEqual(routeIn(got), "second");
      assert.strictEqual(got.headers["x-recovery-attempts"], "1");
      assert.lengthOf(one.asked, before);
    }),
  );

  it.live("and the access line and the metric say by which route", () =>
    Effect.gen(function* () {
      const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
      const { services, url } = yield* paired(yield* gone, other.url);
      yield* ask(url, "openai-chat");
      const told = Effect.map(
        Metric.snapshot,
        (all) => all.find(({ id }) => id === "stream_recovery.gateway.routed")?.attributes,
      );
      const attributes = yield* Effect.provideContext(
        told.pipe(Effect.repeat({ while: (it) => it === undefined })),
        services,
      );
      assert.deepInclude(attributes, { upstream: "openai", route: "second", outcome: "completed" });
    }),
  );

  it.live("with what the route sets and drops, in the body, the headers and Gemini's path", () =>
    Effect.gen(function* () {
      const other = yield* recording((response, asked) =>
        streaming(textAnswer(asked.url.includes("models") ? "google-gemini" : "openai-chat", "x"))(response, asked),
      );
      const route = {
        set: {
          headers: [["x-team", "eu"]] as const,
          body: [
            ["model", "other/model"],
            ["stream_options.include_usage", true],
          ] as const,
        },
        drop: { headers: ["OpenAI-Beta"], body: ["seed"] },
      };
      const { url } = yield* paired(yield* gone, other.url, { route });
      const body = { model: "m", messages: [], stream: true, seed: 7, temperature: 1 };
      yield* ask(url, "openai-chat", { body, headers: { "openai-beta": "x", "x-team": "us", "x-kept": "1" } });
      yield* ask(url, "google-gemini");
      const [chat, gemini] = other.asked;
      assert.deepStrictEqual(JSON.parse(chat?.body ?? ""), {
        ...{ model: "other/model", messages: [], stream: true, temperature: 1 },
        stream_options: { include_usage: true },
      });
      assert.strictEqual(chat?.headers["x-team"], "eu");
      assert.strictEqual(chat?.headers["x-kept"], "1");
      assert.notProperty(chat?.headers, "openai-beta");
      assert.strictEqual(gemini?.url, "/v1beta/models/other%2Fmodel:streamGenerateContent?alt=sse");
      assert.deepStrictEqual(JSON.parse(gemini?.body ?? ""), {
        contents: [],
        stream_options: { include_usage: true },
      });
    }),
  );

  it.live("with a large body, of which every other byte stays", () =>
    Effect.gen(function* () {
      const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
      const set = {
        headers: [],
        body: [
          ["model", "other"],
          ["metadata.team", "a"],
        ] as const,
      };
      const { url } = yield* paired(yield* gone, other.url, { route: { set } });
      const messages = `[ ${'{ "role":"user","content":"Say \\"é\\"." }, '.repeat(9_000)}{"role":"user","content":""}]`;
      const body = `{"model":"m","stream":true, "messages" :${messages},"metadata":{"team":"b", "n":1.0}}`;
      assert.isAbove(body.length, wholeBytesMax);
      assert.strictEqual(routeIn(yield* ask(url, "openai-chat", { body })), "second");
      assert.strictEqual(other.asked[0]?.body, body.replace('"m"', '"other"').replace('"b"', '"a"'));
      const members = Array.from({ length: membersMax }, (_, n) => `"${n}":0`);
      const wide = `{"model":"m","stream":true,"messages":{${members.join(",")}}}`;
      assert.notStrictEqual(routeIn(yield* ask(url, "openai-chat", { body: wide })), "second");
      assert.lengthOf(other.asked, 1);
    }),
  );

  it.live("by no route that does not serve the model, or whose changes would have to be guessed", () =>
    Effect.gen(function* () {
      const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
      const body = (more: object) => ({ body: { model: "gpt-4o-mini", messages: [], stream: true, ...more } });
      const dead = yield* gone;
      const models = yield* paired(dead, other.url, { route: { models: ["gpt-4o*", "o?"] } });
      assert.strictEqual(routeIn(yield* ask(models.url, "openai-chat", body({}))), "second");
      assert.notStrictEqual(routeIn(yield* ask(models.url, "openai-chat", body({ model: "gpt-5" }))), "second");
      const set = { headers: [], body: [["metadata.team", "a"]] as const };
      const guessed = yield* paired(dead, other.url, { route: { set } });
      assert.notStrictEqual(routeIn(yield* ask(guessed.url, "openai-chat", body({ metadata: "text" }))), "second");
      assert.lengthOf(other.asked, 1);
    }),
  );

  it.live("as a new configuration says, for requests that come after it", () =>
    Effect.gen(function* () {
      const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
      const dead = yield* gone;
      const { gateway, url } = yield* paired(dead, other.url);
      assert.strictEqual(routeIn(yield* ask(url, "openai-chat")), "second");
      yield* gateway.configure({ upstreams: { openai: `${dead}/v1` }, token });
      const got = yield* ask(url, "openai-chat");
      assert.notStrictEqual(got.status, 200);
      assert.isUndefined(routeIn(got));
    }),
  );
});
