/** The headers that a repeat of a request carries. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { renew } from "../../../src/adapters/fetch/Credentials.ts";
import {
  CredentialsNotRefreshed,
  type FetchHeaders,
  type RefreshCredentials,
} from "../../../src/adapters/fetch/FetchRecovery.ts";
import type { FaultProviderOptions } from "../../../src/testing/index.ts";
import { bodies, read, setup } from "./Cases.ts";

const reset = { content: [{ text: 3 }], break: { kind: "rst", at: "after_head" } } as const;
const whole = { content: [{ text: 3 }] } as const;
const refused = { status: 401, body: { error: { type: "invalid_request_error", message: "expired" } } } as const;

/** A fetch that notes the headers of each request, and the options beside it. */
const noting = (refreshCredentials?: RefreshCredentials) => {
  const seen: Array<Headers> = [];
  const under: typeof fetch = (input, init) => {
    assert.instanceOf(init?.headers, Headers);
    seen.push(new Headers(init?.headers));
    return fetch(input, init);
  };
  const options = refreshCredentials === undefined ? { fetch: under } : { fetch: under, refreshCredentials };
  return { seen, options };
};

const headers = new Headers({ authorization: "Bearer 0", "x-mine": "1" });

/** The other forms of headers: as a client gives them, and as its fetch gets them in a repeat. */
const forms: ReadonlyArray<readonly [name: string, given: FetchHeaders, repeated: FetchHeaders]> = [
  [
    "a record with its names",
    { Authorization: "Bearer 0", "x-mine": "1" },
    { Authorization: "Bearer 1", "x-mine": "1" },
  ],
  [
    "pairs",
    [
      ["authorization", "Bearer 0"],
      ["x-mine", "1"],
    ],
    [
      ["authorization", "Bearer 1"],
      ["x-mine", "1"],
    ],
  ],
];
const tokensOf = (seen: ReadonlyArray<Headers>) => seen.map((each) => each.get("authorization"));

/** Posts with a token, and gives the error of the call or its body. */
const errorOf = (refreshCredentials: RefreshCredentials, answers: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const { options, seen } = noting(refreshCredentials);
    const { post } = yield* setup({ answers } as FaultProviderOptions["script"], options);
    const error = yield* Effect.promise(() =>
      post("openai-chat", { headers }).then(
        async (response) => (await read(response)).error,
        (thrown: unknown) => thrown,
      ),
    );
    return { error, seen };
  });

describe.concurrent("the fetch below recoveringFetch", () => {
  it.live("gets a Headers that it can read and write", () =>
    Effect.gen(function* () {
      const { post, server } = yield* setup(
        { answers: [whole] },
        {
          fetch: (input, init) => {
            const given = init?.headers;
            assert.instanceOf(given, Headers);
            assert.strictEqual(given.get("x-mine"), "1");
            given.set("x-theirs", "2");
            return fetch(input, init);
          },
        },
      );
      yield* Effect.promise(async () => read(await post("openai-chat", { headers })));
      assert.includeMembers([...((yield* server.log)[0]?.header_names ?? [])], ["x-mine", "x-theirs"]);
    }),
  );

  for (const [form, given, repeated] of forms) {
    it.live(`gets ${form}, if its client gives that`, () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = [];
        const { post } = yield* setup(
          { answers: [reset, whole] },
          {
            refreshCredentials: () => ({ authorization: "Bearer 1" }),
            fetch: (input, init) => {
              seen.push(init?.headers);
              return fetch(input, init);
            },
          },
        );
        const body = new TextEncoder().encode(JSON.stringify(bodies["openai-chat"]));
        yield* Effect.promise(async () => read(await post("openai-chat", { headers: given, body })));
        assert.deepStrictEqual(seen, [given, repeated]);
      }),
    );
  }

  it.live("cannot change the headers of a repeat", () =>
    Effect.gen(function* () {
      const seen: Array<string | null> = [];
      const { post } = yield* setup(
        { answers: [reset, whole] },
        {
          fetch: (input, init) => {
            const given = new Headers(init?.headers);
            seen.push(given.get("x-mine"));
            if (init?.headers instanceof Headers) init.headers.set("x-mine", "changed");
            return fetch(input, init);
          },
        },
      );
      yield* Effect.promise(async () => read(await post("openai-chat", { headers })));
      assert.deepStrictEqual(seen, ["1", "1"]);
    }),
  );
});

