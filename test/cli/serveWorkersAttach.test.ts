/**
 * A client that comes back at another process is given the response of its run: at another worker (`serve --workers`), and at another
 * gateway over the same store (`serve --advertise`).
 */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import { freePort } from "../../scripts/programs/FreePort.ts";
import type { AttachableRun } from "../../src/gateway/api/Traffic.ts";
import {
  again,
  type Client,
  clientOf,
  eventsOf,
  type Provider,
  providerOf,
  whole,
} from "../gateway/attach/AttachCases.ts";
import { bodies, paths, protocols } from "../gateway/GatewayCases.ts";
import { eventually, polled, turn } from "../Polling.ts";
import { folder, runsIn, type Served, serve, urls } from "./ServeProcess.ts";
import { connected as connectedTo, logged, workersOf } from "./Workers.ts";

type Protocol = (typeof protocols)[number];

const credential = { authorization: "Bearer sk-one" };

/** How processes reach each other: as workers of one gateway, or as gateways by their addresses. */
type Way = "worker" | "gateway";

interface Started extends Served {
  readonly db: string;
  /** Gateways in place of workers. */
  readonly gateways?: ReadonlyArray<Served>;
}

/** So many processes, whose runs outlive their clients by an hour. */
const started = Effect.fnUntraced(function* (
  upstream: string,
  {
    env = {},
    more = [],
    way = "worker",
    workers = 2,
  }: { workers?: number; more?: ReadonlyArray<string>; env?: Record<string, string>; way?: Way } = {},
): Effect.fn.Return<Started, never, Scope.Scope> {
  const db = join(yield* folder, "runs.db");
  const linger = ["--linger-ms", "3600000", "--linger-max-ms", "3600000"];
  const args = ["--db", db, ...linger, ...urls(upstream), ...more];
  if (way === "gateway") {
    const gateways: Array<Served> = [];
    // Each one finds those that started before it.
    for (let n = 0; n < workers; n += 1) {
      const port = yield* freePort;
      const advertise = ["--port", String(port), "--advertise", `http://127.0.0.1:${port}`];
      gateways.push(yield* serve([...advertise, ...args], env));
    }
    const [first] = gateways;
    if (first === undefined) return yield* Effect.die("no gateway");
    return { ...first, db, gateways, stderr: () => gateways.map((it) => it.stderr()).join("") };
  }
  const served = yield* serve(["--port", "0", "--workers", String(workers), ...args], env);
  yield* logged(served, /a worker is ready/, workers);
  return { ...served, db };
});

/** The process with a number. */
const processOf = (served: Started, worker: number): Served => served.gateways?.[worker - 1] ?? served;

/** Connects to one process. */
const connected = (served: Started, worker: number) => connectedTo(processOf(served, worker), worker);

/** Sends a request to one process. */
const at = Effect.fnUntraced(function* (
  served: Started,
  worker: number,
  {
    body,
    headers = {},
    method,
    path,
    reads = true,
  }: { path: string; body?: string; method?: string; headers?: Record<string, string>; reads?: boolean },
) {
  const { agent } = yield* connected(served, worker);
  const sent = { "content-type": "application/json", ...credential, ...headers };
  return clientOf(`${processOf(served, worker).url}${path}`, {
    agent,
    headers: sent,
    reads,
    method: method ?? (body === undefined ? "GET" : "POST"),
    ...(body === undefined ? {} : { body }),
  });
});

const chat = (served: Started, worker: number, headers: Record<string, string> = {}, word: unknown = 0) =>
  at(served, worker, {
    path: paths["openai-chat"],
    body: JSON.stringify({ ...bodies["openai-chat"], word }),
    headers,
  });

/** A client that repeats its request, and reads nothing behind the head of its response. */
const unread = (served: Started, worker: number) =>
  at(served, worker, {
    path: paths["openai-chat"],
    body: JSON.stringify({ ...bodies["openai-chat"], word: 0 }),
    headers: again,
    reads: false,
  });

const stream = (served: Started, worker: number, run: string, method = "GET", headers: Record<string, string> = {}) =>
  at(served, worker, { path: `/recovery/streams/${run}`, method, headers });

/** The runs that may be attached to, as a worker or all gateways tell them, once they are as wanted. */
const streams = Effect.fnUntraced(function* (
  served: Started,
  worker: number,
  isWanted: (runs: ReadonlyArray<AttachableRun>) => boolean,
) {
  const asked = served.gateways?.map((_, at) => at + 1) ?? [worker];
  const clients = yield* Effect.forEach(asked, (it) => connected(served, it));
  const listed = Effect.forEach(clients, (client) =>
    Effect.map(
      client.ask("/recovery/api/streams"),
      ({ text }): ReadonlyArray<AttachableRun> => JSON.parse(text).streams,
    ),
  );
  return yield* polled(
    Effect.map(listed, (all) => {
      const runs = all.flat();
      return isWanted(runs) ? runs : undefined;
    }),
  );
});

