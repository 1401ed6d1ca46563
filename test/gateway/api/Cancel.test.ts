/**
 * Cancels runs through the API: of the gateway that gets the request, and of another one over the same file.
 */
import { hostname } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Fiber, Metric, Redacted } from "effect";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { endless } from "../../cli/runs/Driving.ts";
import { folder } from "../../cli/ServeProcess.ts";
import { found } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, type Fronted, front, paths, post, recovery, send } from "../GatewayCases.ts";
import { logging } from "../log/Logged.ts";

const asked = { "x-recovery-answer": "1", "content-type": "application/json" };

const cancelled = ({ url }: Pick<Fronted, "url">, run: string, headers: Record<string, string> = asked) =>
  Effect.map(
    Effect.promise(() => send(`${url}/recovery/api/runs/${run}/cancel`, { method: "POST", headers })),
    ({ status, text }) => ({ status, body: JSON.parse(text) as Record<string, unknown> }),
  );

/** A run at a gateway whose client has begun to read, or waits for its head. */
const begun = Effect.fnUntraced(function* (at: Fronted, reads = true) {
  let has = !reads;
  const onData = () => {
    has = true;
  };
  const body = JSON.stringify(bodies["openai-chat"]);
  const headers = { "content-type": "application/json" };
  const client = yield* Effect.forkChild(post(at.url, "openai-chat", { body, headers, onData }));
  const run = yield* at.until((all) => (has ? all.find(({ state }) => state === "live") : undefined));
  return { client, run: run.run_id };
});

