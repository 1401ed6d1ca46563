/**
 * The page behind the gateway itself, with its token, its Host and Origin checks and its feed.
 */
import { afterAll, assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import { front, post } from "../GatewayCases.ts";
import { browserTestMs, closed, missing, steps, tab } from "./Chromium.ts";

const token = "a-token-of-24-characters";

const cutAfterText = {
  answers: [{ content: [{ text: 6 }], break: { kind: "rst", at: "terminal" } }, { content: [{ text: 6 }] }],
} as const;

const secrets = { key: "sk-planted-key-1234567890", prompt: "planted prompt of a person" };

const asked = (url: string) =>
  post(url, "anthropic-messages", {
    headers: { "x-api-key": secrets.key },
    body: JSON.stringify({
      model: "m",
      stream: true,
      max_tokens: 9,
      messages: [{ role: "user", content: secrets.prompt }],
    }),
  });

const text = (url: string, init?: RequestInit) =>
  Effect.promise(async () => {
    const response = await fetch(url, init);
    return { status: response.status, text: await response.text() };
  });

describe("the page behind the gateway", { timeout: browserTestMs }, () => {
  afterAll(closed);

  it.live("shows its runs and its metrics to a client with the token, and no part of a key or a prompt", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: cutAfterText });
      const { url } = yield* front(server.url, { token, reveal: "on_complete" }, RecoveryPage.layer);
      const base = `${url}/t/${token}`;
      assert.strictEqual((yield* asked(base)).status, 200);
      assert.strictEqual((yield* text(`${url}/recovery/`)).status, 401);
      const page = yield* text(`${base}/recovery/`);
      assert.include(page.text, "recovered");
      const [, run = ""] = /\?run=([^"]+)"/.exec(page.text) ?? [];
      const seen = [page];
      for (const path of [
        `/?run=${run}`,
        `/picture.html?run=${run}`,
        `/api/runs/${run}`,
        `/api/runs/${run}/export`,
        "/api/totals",
        "/api/health",
      ]) {
        seen.push(yield* text(`${base}/recovery${path}`));
      }
      const metrics = yield* text(`${base}/metrics`);
      assert.match(metrics.text, /^stream_recovery_gateway_requests_total\{outcome="relayed"\} 1$/m);
      for (const { status, text } of [...seen, metrics]) {
        assert.strictEqual(status, 200);
        for (const secret of [secrets.key, secrets.prompt, token]) assert.notInclude(text, secret);
      }
    }).pipe(Effect.scoped),
  );

  it.live("accepts no answer from a page of another site", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({});
      const { url } = yield* front(server.url, {}, RecoveryPage.layer);
      const answer = {
        method: "POST",
        headers: { origin: "https://evil.example", "content-type": "application/json", "x-recovery-answer": "1" },
        body: '{"revision":1,"choice":"stop"}',
      };
      assert.strictEqual((yield* text(`${url}/recovery/api/runs/x/answer`, answer)).status, 403);
      const own = { ...answer, headers: { ...answer.headers, origin: url } };
      assert.strictEqual((yield* text(`${url}/recovery/api/runs/x/answer`, own)).status, 404);
    }).pipe(Effect.scoped),
  );

  it.live.skipIf(missing !== undefined)("lets a person answer for a waiting client", () =>
    Effect.gen(function* () {
      // The provider may have run a tool before it broke, so the retry requires a confirmation.
      const unproven = { answers: [{ break: { kind: "rst", at: "after_head" } }, { content: [{ text: 6 }] }] } as const;
      const tools = [{ type: "mcp", server_label: "shop" }];
      const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "?" }], tools });
      const server = yield* FaultProvider.make({ script: unproven });
      const { until, url } = yield* front(server.url, { token, onQuestion: "hold" }, RecoveryPage.layer);
      const base = `${url}/t/${token}`;
      const { complaints, page } = yield* tab();
      yield* steps(() => page.goto(`${base}/recovery/`));
      const client = yield* Effect.forkScoped(post(base, "openai-chat", { body }));
      yield* steps(() => page.getByRole("button", { name: "Retry", exact: true }).click());
      yield* steps(() => page.getByRole("button", { name: "Retry anyway" }).click());
      yield* steps(() => page.locator("#said", { hasText: "Answered" }).waitFor());
      yield* steps(() => page.locator(".runs .chip", { hasText: "recovered" }).waitFor());
      const got = yield* Fiber.join(client);
      assert.deepStrictEqual([got.status, got.broken], [200, false]);
      const answered = yield* until(([run]) => run?.questions[0]?.answer);
      assert.strictEqual(answered, "retry");
      assert.deepStrictEqual(complaints, []);
    }).pipe(Effect.scoped),
  );
});
