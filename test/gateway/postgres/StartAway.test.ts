/**
 * `serve` whose PostgreSQL is away when it starts: real processes, and a server that is started later.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { freePort } from "../../../scripts/programs/FreePort.ts";
import { type Starting, starting } from "../../cli/ServeProcess.ts";
import { workersOf } from "../../cli/Workers.ts";
import { polled } from "../../Polling.ts";
import { send } from "../GatewayCases.ts";
import * as SilentProxy from "./SilentProxy.ts";

let cluster: Cluster.Cluster;

beforeAll(() => {
  const programs = Cluster.programs();
  if (programs === undefined) throw new Error("the suite has started one");
  cluster = Cluster.make(programs);
  for (const name of ["alone", "several", "silent", "beside"]) cluster.psql("postgres", `CREATE DATABASE ${name}`);
});

afterAll(() => cluster.remove());

interface Start extends Starting {
  readonly url: string;
}

/** Starts a gateway on a port that is known before it listens. */
const start = (db: string, ...more: ReadonlyArray<string>): Effect.Effect<Start, never, Scope.Scope> =>
  Effect.gen(function* () {
    const port = yield* freePort;
    const upstream = ["--openai-url", "http://127.0.0.1:1/v1"];
    const it = yield* starting(["--port", String(port), "--db", db, ...upstream, ...more]);
    return { ...it, url: `http://127.0.0.1:${port}` };
  });

/** What `/readyz` says. */
const ready = ({ url }: Start): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => send(`${url}/readyz`)),
    ({ status, text }) => `${status} ${text.trim()}`,
  );

/** Nothing listens. */
const refuses = ({ url }: Start): Effect.Effect<void> =>
  Effect.map(
    Effect.promise(() => send(`${url}/livez`).then(() => "it answers", String)),
    (said) => assert.match(said, /ECONNREFUSED/),
  );

/** Waits for the log to say something. */
const untilLogged = (it: Start, words: RegExp): Effect.Effect<true> =>
  polled(Effect.sync(() => (words.test(it.stderr()) ? true : undefined)));

/** The server is away meanwhile, and is there again whatever becomes of the test. */
const whileAway = <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => cluster.stop("fast")),
    () => use,
    () => Effect.sync(() => cluster.start()),
  );

describe("serve whose PostgreSQL is away when it starts", () => {
  for (const [database, more] of [
    ["alone", []],
    ["several", ["--workers", "2"]],
  ] as const) {
    it.live(`takes no client of others meanwhile, and serves when it is there: ${database}`, () =>
      Effect.gen(function* () {
        const it = yield* whileAway(
          Effect.gen(function* () {
            const begun = yield* start(cluster.address(database), ...more);
            yield* untilLogged(begun, /WARN +cannot open the store, retrying for up to 60 s: \S+ cannot/);
            yield* refuses(begun);
            assert.strictEqual(begun.stdout(), "");
            return begun;
          }),
        );
        assert.strictEqual(yield* Effect.promise(() => it.listens), it.url);
        assert.strictEqual(yield* ready(it), '200 {"status":"ok"}');
        it.child.kill("SIGTERM");
        assert.deepStrictEqual(yield* Effect.promise(() => it.exited), [0, null]);
        assert.strictEqual(it.stdout(), `listening on ${it.url}\n`);
      }),
    );
  }

  it.live("accepts no client of a worker that serves next to it", () =>
    Effect.gen(function* () {
      const it = yield* start(cluster.address("beside"), "--workers", "2");
      yield* polled(Effect.sync(() => (workersOf(it).size === 2 ? true : undefined)));
      yield* whileAway(
        Effect.gen(function* () {
          process.kill(workersOf(it).get(2) ?? 0, "SIGKILL");
          yield* untilLogged(it, /cannot open the store, .* worker=2/);
          const said = yield* Effect.all(Array.from({ length: 20 }, () => ready(it)));
          for (const one of said) assert.match(one, /^200 \{"status":"(?:ok|degraded)"/);
        }),
      );
    }),
  );

  it.live("waits for one that takes connections and says nothing, too, and ends in order when it is told to", () =>
    Effect.gen(function* () {
      const proxy = yield* SilentProxy.make(cluster.address("silent"), cluster.socket);
      yield* proxy.silence;
      const [one, other] = [yield* start(proxy.address), yield* start(proxy.address)];
      for (const it of [one, other]) yield* untilLogged(it, /cannot open the store/);
      // A reload is kept until it serves: without that it would end the process.
      one.child.kill("SIGHUP");
      other.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => other.exited), [0, null]);
      assert.strictEqual(other.stdout(), "");
      yield* proxy.speak;
      assert.strictEqual(yield* Effect.promise(() => one.listens), one.url);
      yield* untilLogged(one, /the configuration was reloaded/);
    }),
  );

  it.live("ends at once, with 2, where no later start would come to more", () =>
    Effect.gen(function* () {
      const it = yield* start(cluster.address("of_nobody"));
      assert.deepStrictEqual(yield* Effect.promise(() => it.exited), [2, null]);
      assert.match(
        it.stderr(),
        /^serve: \S+ does not exist: its server has no such database or schema\. Create it, or name another one\n$/,
      );
    }),
  );
});
