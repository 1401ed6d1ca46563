import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { GatewayError, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import { samples, textAnswer } from "../../samples/index.ts";
import { protocols, recovery, send } from "../GatewayCases.ts";
import { boundBodies } from "./BoundBodies.ts";
import {
  ask,
  failing,
  gone,
  operatorsKey,
  paired,
  recording,
  routeIn,
  streaming,
  token,
  upstreamsOf,
} from "./RouteCases.ts";

const clientsKey = "the-clients-own-provider-key";

/** What of a request a server was shown, as one text. */
const textOf = (asked: ReadonlyArray<object>): string => JSON.stringify(asked);

describe.concurrent("What must not cross, of credentials", () => {
  it("a gateway has routes only with tokens of its own", () => {
    const empty = { set: { headers: [], body: [] }, drop: { headers: [], body: [] } };
    const routes = { openai: { movesOn: [], routes: [{ id: "b", upstream: "b", ...empty }] } };
    const b = { name: "b", url: "http://127.0.0.1:1/v1", headers: [] };
    const bought = settingsOf({ routes, named: [{ ...b, credential: Redacted.make(operatorsKey) }] });
    assert.instanceOf(bought, GatewayError);
    assert.notInstanceOf(settingsOf({ routes, named: [b] }), GatewayError);
  });

  for (const protocol of protocols) {
    const [, second] = upstreamsOf(protocol);

    it.live(`a provider key that a client shows never buys the operator's: ${protocol}`, () =>
      Effect.gen(function* () {
        const answer = textAnswer(protocol, "bought");
        const [one, other] = [
          yield* recording(failing(429, { type: "insufficient_quota", code: "insufficient_quota" })),
          yield* recording(streaming(answer)),
        ];
        const { url } = yield* paired(one.url, other.url);
        const got = yield* ask(url, protocol, { headers: samples[protocol].key(clientsKey) });
        assert.strictEqual(got.status, 429);
        assert.lengthOf(other.asked, 0);
        // The same request with nothing but the gateway's token is the operator's to pay for.
        assert.strictEqual(routeIn(yield* ask(url, protocol)), second);
      }),
    );

    // An account's own key is never sent with a request that is not among the protocol's `calls`.
    const isAllowed = samples[protocol].calls.length > 0;

    it.live.skipIf(!isAllowed)(
      `no client's key reaches another upstream, with a credential of its own or without one: ${protocol}`,
      () =>
        Effect.gen(function* () {
          const other = yield* recording(streaming(textAnswer(protocol, "x")));
          const key = { credential: Redacted.make("operator-key-of-the-first") };
          const own = yield* paired(yield* gone, other.url, { first: key });
          assert.strictEqual(
            routeIn(yield* ask(own.url, protocol, { headers: samples[protocol].key(clientsKey) })),
            second,
          );
          assert.include(textOf(other.asked), operatorsKey);
          const plain = yield* paired(yield* gone, other.url, { keyless: true });
          assert.strictEqual(
            routeIn(yield* ask(plain.url, protocol, { headers: samples[protocol].key(clientsKey) })),
            second,
          );
          assert.lengthOf(other.asked, 2);
          assert.notInclude(textOf(other.asked), clientsKey);
          assert.notInclude(textOf(other.asked), token);
          assert.notInclude(textOf(other.asked.slice(1)), operatorsKey);
        }),
    );
  }

  it.live("a client's key goes on where the route's upstream is the same account's by its state", () =>
    Effect.gen(function* () {
      const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
      const state = { state: "cluster" };
      const { url } = yield* paired(yield* gone, other.url, { keyless: true, first: state, second: state });
      assert.strictEqual(
        routeIn(yield* ask(url, "openai-chat", { headers: samples["openai-chat"].key(clientsKey) })),
        "second",
      );
      assert.strictEqual(other.asked[0]?.headers.authorization, `Bearer ${clientsKey}`);
    }),
  );

  it.live("a key in the query counts as one that is shown", () =>
    Effect.gen(function* () {
      const [one, other] = [
        yield* recording(failing(404)),
        yield* recording(streaming(textAnswer("google-gemini", "x"))),
      ];
      const { url } = yield* paired(one.url, other.url);
      const target = `${url}/t/${token}/v1beta/models/m:streamGenerateContent?alt=sse`;
      const body = '{"contents":[]}';
      assert.strictEqual(routeIn(yield* Effect.promise(() => send(target, { body }))), "second-gemini");
      const got = yield* Effect.promise(() => send(`${target}&key=${clientsKey}`, { body }));
      assert.strictEqual(got.status, 404);
      assert.lengthOf(other.asked, 1);
    }),
  );
});

describe.concurrent("What must not cross, of an account", () => {
  for (const [field, protocol, body] of boundBodies)
    it.live(
      `${field} moves only between routes that share a state: ${protocol} ${JSON.stringify(body).slice(0, 80)}`,
      () =>
        Effect.gen(function* () {
          const answer = textAnswer(protocol, "x");
          const [one, other] = [yield* recording(failing(404)), yield* recording(streaming(answer))];
          const streamed = protocol === "google-gemini" ? body : { ...body, stream: true };
          for (const [here, there] of [
            [{}, {}],
            [{ state: "a" }, {}],
            [{}, { state: "a" }],
            [{ state: "a" }, { state: "b" }],
          ]) {
            const apart = yield* paired(one.url, other.url, { first: here ?? {}, second: there ?? {} });
            assert.strictEqual((yield* ask(apart.url, protocol, { body: streamed })).status, 404);
          }
          assert.lengthOf(other.asked, 0);
          const shared = yield* paired(one.url, other.url, { first: { state: "a" }, second: { state: "a" } });
          assert.strictEqual((yield* ask(shared.url, protocol, { body: streamed })).status, 200);
          assert.lengthOf(other.asked, 1);
        }),
    );
});

describe.concurrent("What must not cross, of a client's wishes", () => {
  const failingFirst = Effect.gen(function* () {
    const [one, other] = [
      yield* recording(failing(404)),
      yield* recording(streaming(textAnswer("openai-chat", "from the second"))),
    ];
    return { one, other };
  });

  it.live("a header pins a route, which no failure leaves", () =>
    Effect.gen(function* () {
      const { one, other } = yield* failingFirst;
      const { url } = yield* paired(one.url, other.url);
      const pinned = yield* ask(url, "openai-chat", { headers: { "x-recovery-route": "second" } });
      assert.strictEqual(pinned.status, 200);
      assert.strictEqual(routeIn(pinned), "second");
      assert.lengthOf(one.asked, 0);
      const stays = yield* ask(url, "openai-chat", { headers: { "X-Recovery-Route": "openai" } });
      assert.strictEqual(stays.status, 404);
      assert.strictEqual(routeIn(stays), "openai");
      assert.lengthOf(other.asked, 1);
      for (const { headers } of [...one.asked, ...other.asked])
        for (const name of Object.keys(headers)) assert.notMatch(name, /^x-recovery/);
    }),
  );

  it.live("a header forbids a move", () =>
    Effect.gen(function* () {
      const { one, other } = yield* failingFirst;
      const { url } = yield* paired(one.url, other.url);
      const got = yield* ask(url, "openai-chat", { headers: { "x-recovery-move": "never" } });
      assert.strictEqual(got.status, 404);
      assert.lengthOf(other.asked, 0);
      for (const name of Object.keys(one.asked[0]?.headers ?? {})) assert.notMatch(name, /^x-recovery/);
      const unread = yield* ask(url, "openai-chat", { headers: { "x-recovery-move": "sometimes" } });
      assert.strictEqual(unread.status, 400);
      assert.strictEqual(recovery(unread, "refused"), "route");
    }),
  );

  it.live("no header names a route that there is none of, that the token does not permit, or a URL", () =>
    Effect.gen(function* () {
      const { one, other } = yield* failingFirst;
      const tokens = [
        { name: "narrow", token: Redacted.make(token), upstreams: ["openai"], page: false, metrics: false },
      ];
      const narrow = yield* paired(one.url, other.url, {
        program: { token: "another-token-of-24-characters", tokens },
      });
      const texts = new Set<string>();
      for (const name of ["second", "nobody"]) {
        const got = yield* ask(narrow.url, "openai-chat", { headers: { "x-recovery-route": name } });
        assert.strictEqual(got.status, 400);
        assert.strictEqual(recovery(got, "refused"), "route");
        texts.add(got.text.replace(name, "NAME"));
      }
      assert.lengthOf([...texts], 1, "a route that is not permitted does not exist");
      for (const url of ["http://127.0.0.1:1/v1", "Second", "second, openai", ""]) {
        const got = yield* ask(narrow.url, "openai-chat", { headers: { "x-recovery-route": url } });
        assert.strictEqual(got.status, 400);
      }
      assert.lengthOf(one.asked, 0);
      assert.strictEqual((yield* ask(narrow.url, "openai-chat")).status, 404);
      assert.lengthOf(other.asked, 0, "a route to an upstream that the token does not permit does not exist for it");
    }),
  );

  it.live("a pinned route whose changes do not fit the request says why", () =>
    Effect.gen(function* () {
      const { one, other } = yield* failingFirst;
      const { url } = yield* paired(one.url, other.url, { route: { models: ["gpt-5"] } });
      const got = yield* ask(url, "openai-chat", { headers: { "x-recovery-route": "second" } });
      assert.strictEqual(got.status, 400);
      assert.include(got.text, "the route does not serve the model");
      const passed = yield* ask(url, "openai-chat", { body: { x: 1 }, headers: { "x-recovery-route": "second" } });
      assert.strictEqual(passed.status, 400);
      assert.lengthOf([...one.asked, ...other.asked], 0);
    }),
  );
});