describe("a cancel through the API", () => {
  it.live("ends a run of the gateway that gets it, breaks its client's response, and is refused after its end", () =>
    Effect.gen(function* () {
      const at = yield* front(yield* endless, {}, RecoveryPage.layer);
      const { client, run } = yield* begun(at);
      const { body, status } = yield* cancelled(at, run);
      assert.strictEqual(status, 200);
      assert.deepInclude(body, { outcome: "here" });
      assert.deepNestedInclude(body, { "run.end.reason": "user_cancelled" });
      assert.isTrue((yield* Fiber.join(client)).broken);
      const again = yield* cancelled(at, run);
      assert.deepStrictEqual([again.status, again.body.reason], [409, "run_ended"]);
      const unknown = yield* cancelled(at, "run_that_never_was");
      assert.deepStrictEqual([unknown.status, unknown.body.reason], [404, "unknown_run"]);
    }).pipe(Effect.scoped),
  );

  const silent = serverOf((request) => request.resume());

  for (const [where, upstream, status] of [
    ["that its client reads", endless, 200],
    ["whose client waits for its head", silent, 400],
  ] as const)
    it.live(`is what the access line and the counted request of a run report ${where}`, () =>
      Effect.gen(function* () {
        const { accessed, services, url } = yield* logging(yield* upstream, {}, "Info");
        let has = status === 400;
        const onData = () => {
          has = true;
        };
        const client = yield* Effect.forkChild(post(url, "openai-chat", { onData }));
        const all = Context.get(services, RunRecorder).runs();
        const run = yield* found(Effect.map(all, (runs) => runs.find((it) => has && it.state === "live")));
        assert.strictEqual((yield* cancelled({ url }, run.run_id)).status, 200);
        yield* Fiber.join(client);
        const [line] = yield* accessed(1);
        const facts = { outcome: "run_cancelled", rule: "user_cancelled", run_id: run.run_id, attempts: 1 };
        assert.deepInclude<object | undefined>(line, { ...facts, status, path: paths["openai-chat"] });
        const metrics = yield* Effect.promise(() => send(`${url}/metrics`));
        assert.match(metrics.text, /served_total\{[^}]*outcome="run_cancelled",reason="user_cancelled"\} 1$/m);
      }).pipe(
        Effect.scoped,
        Effect.provideServiceEffect(
          Metric.MetricRegistry,
          Effect.sync(() => new Map()),
        ),
      ),
    );

  it.live("reaches a client that waits for its head, with an error after which it does not retry", () =>
    Effect.gen(function* () {
      let requests = 0;
      const counting = yield* serverOf((request) => {
        requests += 1;
        request.resume();
      });
      const at = yield* front(counting, {}, RecoveryPage.layer);
      const { client, run } = yield* begun(at, false);
      assert.strictEqual((yield* cancelled(at, run)).status, 200);
      const { headers, status } = yield* Fiber.join(client);
      assert.strictEqual(status, 400);
      assert.strictEqual(headers["x-should-retry"], "false");
      assert.strictEqual(headers["x-recovery-rule"], "user_cancelled");
      // Only this run was cancelled: a new request with the same content is not answered from memory.
      const second = yield* begun(at, false);
      yield* cancelled(at, second.run);
      assert.isUndefined((yield* Fiber.join(second.client)).headers["x-recovery-age"]);
      assert.strictEqual(requests, 2);
    }).pipe(Effect.scoped),
  );

  it.live("refuses a request that a form of another site could have sent", () =>
    Effect.gen(function* () {
      const at = yield* front(yield* endless, {}, RecoveryPage.layer);
      const { run } = yield* begun(at);
      const form = yield* cancelled(at, run, { "content-type": "application/x-www-form-urlencoded" });
      assert.deepStrictEqual([form.status, form.body.reason], [400, "invalid_request"]);
      const site = yield* cancelled(at, run, { ...asked, origin: "https://elsewhere.example" });
      assert.strictEqual(site.status, 403);
      assert.strictEqual((yield* at.runs)[0]?.state, "live");
    }).pipe(Effect.scoped),
  );

  it.live(
    "accepts no request with a token that may not see the page, without one, or of another site, as its siblings do not",
    () =>
      Effect.gen(function* () {
        const [page, plain] = ["a-token-of-24-characters", "another-token-of-some-length"];
        const named = (name: string, token: string, page: boolean) => ({
          ...{ name, page, token: Redacted.make(token) },
          metrics: !page,
        });
        const tokens = [named("operator", page, true), named("team", plain, false)];
        const at = yield* front(yield* endless, { tokens }, RecoveryPage.layer);
        const { client, run } = yield* begun({ ...at, url: `${at.url}/t/${plain}` });
        const siblings = ["runs/RUN/cancel", "runs/RUN/answer", "paths/try"].map((it) => it.replace("RUN", run));
        const words = [undefined, JSON.stringify({ revision: 1, choice: "stop" }), JSON.stringify({ path: "x" })];
        const barred: ReadonlyArray<readonly [string, Record<string, string>, number, string]> = [
          ["a token without the page", { "x-recovery-token": plain }, 403, "permission"],
          ["no token", {}, 401, "token"],
          ["a wrong token", { "x-recovery-token": `${page}x` }, 401, "token"],
          ["another site", { "x-recovery-token": page, origin: "https://elsewhere.example" }, 403, "origin"],
          ["a script of another site", { "x-recovery-token": page, "sec-fetch-site": "cross-site" }, 403, "origin"],
          [
            "a form of another site",
            { "x-recovery-token": page, "sec-fetch-mode": "navigate", "sec-fetch-site": "cross-site" },
            403,
            "origin",
          ],
        ];
        for (const [who, headers, status, reason] of barred)
          for (const [index, path] of siblings.entries()) {
            const body = words[index];
            const sent = { method: "POST", headers: { ...asked, ...headers }, ...(body === undefined ? {} : { body }) };
            const got = yield* Effect.promise(() => send(`${at.url}/recovery/api/${path}`, sent));
            assert.deepStrictEqual([got.status, recovery(got, "refused")], [status, reason], `${who}: ${path}`);
            for (const token of [page, plain]) assert.notInclude(got.text, token);
          }
        const unsaid = yield* cancelled(at, run, { "x-recovery-token": page });
        assert.deepStrictEqual([unsaid.status, unsaid.body.reason], [400, "invalid_request"]);
        assert.strictEqual((yield* at.runs)[0]?.state, "live");
        const { status } = yield* cancelled(at, run, { ...asked, "x-recovery-token": page });
        assert.strictEqual(status, 200);
        assert.isTrue((yield* Fiber.join(client)).broken);
      }).pipe(Effect.scoped),
  );

  it.live("reaches the gateway that owns the run over the same file, and names it", () =>
    Effect.gen(function* () {
      const db = join(yield* folder, "runs.db");
      const upstream = yield* endless;
      const [one, other] = [
        yield* front(upstream, { db }, RecoveryPage.layer),
        yield* front(upstream, { db }, RecoveryPage.layer),
      ];
      const { client, run } = yield* begun(one);
      const { body, status } = yield* cancelled(other, run);
      assert.strictEqual(status, 200);
      assert.deepInclude(body, { outcome: "forwarded", driver: `${process.pid}@${hostname()}` });
      assert.deepNestedInclude(body, { "run.end.reason": "user_cancelled" });
      assert.isTrue((yield* Fiber.join(client)).broken);
    }).pipe(Effect.scoped),
  );
});
