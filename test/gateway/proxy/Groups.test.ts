/** Requests that name one group share its budget, within a token and a credential, and no upstream sees the name. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { serverOf } from "../../Servers.ts";
import { bodies, front, fronted, type Got, post } from "../GatewayCases.ts";

const broken = { break: { kind: "rst", at: "before_head" } } as const;
const whole = { content: [{ text: 3 }] } as const;

let asked = 0;

const asks = (url: string, group: string, more: Readonly<Record<string, string>> = {}): Effect.Effect<Got> => {
  asked += 1;
  return post(url, "openai-chat", {
    // Each request is different, because a client's own retry of a failed request is answered from memory.
    body: JSON.stringify({ ...bodies["openai-chat"], user: `${JSON.stringify([group, more])}${asked}` }),
    headers: { "content-type": "application/json", authorization: "Bearer k1", "x-recovery-group": group, ...more },
  });
};

describe("x-recovery-group", () => {
  it.live("lets the runs of one group share their retries, and gives another group its own", () =>
    Effect.gen(function* () {
      const answers = [broken, whole, broken, broken, whole, broken, whole];
      const { runs, url } = yield* fronted({ answers }, { budget: { max_group_retries: 1 } });
      const statuses = [
        (yield* asks(url, "tree")).status,
        (yield* asks(url, "tree")).status,
        (yield* asks(url, "other")).status,
        // The same name with another credential is another group.
        (yield* asks(url, "tree", { authorization: "Bearer k2" })).status,
      ];
      assert.deepStrictEqual(statuses, [200, 400, 200, 200]);
      const all = yield* runs;
      assert.strictEqual(all.filter(({ end }) => end?.reason === "budget_exhausted").length, 1);
      assert.deepStrictEqual([...new Set(all.map(({ group }) => group))].sort(), ["other", "tree"]);
    }),
  );

  it.live("is separate for each token of the gateway, even if they share the upstream's credential", () =>
    Effect.gen(function* () {
      const tokens = ["a", "b"].map((name) => ({
        ...{ name, page: false, metrics: false },
        token: Redacted.make(`${name}-0123456789abcdef`),
      }));
      const script = { answers: [broken, whole, broken, whole, broken] };
      const { runs, url } = yield* fronted(script, { budget: { max_group_retries: 1 }, tokens });
      const as = (name: string) => asks(url, "tree", { "x-recovery-token": `${name}-0123456789abcdef` });
      const statuses = [(yield* as("a")).status, (yield* as("b")).status, (yield* as("a")).status];
      assert.deepStrictEqual(statuses, [200, 200, 400]);
      assert.deepStrictEqual([...new Set((yield* runs).map(({ group }) => group))].sort(), ["a tree", "b tree"]);
    }),
  );

  it.live("is not sent to an upstream", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<string>> = [];
      const upstream = yield* serverOf((request, response) => {
        seen.push(Object.keys(request.headers));
        response.writeHead(404, { "content-type": "application/json" }).end("{}");
      });
      const { url } = yield* front(upstream);
      yield* asks(url, "tree");
      assert.strictEqual(seen.length, 1);
      assert.notInclude(seen.flat(), "x-recovery-group");
    }),
  );

  it.live("names one group, in up to 64 visible characters, and any other value is refused", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({ answers: [whole] });
      for (const group of ["", "a b", "g".repeat(65), "gr\u00fcn"]) {
        const got = yield* asks(url, group);
        assert.strictEqual(got.status, 400, group);
        assert.include(got.text, "x-recovery-group: expected one group name");
      }
      assert.lengthOf(yield* server.log, 0);
    }),
  );
});