/**
 * Lets a client leave after some events of its response.
 *
 * @param asked the worker that is asked if the client has left
 * @returns the id of its run
 */
const leaves = Effect.fnUntraced(function* (
  served: Started,
  provider: Provider,
  client: Client,
  events: number,
  asked = 2,
) {
  const sent = yield* provider.nth(0);
  sent.send(events);
  yield* Effect.promise(() => client.head);
  client.leave();
  yield* whole(client);
  const [run] = (yield* streams(served, asked, (runs) => runs.some(({ state }) => state === "left"))).filter(
    ({ state }) => state === "left",
  );
  return { sent, run: run?.run_id ?? "" };
});

/**
 * Repeats a request without a header at a worker until the worker has found the run in the store, so that the provider is not asked.
 *
 * @returns the client that has attached, and the number of provider requests in the meantime
 */
const attachesUnmarked = Effect.fnUntraced(function* (served: Started, provider: Provider, worker: number) {
  for (let runs = 1; ; runs += 1) {
    const client = yield* chat(served, worker);
    const isRead = streams(served, worker, (all) =>
      all.some(({ attached, state }) => state === "read" && attached > 0),
    );
    const own = yield* Effect.raceFirst(Effect.as(isRead, undefined), provider.nth(runs));
    if (own === undefined) return { client, runs: runs - 1 };
    own.finish();
    yield* whole(client);
  }
});

/** More bytes than the sockets buffer. */
const long = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(7_000_000)}"}}]}\n\n`);

const lines = (served: Served): ReadonlyArray<string> =>
  served
    .stderr()
    .split("\n")
    .filter((line) => line.includes(" request "));

const events = eventsOf("openai-chat");
const all = Buffer.concat(events);

