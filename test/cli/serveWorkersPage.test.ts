/**
 * `serve --workers`: each worker shows a person or a scraper the data of all of them.
 */

import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import { bodies } from "../gateway/GatewayCases.ts";
import { polled } from "../Polling.ts";
import { folder, type Served, serve } from "./ServeProcess.ts";
import { type Client, connected, logged, workersOf } from "./Workers.ts";

const chat = "/v1/chat/completions";
const body = JSON.stringify(bodies["openai-chat"]);

const started = Effect.fnUntraced(function* (upstream: string, more: ReadonlyArray<string> = []) {
  const db = join(yield* folder, "runs.db");
  const served = yield* serve([
    ...["--port", "0", "--workers", "2", "--db", db, "--openai-url", `${upstream}/v1`, ...more],
  ]);
  yield* logged(served, /a worker is ready/, 2);
  return served;
});

/** A client of each worker. */
const both = (served: Served) => Effect.all([connected(served, 1), connected(served, 2)]);

const json = (client: Client, path: string): Effect.Effect<Record<string, unknown>> =>
  Effect.map(client.ask(path), ({ text }) => JSON.parse(text) as Record<string, unknown>);

/** The value of one series in a scrape; undefined if it is missing. */
const series = (client: Client, name: string): Effect.Effect<number | undefined> =>
  Effect.map(client.ask("/metrics"), ({ text }) => {
    const line = text.split("\n").find((it) => it.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length));
  });

const relayed = 'stream_recovery_gateway_requests_total{outcome="relayed"}';

describe("the page and the metrics of several workers", () => {
  it.live("are the same at each of them, and totals do not fall when one dies", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({});
      const served = yield* started(server.url);
      const [first, second] = yield* both(served);
      for (const client of [first, second, second]) assert.strictEqual((yield* client.ask(chat, body)).status, 200);
      for (const client of [first, second]) {
        assert.strictEqual(yield* series(client, relayed), 3);
        // The other worker writes its runs after they act.
        yield* polled(
          Effect.map(json(client, "/recovery/api/runs"), ({ runs }) =>
            Array.isArray(runs) && runs.length === 3 ? true : undefined,
          ),
        );
        const { text } = yield* client.ask("/metrics");
        for (const worker of [1, 2]) assert.include(text, `process_resident_memory_bytes{worker="${worker}"}`);
        assert.match(text, /stream_recovery_gateway_served_total\{[^}]*outcome="completed"[^}]*\} 3\n/);
        assert.lengthOf((yield* json(client, "/recovery/api/paths")).paths as ReadonlyArray<unknown>, 1);
      }
      process.kill(workersOf(served).get(2) ?? 0, "SIGKILL");
      yield* logged(served, /a worker ended/);
      assert.strictEqual(yield* series(first, relayed), 3, "its last counters stay");
      yield* logged(served, /a worker is ready/, 3);
      assert.strictEqual(yield* series(first, relayed), 3);
      yield* first.ask(chat, body);
      const again = yield* connected(served, 2);
      assert.strictEqual(yield* series(again, relayed), 4);
    }),
  );

  it.live("show the current work of another worker, in the feed, too, and accept an answer for it", () =>
    Effect.gen(function* () {
      // The provider may have run a tool before it broke, which raises a question.
      const tools = [{ type: "mcp", server_label: "shop" }];
      const answers = [{ break: { kind: "rst", at: "after_head" } }, { content: [{ text: 6 }] }] as const;
      const server = yield* FaultProvider.make({ script: { answers } });
      const uncertain = JSON.stringify({ ...bodies["openai-chat"], tools });
      const served = yield* started(server.url, ["--on-question", "hold", "--reveal", "live"]);
      const [first, second] = yield* both(served);
      const feed = yield* Effect.forkScoped(
        (yield* connected(served, 1)).until("/recovery/api/events", (text) => /"runs":\["gw_/.test(text)),
        { startImmediately: true },
      );
      const asking = yield* Effect.forkScoped((yield* connected(served, 2)).ask(chat, uncertain), {
        startImmediately: true,
      });
      const question = yield* polled(
        Effect.map(json(first, "/recovery/api/questions"), ({ questions }) => {
          const [open] = questions as ReadonlyArray<{ readonly run_id: string; readonly revision: number }>;
          return open;
        }),
      );
      for (const client of [first, second]) assert.strictEqual((yield* json(client, "/recovery/api/health")).live, 1);
      assert.include(yield* Fiber.join(feed), question.run_id);
      const answer = { revision: question.revision, choice: "retry", confirm_may_repeat: true };
      const path = `/recovery/api/runs/${question.run_id}/answer`;
      const taken = yield* first.ask(path, JSON.stringify(answer), { "x-recovery-answer": "1" });
      assert.strictEqual(taken.status, 200, taken.text);
      const got = yield* Fiber.join(asking);
      assert.strictEqual(got.status, 200);
      assert.include(got.text, "[DONE]");
      const run = yield* json(second, `/recovery/api/runs/${question.run_id}`);
      assert.strictEqual(run.state, "ended");
    }),
  );
});
