/**
 * `serve --workers`: one worker's knowledge of a request or a provider applies at the others.
 */
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { clientOf, eventsOf, whole } from "../gateway/attach/AttachCases.ts";
import { bodies, paths } from "../gateway/GatewayCases.ts";
import { polled } from "../Polling.ts";
import { serverOf } from "../Servers.ts";
import { folder, runsIn, type Served, serve } from "./ServeProcess.ts";
import { type Client, connected, logged, workersOf } from "./Workers.ts";

const started = Effect.fnUntraced(function* (upstream: string, more: ReadonlyArray<string> = [], file?: string) {
  const db = file ?? join(yield* folder, "runs.db");
  const args = ["--port", "0", "--workers", "2", "--db", db, "--openai-url", `${upstream}/v1`, ...more];
  const served = yield* serve(args);
  yield* logged(served, /a worker is ready/, 2);
  return served;
});

const chat = Effect.fnUntraced(function* (
  served: Served,
  worker: number,
  headers: Record<string, string> = {},
  more: object = {},
) {
  const { agent } = yield* connected(served, worker);
  const sent = { "content-type": "application/json", authorization: "Bearer sk-one", ...headers };
  const body = JSON.stringify({ ...bodies["openai-chat"], ...more });
  return clientOf(`${served.url}${paths["openai-chat"]}`, { agent, headers: sent, body });
});

const again = { "x-stainless-retry-count": "1" };

/**
 * The announced delays that a worker knows, once there are any. The page shows all workers that reply, which is a single one while the
 * other one is stopped.
 */
const announcedTo = (served: Served, asked: Client, other: number, sibling: Client) =>
  polled(
    Effect.gen(function* () {
      const pid = workersOf(served).get(other) ?? 0;
      process.kill(pid, "SIGSTOP");
      const { text } = yield* asked.ask("/recovery/api/paths");
      process.kill(pid, "SIGCONT");
      // It gets a turn before it is stopped again.
      yield* sibling.ask("/livez");
      const [path] = JSON.parse(text).paths;
      return path?.cooldowns.length > 0 ? (path.cooldowns as ReadonlyArray<object>) : undefined;
    }),
  );

