/** Gateways on two machines, as far as they can tell: each has its own processor, and they share one database. */
import { hostname } from "node:os";
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber } from "effect";
import { Paths } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as RunCancel from "../../../src/runtime/crash/RunCancel.ts";
import * as StoredCancels from "../../../src/runtime/run/StoredCancels.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { serverOf } from "../../Servers.ts";
import { clientOf, eventsOf } from "../attach/AttachCases.ts";
import { bodies, type Fronted, front, type Got, paths, post, recovery, send } from "../GatewayCases.ts";
import { listening } from "./Nodes.ts";

const repeat = { "x-stainless-retry-count": "1" };

const ask = (url: string, headers: Record<string, string> = {}, user = "u"): Effect.Effect<Got> =>
  post(url, "openai-chat", {
    body: JSON.stringify({ ...bodies["openai-chat"], user }),
    headers: { "content-type": "application/json", authorization: "Bearer sk-secret", ...headers },
  });

describe("two gateways over one database", () => {
  it.live(
    "share a client's budget of retries: its repeat at the other one has what is left, and the next is told",
    () =>
      Effect.gen(function* () {
        const db = yield* Databases.empty;
        let asked = 0;
        const upstream = yield* serverOf((_, response) => {
          asked += 1;
          response.destroy();
        });
        const program = { db, budget: { max_auto_retries: 2 } } as const;
        const [a, b] = [yield* front(upstream, program), yield* front(upstream, program)];
        const first = yield* ask(a.url);
        assert.strictEqual(asked, 3);
        // Nobody says that this one repeats the first: it is asked of the store when it breaks.
        yield* ask(b.url);
        assert.strictEqual(asked, 4, "nothing is left of the budget");
        const told = yield* ask(a.url, repeat);
        assert.strictEqual(asked, 4, "it is told from memory");
        assert.strictEqual(told.status, first.status);
        yield* ask(b.url, repeat, "another request");
        assert.strictEqual(asked, 7, "another request has a budget of its own");
        const runs = yield* a.until((all) => (all.length < 3 ? undefined : all));
        const byRun = new Map(runs.map(({ retry_of, run_id }) => [run_id, retry_of]));
        assert.lengthOf(runs, 3);
        assert.deepStrictEqual(
          runs.map(({ run_id }) => byRun.get(run_id)),
          [undefined, recovery(first, "run"), undefined],
          "the record names the run of the other gateway",
        );
      }).pipe(Effect.scoped),
  );

  it.live("put on record which run of the other one a repeat repeats, also where it does not break", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const events = eventsOf("openai-chat");
      let asked = 0;
      const ends = Deferred.makeUnsafe<void>();
      const upstream = yield* serverOf((_, response) => {
        asked += 1;
        response.writeHead(200, { "content-type": "text/event-stream" }).write(Buffer.concat(events.slice(0, 3)));
        if (asked > 1)
          Effect.runFork(Effect.map(Deferred.await(ends), () => response.end(Buffer.concat(events.slice(3)))));
      });
      const [a, b] = [yield* front(upstream, { db }), yield* front(upstream, { db })];
      const body = JSON.stringify(bodies["openai-chat"]);
      const headers = { "content-type": "application/json", authorization: "Bearer sk-secret" };
      const first = clientOf(`${a.url}${paths["openai-chat"]}`, { body, headers });
      const run = String((yield* Effect.promise(() => first.head)).headers["x-recovery-run"]);
      first.leave();
      yield* a.until((all) => all.find(({ end }) => end !== undefined));
      const second = clientOf(`${b.url}${paths["openai-chat"]}`, { body, headers: { ...headers, ...repeat } });
      const repeated = yield* b.until((all) => all.find(({ retry_of }) => retry_of !== undefined));
      assert.strictEqual(repeated.retry_of, run);
      assert.strictEqual(repeated.state, "live", "it is known while the run goes on");
      Deferred.doneUnsafe(ends, Effect.void);
      assert.isFalse((yield* Effect.promise(() => second.over)).broken);
      const ended = yield* b.until((all) => all.find(({ end, retry_of }) => retry_of === run && end !== undefined));
      assert.strictEqual(ended.end?.state, "completed");
      assert.lengthOf(ended.incidents, 0);
    }).pipe(Effect.scoped),
  );

  it.live("tell a repeat at the other one what its client was told, where it says that it is one", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      let asked = 0;
      const upstream = yield* serverOf((_, response) => {
        asked += 1;
        response.destroy();
      });
      const program = { db, budget: { max_auto_retries: 1 } } as const;
      const [a, b] = [yield* front(upstream, program), yield* front(upstream, program)];
      const first = yield* ask(a.url);
      const before = asked;
      const second = yield* ask(b.url, repeat);
      assert.strictEqual(asked, before);
      assert.strictEqual(second.status, first.status);
      assert.strictEqual(recovery(second, "run"), recovery(first, "run"));
    }).pipe(Effect.scoped),
  );

  it.live("keep a wait that a provider has announced to one of them, and one that starts later keeps it too", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      let asked = 0;
      const upstream = yield* serverOf((_, response) => {
        asked += 1;
        const body = JSON.stringify({ error: { message: "slow down", type: "requests", code: "rate_limit_exceeded" } });
        response.writeHead(429, { "content-type": "application/json", "retry-after": "50" }).end(body);
      });
      const program = { db, budget: { max_retry_after_ms: 60_000, max_outage_ms: 0 } } as const;
      const [a, b] = [yield* front(upstream, program), yield* front(upstream, program)];
      yield* listening(b);
      const waits = (fronted: Fronted) => {
        const paths = Context.get(fronted.services, Paths);
        return paths.list().flatMap(({ cooldowns }) => cooldowns).length;
      };
      yield* ask(a.url);
      assert.strictEqual(asked, 1);
      yield* b.until(() => (waits(b) > 0 ? true : undefined));
      yield* ask(b.url, {}, "another request");
      assert.strictEqual(asked, 1, "it was not sent");
      const c = yield* front(upstream, program);
      yield* c.until(() => (waits(c) > 0 ? true : undefined));
      yield* ask(c.url, {}, "a third request");
      assert.strictEqual(asked, 1);
    }).pipe(Effect.scoped),
  );

  it.live("end a run that the other one drives: for its client by its credential, and for who has the store", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const event = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "x" } }] })}\n\n`;
      const upstream = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write(event);
      });
      const program = { db, lingerMs: 60_000 } as const;
      const [a, b] = [yield* front(upstream, program), yield* front(upstream, program)];
      yield* Effect.andThen(listening(a), listening(b));
      const began = (user: string) =>
        Effect.gen(function* () {
          const before = (yield* a.runs).map(({ run_id }) => run_id);
          const client = yield* Effect.forkChild(ask(a.url, {}, user));
          const run = yield* a.until((all) => all.find((it) => !before.includes(it.run_id) && it.state === "live"));
          return { client, run: run.run_id };
        });
      const ended = (run: string) =>
        b.until((all) => all.find(({ end, run_id }) => run_id === run && end !== undefined)?.end);
      const stop = (run: string, authorization: string) =>
        Effect.promise(() =>
          send(`${b.url}/recovery/streams/${run}`, { method: "DELETE", headers: { authorization } }),
        );
      const first = yield* began("one");
      assert.strictEqual((yield* stop(first.run, "Bearer sk-other")).status, 404);
      assert.strictEqual((yield* stop(first.run, "Bearer sk-secret")).status, 204);
      assert.strictEqual((yield* ended(first.run)).reason, "user_cancelled");
      assert.isTrue((yield* Fiber.join(first.client)).broken);
      const second = yield* began("two");
      const recorder = Context.get(b.services, RunRecorder);
      const cancelled = Effect.provideService(RunCancel.cancel(second.run), RunRecorder, recorder);
      const told = yield* cancelled;
      assert.deepInclude(told, { outcome: "forwarded", driver: `${process.pid}@${hostname()}` });
      assert.strictEqual(told?.record.end?.reason, "user_cancelled");
      assert.isTrue((yield* Fiber.join(second.client)).broken);
      assert.strictEqual((yield* cancelled)?.outcome, "ended");
      const { shared } = recorder;
      if (shared === undefined) return assert.fail("a server is shared");
      assert.isFalse(yield* StoredCancels.cancel(shared, { run_id: second.run }));
    }).pipe(Effect.scoped),
  );
});