for (const way of ["worker", "gateway"] as const)
  describe(`a client that comes back at another ${way}`, () => {
    // The bytes of a hop are the same over both ways, so one protocol is enough for the second.
    for (const protocol of way === "worker" ? protocols : protocols.slice(0, 1))
      it.live(
        `is killed at one ${way} behind each event of ${protocol} and repeats at the other: one request at the provider, every byte`,
        () =>
          Effect.gen(function* () {
            const said = eventsOf(protocol);
            const provider = yield* providerOf(said);
            const served = yield* started(provider.at, { way });
            const ask = (worker: number, word: number, headers = {}) =>
              at(served, worker, {
                path: paths[protocol],
                body: JSON.stringify({ ...bodies[protocol as Protocol], word }),
                headers,
              });
            for (let event = 0; event <= said.length; event += 1) {
              const first = yield* ask(1, event);
              const sent = yield* provider.nth(event);
              if (event > 0) sent.send(event);
              if (event === said.length) sent.finish();
              first.leave();
              yield* whole(first);
              const second = yield* ask(2, event, again);
              if (event < said.length) sent.finish();
              const got = yield* whole(second);
              assert.isFalse(got.broken, `event ${event}`);
              assert.isTrue(got.body.equals(Buffer.concat(said)), `event ${event}: ${got.body}`);
              assert.strictEqual(got.head?.headers["x-recovery-attached"], "0");
              assert.lengthOf(provider.asked, event + 1, `event ${event}`);
            }
            for (const run of yield* runsIn(served.db)) assert.strictEqual(run.end?.state, "completed");
          }),
      );

    it.live("attaches without a word while its run goes on without a reader, and to a run that it has named", () =>
      Effect.gen(function* () {
        const provider = yield* providerOf(events);
        const served = yield* started(provider.at, { way });
        const first = yield* chat(served, 1);
        const { sent } = yield* leaves(served, provider, first, 3);
        const { client: second, runs } = yield* attachesUnmarked(served, provider, 2);
        sent.finish();
        assert.isTrue((yield* whole(second)).body.equals(all));
        assert.lengthOf(provider.asked, 1 + runs);
        const named = { "idempotency-key": "mine" };
        const one = yield* chat(served, 1, named, 1);
        (yield* provider.nth(1 + runs)).finish();
        assert.isTrue((yield* whole(one)).body.equals(all));
        const repeat = yield* whole(yield* chat(served, 2, named, 1));
        assert.strictEqual(repeat.head?.headers["x-recovery-attached"], "0");
        const other = yield* chat(served, 2, { "idempotency-key": "other" }, 1);
        (yield* provider.nth(2 + runs)).finish();
        assert.isUndefined((yield* whole(other)).head?.headers["x-recovery-attached"]);
        assert.lengthOf(provider.asked, 3 + runs);
      }),
    );

    it.live("is refused the run of another credential, or one that somebody reads, and has one of its own", () =>
      Effect.gen(function* () {
        const provider = yield* providerOf(events);
        const served = yield* started(provider.at, { way });
        const first = yield* chat(served, 1);
        (yield* provider.nth(0)).send(3);
        yield* Effect.promise(() => first.head);
        const stranger = { authorization: "Bearer sk-two" };
        const others = [yield* chat(served, 2, again), yield* chat(served, 2, { ...again, ...stranger })];
        for (const index of [1, 2]) (yield* provider.nth(index)).finish();
        for (const other of others) {
          const got = yield* whole(other);
          assert.isTrue(got.body.equals(all));
          assert.isUndefined(got.head?.headers["x-recovery-attached"]);
        }
        const [run] = yield* streams(served, 2, (runs) => runs.some(({ state }) => state === "read"));
        for (const method of ["GET", "HEAD", "DELETE"])
          assert.strictEqual(
            (yield* whole(yield* stream(served, 2, run?.run_id ?? "", method, stranger))).head?.statusCode,
            404,
          );
        (yield* provider.nth(0)).finish();
        assert.isTrue((yield* whole(first)).body.equals(all));
      }),
    );

    it.live(`reads, asks for and ends a run by its name at any ${way}`, () =>
      Effect.gen(function* () {
        const provider = yield* providerOf(events);
        const served = yield* started(provider.at, { way });
        const first = yield* chat(served, 1);
        const { run, sent } = yield* leaves(served, provider, first, 3);
        const offset = { "last-event-id": String(events[0]?.length ?? 0) };
        const head = yield* whole(yield* stream(served, 2, run, "HEAD", offset));
        assert.strictEqual(head.head?.statusCode, 200);
        assert.strictEqual(head.head?.headers["x-recovery-attached"], offset["last-event-id"]);
        for (const wrong of ["many", "99999"]) {
          const got = yield* whole(yield* stream(served, 2, run, "GET", { "last-event-id": wrong }));
          assert.strictEqual(got.head?.statusCode, 400);
          assert.strictEqual(got.head?.headers["x-recovery-refused"], "offset");
          assert.include(got.body.toString(), "Last-Event-ID: expected the number of bytes");
        }
        const reading = yield* stream(served, 2, run, "GET", offset);
        yield* Effect.promise(() => reading.head);
        sent.send(1);
        const shown = Buffer.concat(events.slice(1, 4));
        // A cancel breaks the stream at once, whatever is on its way.
        yield* eventually(() => (reading.got().length >= shown.length ? true : undefined));
        const gone = yield* whole(yield* stream(served, 2, run, "DELETE"));
        assert.strictEqual(gone.head?.statusCode, 204);
        const got = yield* whole(reading);
        assert.isTrue(got.broken);
        // Behind these bytes it may be told of the cancel in its protocol's words.
        assert.isTrue(got.body.subarray(0, shown.length).equals(shown), String(got.body));
        assert.match(String(got.body.subarray(shown.length)), /^\s*$|the response was cancelled/);
        assert.isTrue(sent.isClosed() || (yield* Effect.as(turn, true)));
        assert.lengthOf(yield* streams(served, 2, (runs) => runs.length === 0), 0);
        for (const worker of [1, 2])
          assert.strictEqual((yield* whole(yield* stream(served, worker, run))).head?.statusCode, 404);
        assert.match(lines(served).find((line) => line.includes("method=DELETE")) ?? "", new RegExp(`run_id=${run}`));
      }),
    );

    it.live(`loses its place at another ${way} where its socket is silent`, () =>
      Effect.gen(function* () {
        const provider = yield* providerOf([long, ...events]);
        const served = yield* started(provider.at, { way });
        const first = yield* chat(served, 1);
        const { sent } = yield* leaves(served, provider, first, 1);
        const silent = yield* unread(served, 2);
        yield* Effect.promise(() => silent.head);
        yield* streams(served, 2, (runs) => runs.some(({ state }) => state === "read"));
        // What the system keeps for a socket that nobody reads is full long before the worker has responded so often.
        const watch = yield* connected(served, 2);
        for (let asked = 0; asked < 2_000; asked += 1) yield* watch.ask("/livez");
        const repeat = yield* chat(served, 1, again);
        // A run that is over has no reader that could lose its place.
        yield* Effect.promise(() => repeat.head);
        sent.finish();
        const got = yield* whole(repeat);
        assert.isTrue(got.body.equals(Buffer.concat([long, ...events])));
        (yield* Effect.promise(() => silent.head)).resume();
        assert.isTrue((yield* whole(silent)).broken);
        assert.lengthOf(provider.asked, 1);
      }),
    );
  });

