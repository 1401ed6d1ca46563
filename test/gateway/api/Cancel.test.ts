/**
 * Cancels runs through the API: of the gateway that is asked, and of another one over the same file.
 */
import { hostname } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { folder } from "../../cli/ServeProcess.ts";
import { bodies, type Fronted, front, post, send, serverOf } from "../GatewayCases.ts";

const event = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "x" } }] })}\n\n`;

/** A provider that begins to answer, and never ends. */
const endless = serverOf((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/event-stream" }).write(event);
});

const asked = { "x-recovery-answer": "1", "content-type": "application/json" };

const cancelled = ({ url }: Pick<Fronted, "url">, run: string, headers: Record<string, string> = asked) =>
  Effect.map(
    Effect.promise(() => send(`${url}/recovery/api/runs/${run}/cancel`, { method: "POST", headers })),
    ({ status, text }) => ({ status, body: JSON.parse(text) as Record<string, unknown> }),
  );

/** A run that is under way at a gateway: its client has begun to read, or waits for its head. */
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
  it.live("ends a run of the gateway that is asked, breaks its client's response, and is refused behind its end", () =>
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

  it.live("is told to a client that waits for its head, in words behind which it does not ask again", () =>
    Effect.gen(function* () {
      let requests = 0;
      const silent = yield* serverOf((request) => {
        requests += 1;
        request.resume();
      });
      const at = yield* front(silent, {}, RecoveryPage.layer);
      const { client, run } = yield* begun(at, false);
      assert.strictEqual((yield* cancelled(at, run)).status, 200);
      const { headers, status } = yield* Fiber.join(client);
      assert.strictEqual(status, 400);
      assert.strictEqual(headers["x-should-retry"], "false");
      assert.strictEqual(headers["x-recovery-rule"], "user_cancelled");
      // It was this run that was cancelled: whoever asks the same again is not told of it from memory.
      const second = yield* begun(at, false);
      yield* cancelled(at, second.run);
      assert.isUndefined((yield* Fiber.join(second.client)).headers["x-recovery-age"]);
      assert.strictEqual(requests, 2);
    }).pipe(Effect.scoped),
  );

  it.live("takes no word that a form of another site could have sent", () =>
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

  it.live("reaches the gateway that drives the run over the same file, and names it", () =>
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
      assert.deepInclude(body, { outcome: "told", driver: `${process.pid}@${hostname()}` });
      assert.deepNestedInclude(body, { "run.end.reason": "user_cancelled" });
      assert.isTrue((yield* Fiber.join(client)).broken);
    }).pipe(Effect.scoped),
  );
});