describe("the knowledge that several workers share", () => {
  it.live("a request that was abandoned at one gets the same answer from the other, and nothing is sent", () =>
    Effect.gen(function* () {
      let asked = 0;
      const upstream = yield* serverOf((request, response) => {
        asked += 1;
        request.resume();
        response.writeHead(500, { "content-type": "application/json" }).end("{}");
      });
      const served = yield* started(upstream, ["--budget", "max_auto_retries=1"]);
      const first = yield* whole(yield* chat(served, 1));
      const sent = asked;
      assert.isAbove(sent, 1);
      const second = yield* whole(yield* chat(served, 2, again));
      // The provider's own words stay with the first worker; the other one reports the failure in the gateway's words.
      assert.deepStrictEqual([first.head?.statusCode, second.head?.statusCode], [500, 400]);
      yield* logged(served, /outcome=from_memory .*worker=2/);
      assert.strictEqual(asked, sent);
      const other = yield* whole(yield* chat(served, 2, { ...again, authorization: "Bearer sk-two" }));
      assert.isAbove(asked, sent, String(other.body));
    }),
  );

  it.live("a repeat at one of a request that its client abandoned at the other names that run in the file", () =>
    Effect.gen(function* () {
      const events = eventsOf("openai-chat");
      let asked = 0;
      const upstream = yield* serverOf((request, response) => {
        request.resume();
        asked += 1;
        response.writeHead(200, { "content-type": "text/event-stream" }).write(Buffer.concat(events.slice(0, 3)));
        if (asked > 1) response.end(Buffer.concat(events.slice(3)));
      });
      const db = join(yield* folder, "runs.db");
      const served = yield* started(upstream, [], db);
      const first = yield* chat(served, 1);
      const run = String((yield* Effect.promise(() => first.head)).headers["x-recovery-run"]);
      first.leave();
      yield* logged(served, /outcome=cancelled .*worker=1/);
      const second = yield* whole(yield* chat(served, 2, again));
      assert.isFalse(second.broken);
      yield* logged(served, /outcome=completed .*worker=2/);
      // Both ends are in the log before they are on record.
      const runs = yield* polled(
        Effect.map(runsIn(db), (all) => (all.length === 2 && all.every(({ end }) => end) ? all : undefined)),
      );
      assert.deepStrictEqual(
        runs.map(({ end, retry_of }) => [end?.state, retry_of]),
        [
          ["completed", run],
          ["stopped", undefined],
        ],
      );
    }),
  );

  it.live(
    "a wait that was announced to one blocks the same credential at the other, and is shown once on the page",
    () =>
      Effect.gen(function* () {
        const events = eventsOf("openai-chat");
        const asked: Array<string | undefined> = [];
        const upstream = yield* serverOf((request, response) => {
          request.resume();
          asked.push(request.headers.authorization);
          if (asked.length === 1) return void response.writeHead(429, { "retry-after": "10" }).end("{}");
          response.writeHead(200, { "content-type": "text/event-stream" }).end(Buffer.concat(events));
        });
        const served = yield* started(upstream);
        const first = yield* chat(served, 1);
        const page = yield* connected(served, 2);
        const waiting = (count: number) =>
          polled(
            Effect.map(page.ask("/recovery/api/paths"), ({ text }) => {
              const [path] = JSON.parse(text).paths;
              return path?.waiting === count ? (path.cooldowns as ReadonlyArray<unknown>) : undefined;
            }),
          );
        yield* waiting(1);
        yield* announcedTo(served, page, 1, yield* connected(served, 1));
        const second = yield* chat(served, 2);
        assert.lengthOf(yield* waiting(2), 1);
        assert.lengthOf(asked, 1);
        const stranger = yield* whole(yield* chat(served, 2, { authorization: "Bearer sk-two" }));
        assert.isTrue(stranger.body.equals(Buffer.concat(events)));
        for (const client of [first, second]) assert.isTrue((yield* whole(client)).body.equals(Buffer.concat(events)));
        assert.deepStrictEqual(
          asked,
          ["sk-one", "sk-two", "sk-one", "sk-one"].map((key) => `Bearer ${key}`),
        );
      }),
  );

  it.live("a worker that replaces a killed one respects delays announced before its start", () =>
    Effect.gen(function* () {
      let asked = 0;
      const upstream = yield* serverOf((request, response) => {
        request.resume();
        asked += 1;
        response.writeHead(429, { "retry-after": "3600" }).end("{}");
      });
      const served = yield* started(upstream, ["--budget", "max_retry_after_ms=7200000"]);
      yield* chat(served, 2);
      const first = yield* connected(served, 1);
      yield* announcedTo(served, first, 2, yield* connected(served, 2));
      process.kill(workersOf(served).get(2) ?? 0, "SIGKILL");
      yield* logged(served, /a worker is ready worker=2/, 2);
      assert.lengthOf(yield* announcedTo(served, yield* connected(served, 2), 1, first), 1);
      assert.strictEqual(asked, 1);
    }),
  );

  it.live("runs of a group at both make no more retries together than the group allows", () =>
    Effect.gen(function* () {
      let asked = 0;
      const upstream = yield* serverOf((request, response) => {
        asked += 1;
        request.resume();
        response.writeHead(500, { "content-type": "application/json" }).end("{}");
      });
      const served = yield* started(upstream, ["--budget", "max_group_retries=1,max_auto_retries=2"]);
      const clients = yield* Effect.forEach([1, 2, 1, 2], (worker, n) =>
        // Each is a new request: a repeat of an abandoned one would get its old answer.
        chat(served, worker, { "x-recovery-group": "g" }, { user: String(n) }),
      );
      for (const client of clients) yield* whole(client);
      assert.strictEqual(asked, clients.length + 1);
    }),
  );
});