describe("a client of several workers that comes back", () => {
  it.live("is given the same head as at its own worker, and its access line names the run", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const served = yield* started(provider.at);
      const first = yield* chat(served, 1);
      const { run, sent } = yield* leaves(served, provider, first, 3);
      sent.finish();
      const here = yield* whole(yield* chat(served, 1, again));
      const there = yield* whole(yield* chat(served, 2, again));
      assert.deepStrictEqual(there.head?.rawHeaders, here.head?.rawHeaders);
      assert.strictEqual(there.head?.headers["x-recovery-run"], run);
      assert.isTrue(there.body.equals(all));
      assert.lengthOf(provider.asked, 1);
      yield* logged(served, /outcome=attached/, 2);
      const attached = lines(served).filter((line) => line.includes("outcome=attached"));
      for (const line of attached)
        assert.match(line, new RegExp(`run_id=${run} .*attached_at=0 .*bytes=${all.length}`));
      assert.deepStrictEqual(attached.map((line) => / worker=(\d)/.exec(line)?.[1]).toSorted(), ["1", "2"]);
    }),
  );

  it.live("is told to come back where the run's worker is late, which ends the run as soon as it goes on", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const served = yield* started(provider.at);
      const first = yield* chat(served, 1);
      const { run, sent } = yield* leaves(served, provider, first, 3);
      const { agent } = yield* connected(served, 2);
      const asked = (method: string) =>
        clientOf(`${served.url}/recovery/streams/${run}`, { agent, headers: credential, method });
      const owner = workersOf(served).get(1) ?? 0;
      process.kill(owner, "SIGSTOP");
      const got = yield* Effect.ensuring(
        Effect.forEach(["GET", "HEAD", "DELETE"], (method) => whole(asked(method))),
        Effect.sync(() => process.kill(owner, "SIGCONT")),
      );
      for (const { head } of got) {
        assert.strictEqual(head?.statusCode, 503);
        assert.strictEqual(head?.headers["x-recovery-refused"], "unreachable");
        assert.strictEqual(head?.headers["retry-after"], "1");
      }
      // No client asks again.
      yield* polled(Effect.sync(() => (sent.isClosed() ? true : undefined)));
      const [ended] = yield* streams(served, 2, (runs) => runs.length === 0);
      assert.isUndefined(ended);
      assert.strictEqual((yield* whole(asked("DELETE"))).head?.statusCode, 404);
    }),
  );

  it.live("is one of twenty that repeat at once at three workers: one gets the run, each of the others a new one", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const served = yield* started(provider.at, { workers: 3 });
      const first = yield* chat(served, 1);
      yield* leaves(served, provider, first, 3);
      const agents = yield* Effect.forEach(Array.from({ length: 20 }), (_, n) => connected(served, 1 + (n % 3)));
      const headers = { "content-type": "application/json", ...credential, ...again };
      const body = JSON.stringify({ ...bodies["openai-chat"], word: 0 });
      const clients = agents.map(({ agent }) =>
        clientOf(`${served.url}${paths["openai-chat"]}`, { agent, headers, body }),
      );
      // A response that has ended would be given to more of them.
      yield* provider.nth(19);
      for (const one of provider.asked) one.finish();
      const got = yield* Effect.all(clients.map(whole));
      for (const { body: its, broken } of got) assert.isTrue(!broken && its.equals(all));
      assert.lengthOf(
        got.filter(({ head }) => head?.headers["x-recovery-attached"] === "0"),
        1,
      );
      assert.lengthOf(provider.asked, 20);
    }),
  );

  it.live("gets a break if the run's worker dies, as if the gateway died, and its repeat works", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const served = yield* started(provider.at);
      const first = yield* chat(served, 1);
      yield* leaves(served, provider, first, 3);
      const second = yield* chat(served, 2, again);
      yield* Effect.promise(() => second.head);
      process.kill(workersOf(served).get(1) ?? 0, "SIGKILL");
      const got = yield* whole(second);
      assert.isTrue(got.broken);
      assert.isTrue(all.subarray(0, got.body.length).equals(got.body));
      yield* logged(served, /a worker is ready worker=1/, 2);
      for (const worker of [1, 2]) {
        const repeat = yield* chat(served, worker, again);
        if (worker === 1) (yield* provider.nth(1)).finish();
        assert.isTrue((yield* whole(repeat)).body.equals(all));
      }
      assert.lengthOf(provider.asked, 2);
    }),
  );

  it.live("continues if the worker of its connection dies, but not the run's", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const served = yield* started(provider.at);
      const first = yield* chat(served, 1);
      const { sent } = yield* leaves(served, provider, first, 3);
      const second = yield* chat(served, 2, again);
      yield* Effect.promise(() => second.head);
      process.kill(workersOf(served).get(2) ?? 0, "SIGKILL");
      assert.isTrue((yield* whole(second)).broken);
      yield* logged(served, /a worker is ready worker=2/, 2);
      yield* streams(served, 2, (runs) => runs[0]?.state === "left");
      // The replacement finds the runs that existed before it.
      const { client: third, runs } = yield* attachesUnmarked(served, provider, 2);
      sent.finish();
      assert.isTrue((yield* whole(third)).body.equals(all));
      assert.lengthOf(provider.asked, 1 + runs);
    }),
  );

  it.live("is as slow as the configuration permits that was read last", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf([long, ...events]);
      const dir = yield* folder;
      const config = join(dir, "gateway.json");
      const write = (slow: number) => writeFileSync(config, JSON.stringify({ limits: { slow_client_ms: slow } }));
      write(300_000);
      const served = yield* started(provider.at, { more: ["--config", config] });
      const first = yield* chat(served, 1);
      yield* leaves(served, provider, first, 1);
      write(50);
      served.child.kill("SIGHUP");
      yield* logged(served, /the configuration was reloaded/);
      const second = yield* unread(served, 2);
      yield* Effect.promise(() => second.head);
      yield* streams(served, 2, (runs) => runs.some(({ attached, state }) => attached === 1 && state === "left"));
    }),
  );

  it.live("gets a new run if the workers have no folder, and the log says why", () =>
    Effect.gen(function* () {
      const provider = yield* providerOf(events);
      const served = yield* started(provider.at, { env: { TMPDIR: "/dev/null" } });
      assert.match(served.stderr(), /cannot create a folder in the temporary folder; .* code=ENOTDIR/);
      const first = yield* chat(served, 1);
      // Without a folder no worker can reach the other one.
      const { run, sent } = yield* leaves(served, provider, first, 3, 1);
      const second = yield* chat(served, 2, again);
      (yield* provider.nth(1)).finish();
      assert.isTrue((yield* whole(second)).body.equals(all));
      assert.strictEqual((yield* whole(yield* stream(served, 2, run))).head?.statusCode, 404);
      const third = yield* chat(served, 1, again);
      sent.finish();
      assert.isTrue((yield* whole(third)).body.equals(all));
      assert.lengthOf(provider.asked, 2);
    }),
  );

  it.live(
    "needs a folder that no other user may enter, is removed with the gateway, and is cleaned up by the next one",
    () =>
      Effect.gen(function* () {
        const tmp = yield* folder;
        const folders = () => readdirSync(tmp).filter((name) => name.startsWith("stream-recovery-workers-"));
        const env = { TMPDIR: tmp };
        const provider = yield* providerOf(events);
        const killed = yield* started(provider.at, { env });
        const [left = ""] = folders();
        assert.strictEqual(statSync(join(tmp, left)).mode & 0o777, 0o700);
        const sockets = readdirSync(join(tmp, left)).filter((name) => name.endsWith(".sock"));
        assert.deepStrictEqual(sockets.toSorted(), ["1.sock", "2.sock"]);
        killed.child.kill("SIGKILL");
        yield* Effect.promise(() => killed.exited);
        assert.isTrue(existsSync(join(tmp, left)));
        // Names of a live process, of one on another machine, and of a file that is no folder.
        const among = left.split("-")[4] ?? "";
        const stay = [`${process.pid}-${among}-living`, "1234567-elsewhere-dead"].map(
          (it) => `stream-recovery-workers-${it}`,
        );
        for (const name of stay) mkdirSync(join(tmp, name), { mode: 0o700 });
        const file = `stream-recovery-workers-1234567-${among}-file`;
        writeFileSync(join(tmp, file), "");
        const served = yield* started(provider.at, { env });
        assert.notInclude(folders(), left);
        for (const name of [...stay, file]) assert.include(folders(), name);
        served.child.kill("SIGTERM");
        yield* Effect.promise(() => served.exited);
        assert.lengthOf(folders(), 3);
      }),
  );
});