describe.concurrent("refreshCredentials", () => {
  it.live("renews the credentials of every repeat, and changes neither the first request nor other headers", () =>
    Effect.gen(function* () {
      const asked: Array<string | null> = [];
      const { options, seen } = noting((given) => {
        asked.push(given.get("authorization"));
        given.set("x-mine", "not taken");
        return { Authorization: `Bearer ${asked.length}` };
      });
      const { post } = yield* setup({ answers: [reset, { status: 503 }, whole] }, options);
      const body = yield* Effect.promise(async () => read(await post("openai-chat", { headers })));
      assert.isUndefined(body.error);
      assert.deepStrictEqual(tokensOf(seen), ["Bearer 0", "Bearer 1", "Bearer 2"]);
      assert.deepStrictEqual(asked, ["Bearer 0", "Bearer 0"]);
      assert.deepStrictEqual(
        seen.map((each) => each.get("x-mine")),
        ["1", "1", "1"],
      );
    }),
  );

  it.live("repeats a request once that is refused for its credentials", () =>
    Effect.gen(function* () {
      const refresh = async () => new Headers({ authorization: "Bearer fresh" });
      const once = noting(refresh);
      const { events, post } = yield* setup({ answers: [refused, whole] }, once.options);
      const response = yield* Effect.promise(() => post("openai-chat", { headers }));
      assert.strictEqual(response.status, 200);
      assert.isUndefined((yield* Effect.promise(() => read(response))).error);
      assert.deepStrictEqual(tokensOf(once.seen), ["Bearer 0", "Bearer fresh"]);
      assert.isTrue(events.some((event) => event._tag === "RetryScheduled"));
      const twice = noting(refresh);
      const again = yield* setup({ answers: [refused, refused, whole] }, twice.options);
      assert.strictEqual((yield* Effect.promise(() => again.post("openai-chat", { headers }))).status, 401);
      assert.strictEqual(twice.seen.length, 2);
    }),
  );

  it.live("is not asked without a repeat, and a refusal of the credentials is the caller's without it", () =>
    Effect.gen(function* () {
      let asked = 0;
      const { options } = noting(() => {
        asked += 1;
        return {};
      });
      const { post } = yield* setup({ answers: [whole] }, options);
      yield* Effect.promise(async () => read(await post("openai-chat", { headers })));
      assert.strictEqual(asked, 0);
      const without = noting();
      const plain = yield* setup({ answers: [refused, whole] }, without.options);
      assert.strictEqual((yield* Effect.promise(() => plain.post("openai-chat", { headers }))).status, 401);
      assert.strictEqual(without.seen.length, 1);
    }),
  );

  const mine = new Error("no login");
  const failures: ReadonlyArray<readonly [string, RefreshCredentials, unknown]> = [
    [
      "throws",
      () => {
        throw mine;
      },
      mine,
    ],
    ["rejects", () => Promise.reject(mine), mine],
    // A caller without types can give anything.
    ["gives no headers", (() => undefined) as never, undefined],
  ];
  for (const [name, refresh, cause] of failures) {
    for (const [when, first] of [
      ["before", { status: 503 }],
      ["behind", reset],
    ] as const) {
      it.live(`ends the run with an error that names it if it ${name}, ${when} a head`, () =>
        Effect.gen(function* () {
          const { error, seen } = yield* errorOf(refresh, [first, whole]);
          assert.instanceOf(error, CredentialsNotRefreshed);
          assert.include(error.message, "refreshCredentials");
          if (cause !== undefined) assert.strictEqual(error.cause, cause);
          assert.strictEqual(seen.length, 1);
        }),
      );
    }
  }

  it.live("does not quote a credential that cannot be sent", () =>
    Effect.gen(function* () {
      const { error } = yield* errorOf(() => ({ authorization: "Bearer sk-secret\nx" }), [reset, whole]);
      assert.instanceOf(error, CredentialsNotRefreshed);
      assert.notInclude(`${error.message} ${String(error.cause)}`, "sk-secret");
    }),
  );

  it.effect("fails if it takes longer than 30 s", () =>
    Effect.gen(function* () {
      const request = { method: "POST", url: "https://api.example.com/v1/messages", headers: [], body: "{}" };
      const renewing = yield* Effect.forkChild(Effect.flip(renew(() => new Promise(() => undefined), request)));
      yield* TestClock.adjust(29_999);
      assert.isUndefined(renewing.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.include((yield* Fiber.join(renewing)).message, "no answer within 30000 ms");
    }),
  );

  it.live("sends nothing after its caller has gone while it was asked", () =>
    Effect.gen(function* () {
      const asked = Promise.withResolvers<void>();
      const fresh = Promise.withResolvers<FetchHeaders>();
      const { options, seen } = noting(() => {
        asked.resolve();
        return fresh.promise;
      });
      const { post } = yield* setup({ answers: [{ status: 503 }, whole] }, options);
      const controller = new AbortController();
      const gone = new Error("gone");
      const caught = post("openai-chat", { headers, signal: controller.signal }).catch((error: unknown) => error);
      yield* Effect.promise(() => asked.promise);
      controller.abort(gone);
      assert.strictEqual(yield* Effect.promise(() => caught), gone);
      fresh.resolve({ authorization: "Bearer late" });
      yield* Effect.promise(() => new Promise((done) => setImmediate(done)));
      assert.strictEqual(seen.length, 1);
    }),
  );
});
