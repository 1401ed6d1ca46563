import { request as httpRequest, type IncomingMessage } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { moments, sent } from "../../ClientAborts.ts";
import { found } from "../../Polling.ts";
import { seeded } from "../../Seeded.ts";
import { serverOf } from "../../Servers.ts";
import { talkIds } from "../../samples/index.ts";
import { bodies, front, fronted, paths, post, protocols, recovery, send } from "../GatewayCases.ts";

/** A client that can disconnect. */
const client = (url: string, protocol: (typeof protocols)[number], headers: Record<string, string> = {}) => {
  const request = httpRequest(`${url}${paths[protocol]}`, { method: "POST", agent: false, headers });
  request.on("error", () => undefined);
  const response = new Promise<IncomingMessage>((resolve) => request.on("response", resolve));
  request.end(JSON.stringify(bodies[protocol]));
  return { request, response };
};

const ended = (runs: ReadonlyArray<RunRecord>): string | undefined => runs[0]?.end?.reason;

describe.concurrent("Gateway, its clients", () => {
  for (const protocol of protocols) {
    for (const [name, answer] of moments.filter(([name]) => talkIds.includes(protocol) || !name.includes("call"))) {
      it.live(`stops its ${protocol} upstream at once when the client disconnects ${name}, as a user's cancel`, () =>
        Effect.gen(function* () {
          const { server, until, url } = yield* fronted({ answers: [answer] });
          const { request } = client(url, protocol);
          yield* server.until((rows) => rows.find((row) => sent(row, answer)));
          request.destroy();
          assert.strictEqual((yield* server.ended(1)).outcome, "client_closed");
          assert.strictEqual(yield* until(ended), "user_cancelled");
          assert.lengthOf(yield* server.log, 1);
        }),
      );
    }
  }

  it.live("counts a client that disconnects after the marker as one that had everything", () =>
    Effect.gen(function* () {
      const body = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
      // The marker has arrived, and the upstream does not end its body.
      const at = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(body);
      });
      const { until, url } = yield* front(at);
      const { request, response } = client(url, "openai-chat");
      const got = yield* Effect.promise(() => response);
      yield* Effect.promise(() => new Promise((seen) => got.once("data", seen)));
      got.on("error", () => undefined);
      request.destroy();
      assert.strictEqual((yield* until((runs) => runs[0]?.end))?.state, "completed");
    }),
  );

  it.live("survives clients that disconnect at any moment, and each of their runs ends", () =>
    Effect.gen(function* () {
      const seed = 20261122;
      const random = seeded(seed);
      const { gateway, server, until, url } = yield* fronted({
        answers: [
          { content: [{ reasoning: 2 }, { text: 20 }, { tool: "pay" }], delay_ms: 1 },
          { content: [{ text: 20 }], delay_ms: 1, break: { kind: "rst", at: "event", n: 2 } },
          { head_delay_ms: 5, content: [{ text: 20 }] },
        ],
      });
      const goes = (index: number) =>
        new Promise<void>((resolve) => {
          const protocol = protocols[index % 4] ?? "openai-chat";
          const { request, response } = client(url, protocol, { "x-n": String(index) });
          request.on("close", resolve);
          let turns = Math.floor(random() * 60);
          const step = () => {
            turns -= 1;
            if (turns < 0) request.destroy();
            else setImmediate(step);
          };
          step();
          void response.then((got) => got.on("error", () => undefined).resume());
        });
      yield* Effect.forEach(Array.from({ length: 120 }), (_, index) => Effect.promise(() => goes(index)), {
        concurrency: 12,
      });
      const runs = yield* until((all) => (all.every((run) => run.state === "ended") ? all : undefined));
      for (const { end } of runs) {
        const fine = end?.state === "completed" || end?.reason === "user_cancelled";
        assert.isTrue(fine, `seed ${seed}: ${end?.reason}`);
      }
      yield* found(Effect.map(gateway.serving, (serving) => (serving === 0 ? true : undefined)));
      assert.strictEqual(yield* gateway.keptBytes, 0);
      yield* server.until((rows) => (rows.every((row) => row.outcome !== "open") ? true : undefined));
    }),
  );

  it.live("treats an identical request after a failed one as its client's retry, which shares the budget", () =>
    Effect.gen(function* () {
      const reset = { break: { kind: "rst", at: "before_head" } } as const;
      const shown = { content: [{ text: 4 }], break: { kind: "rst", at: "terminal" } } as const;
      const { runs, server, url } = yield* fronted(
        { answers: [reset, reset, shown, reset] },
        { onBreak: "abort", budget: { max_auto_retries: 2, max_not_processed: 2 } },
      );
      // The response broke after shown text: its client gets no reason, and retries by itself.
      const first = yield* post(url, "openai-chat");
      assert.isTrue(first.broken);
      const again = yield* post(url, "openai-chat");
      assert.strictEqual(recovery(again, "attempts"), "1");
      assert.lengthOf(yield* server.log, 4);
      assert.strictEqual((yield* runs)[0]?.retry_of, recovery(first, "run"));
      const other = yield* post(url, "openai-chat", { headers: { authorization: "Bearer other" } });
      assert.strictEqual(recovery(other, "attempts"), "3");
      assert.isUndefined((yield* runs)[0]?.retry_of);
    }),
  );

  it.live("answers the repeat of a run that has just failed from memory, with its age and without a request", () =>
    Effect.gen(function* () {
      const { runs, server, url } = yield* fronted({ answers: [{ break: { kind: "rst", at: "before_head" } }] });
      const first = yield* post(url, "openai-chat");
      const requests = (yield* server.log).length;
      const again = yield* post(url, "openai-chat");
      assert.deepStrictEqual([first.status, again.status], [400, 400]);
      assert.match(String(again.headers["x-recovery-age"]), /^\d+$/);
      assert.strictEqual(recovery(again, "run"), recovery(first, "run"));
      assert.strictEqual(again.headers["x-should-retry"], "false");
      assert.lengthOf(yield* server.log, requests);
      assert.lengthOf(yield* runs, 1);
      const other = JSON.stringify({ ...bodies["openai-chat"], model: "another" });
      yield* post(url, "openai-chat", { body: other });
      assert.lengthOf(yield* runs, 2);
    }),
  );

  it.live("treats a request that says it is a retry as one of the request that its client abandoned", () =>
    Effect.gen(function* () {
      const { runs, server, until, url } = yield* fronted({
        answers: [{ content: [{ text: 4 }], break: { kind: "stall", at: "before_head" } }, { content: [{ text: 4 }] }],
      });
      const { request } = client(url, "openai-chat");
      yield* server.until((rows) => rows.find((row) => row.body_hash !== ""));
      request.destroy();
      const gaveUp = yield* until((all) => (all[0]?.end === undefined ? undefined : all[0].run_id));
      yield* post(url, "openai-chat", { headers: { "x-stainless-retry-count": "1" } });
      assert.strictEqual((yield* runs)[0]?.retry_of, gaveUp);
    }),
  );

  it.live("keeps simultaneous identical requests apart", () =>
    Effect.gen(function* () {
      const { runs, url } = yield* fronted({ answers: [{ content: [{ text: 4 }], delay_ms: 5 }] });
      const all = yield* Effect.all([post(url, "openai-chat"), post(url, "openai-chat"), post(url, "openai-chat")], {
        concurrency: 3,
      });
      assert.strictEqual(new Set(all.map((got) => recovery(got, "run"))).size, 3);
      for (const run of yield* runs) assert.isUndefined(run.retry_of);
    }),
  );

  it.live("slows its upstream down to a client that does not read, and buffers little of it", () =>
    Effect.gen(function* () {
      const total = 64 * 1024 * 1024;
      let written = 0;
      let paused = () => {};
      const stuck = new Promise<void>((resolve) => {
        paused = resolve;
      });
      const event = Buffer.from(
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x".repeat(16_000) } }] })}\n\n`,
      );
      const at = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        // The upstream stops when its socket accepts no more for several turns.
        const more = () => {
          while (written < total) {
            written += event.length;
            if (response.write(event)) continue;
            let idle = 0;
            const wait = () => {
              idle += 1;
              if (!response.writableNeedDrain) return;
              if (idle > 20_000) return paused();
              setImmediate(wait);
            };
            wait();
            response.once("drain", more);
            return;
          }
          paused();
        };
        more();
      });
      const { url, until } = yield* front(at);
      const { request, response } = client(url, "openai-chat");
      const got = yield* Effect.promise(() => response);
      got.pause();
      yield* Effect.promise(() => stuck);
      assert.isBelow(written, total / 2, "the upstream was read although no client takes it");
      request.destroy();
      assert.strictEqual(yield* until(ended), "user_cancelled");
    }),
  );

  it.live("disconnects a client that reads nothing for too long", () =>
    Effect.gen(function* () {
      const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x".repeat(60_000) } }] })}\n\n`;
      const at = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (let n = 0; n < 400; n++) response.write(event);
      });
      const { until, url } = yield* front(at, { limits: { slowClientMs: 100 } });
      const { response } = client(url, "openai-chat");
      const got = yield* Effect.promise(() => response);
      got.on("error", () => undefined);
      got.pause();
      assert.strictEqual(yield* until(ended), "user_cancelled");
    }),
  );

  it.live("serves a few hundred streams at one time, each with its own bytes", () =>
    Effect.gen(function* () {
      const { gateway, server, url } = yield* fronted({ answers: [{ content: [{ text: 10 }], delay_ms: 5 }] });
      const all = yield* Effect.forEach(
        Array.from({ length: 300 }),
        (_, n) => Effect.promise(() => send(`${url}/v1/chat/completions`, { body: body(n) })),
        { concurrency: "unbounded" },
      );
      const serials = new Set(all.flatMap((got) => [...got.text.matchAll(/"content":"([^"]+)"/g)].map(([, it]) => it)));
      const rows = yield* server.log;
      assert.strictEqual(serials.size, rows.flatMap((row) => row.text).length);
      for (const got of all) assert.isFalse(got.broken);
      assert.strictEqual(yield* gateway.keptBytes, 0);
    }),
  );
});

const body = (n: number): string => JSON.stringify({ ...bodies["openai-chat"], model: `m${n}` });
