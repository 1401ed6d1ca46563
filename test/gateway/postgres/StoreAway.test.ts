import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { unrecordedHeader } from "../../../src/gateway/proxy/StoreWord.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { Answers } from "../../../src/testing/index.ts";
import { eventually, polled } from "../../Polling.ts";
import { ask, whole } from "../attach/AttachCases.ts";
import { send } from "../GatewayCases.ts";
import { credential, type Node, node, two } from "./Nodes.ts";
import * as SilentProxy from "./SilentProxy.ts";

const events = Answers.render("openai-chat", 1, { content: [{ reasoning: 2 }, { text: 4 }] }).map(({ frame }) =>
  Buffer.from(frame),
);
const all = Buffer.concat(events);

let cluster: Cluster.Cluster;

beforeAll(() => {
  const programs = Cluster.programs();
  if (programs === undefined) throw new Error("the suite has started one");
  cluster = Cluster.make(programs);
  for (const name of ["fast", "immediate", "reset", "silent", "close", "required"])
    cluster.psql("postgres", `CREATE DATABASE ${name}`);
});

afterAll(() => cluster.remove());

/** Asks a probe until it says what is waited for; its status. */
const untilReady = ({ url }: Node, said: string): Effect.Effect<number> =>
  polled(
    Effect.map(
      Effect.promise(() => send(`${url}/readyz`)),
      ({ status, text }) => (JSON.parse(text).status === said ? status : undefined),
    ),
  );

/** Waits until so many runs are on record as ended: each is complete, and none was stopped. */
const untilComplete = ({ recorder }: Node, count: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    const ends = yield* polled(
      Effect.map(
        Effect.orElseSucceed(recorder.runs(), (): ReadonlyArray<RunRecord> => []),
        (runs) => {
          const ended = runs.flatMap(({ end }) => (end === undefined ? [] : [end.state]));
          return ended.length >= count ? ended : undefined;
        },
      ),
    );
    assert.deepStrictEqual(
      ends,
      Array.from({ length: count }, () => "completed" as const),
    );
  });

/** What the streams of two gateways go through while their store is away. */
const through = (database: string, away: Effect.Effect<void>, back: Effect.Effect<void>, address: string) =>
  Effect.gen(function* () {
    const it = yield* two(address, events, { lingerMs: 0 });
    const nodes = [it.one, it.other];
    const clients = nodes.map((one) => ask(one, "openai-chat", credential));
    const sent = [yield* it.nth(0), yield* it.nth(1)];
    for (const response of sent) response.send(3);
    for (const { got } of clients) yield* eventually(() => (got().byteLength > 0 ? true : undefined));
    yield* away;
    // It is known from the writes, or the next probe of an idle store: a new run writes at once.
    const begun = nodes.map((one) => ask(one, "openai-chat", credential));
    for (const one of nodes) assert.strictEqual(yield* untilReady(one, "degraded"), 200, database);
    const late = [yield* it.nth(2), yield* it.nth(3)];
    for (const response of [...sent, ...late]) response.finish();
    for (const client of [...clients, ...begun]) {
      const { body, broken } = yield* whole(client);
      assert.isFalse(broken, database);
      assert.strictEqual(body.toString(), all.toString(), database);
    }
    for (const client of begun) {
      const { head } = yield* whole(client);
      assert.isString(head?.headers[unrecordedHeader], database);
    }
    yield* back;
    for (const one of nodes) assert.strictEqual(yield* untilReady(one, "ok"), 200, database);
    return { ...it, nodes };
  });

describe("gateways whose PostgreSQL is away", () => {
  for (const mode of ["fast", "immediate"] as const) {
    it.live(
      `show text to its end and say so, and put what ended meanwhile on record when it is back: stopped ${mode}`,
      () =>
        Effect.gen(function* () {
          let isDown = false;
          const stop = Effect.sync(() => {
            cluster.stop(mode);
            isDown = true;
          });
          const start = Effect.sync(() => {
            if (isDown) cluster.start();
            isDown = false;
          });
          yield* Effect.addFinalizer(() => start);
          const { asked, one } = yield* through(mode, stop, start, cluster.address(mode));
          yield* untilComplete(one, 4);
          assert.lengthOf(asked, 4);
        }).pipe(Effect.scoped),
    );
  }

  it.live("are not ready where they were told to require it, and are again when it is back", () =>
    Effect.gen(function* () {
      const { one, other } = yield* two(cluster.address("required"), events, { requireStore: true, lingerMs: 0 });
      for (const it of [one, other]) assert.strictEqual(yield* untilReady(it, "ok"), 200);
      yield* Effect.acquireUseRelease(
        Effect.sync(() => cluster.stop("fast")),
        () =>
          Effect.gen(function* () {
            // A run writes at once; an idle store is looked at every 30 s.
            for (const it of [one, other]) ask(it, "openai-chat", credential);
            for (const it of [one, other]) assert.strictEqual(yield* untilReady(it, "degraded"), 503);
            const { status } = yield* Effect.promise(() => send(`${one.url}/livez`));
            assert.strictEqual(status, 200);
          }),
        () => Effect.sync(() => cluster.start()),
      );
      for (const it of [one, other]) assert.strictEqual(yield* untilReady(it, "ok"), 200);
    }).pipe(Effect.scoped),
  );

  it.live("and whose connections were reset notice nothing of it", () =>
    Effect.gen(function* () {
      const proxy = yield* SilentProxy.make(cluster.address("reset"), cluster.socket);
      const it = yield* two(proxy.address, events, { lingerMs: 0 });
      const clients = [it.one, it.other].map((one) => ask(one, "openai-chat", credential));
      const sent = [yield* it.nth(0), yield* it.nth(1)];
      for (const response of sent) response.send(3);
      for (const { got } of clients) yield* eventually(() => (got().byteLength > 0 ? true : undefined));
      yield* proxy.reset;
      for (const response of sent) response.finish();
      for (const client of clients) assert.deepStrictEqual((yield* whole(client)).body, all);
      yield* untilComplete(it.one, 2);
    }).pipe(Effect.scoped),
  );

  it.live("without a word goes on as with one", () =>
    Effect.gen(function* () {
      const proxy = yield* SilentProxy.make(cluster.address("silent"), cluster.socket);
      const { one } = yield* through("silent", proxy.silence, proxy.speak, proxy.address);
      yield* untilComplete(one, 4);
    }).pipe(Effect.scoped),
  );

  it.live("end within seconds of their signal, also while nothing answers", () =>
    Effect.gen(function* () {
      const proxy = yield* SilentProxy.make(cluster.address("close"), cluster.socket);
      const scope = yield* Scope.make();
      const { at, nth } = yield* Scope.provide(two(proxy.address, events), scope);
      const closing = yield* Scope.make();
      const gateway = yield* Scope.provide(node(proxy.address, at), closing);
      const client = ask(gateway, "openai-chat", credential);
      (yield* nth(0)).send(3);
      yield* eventually(() => (client.got().byteLength > 0 ? true : undefined));
      yield* proxy.silence;
      yield* Scope.close(closing, Exit.void);
      // A statement alone is waited for 20 s while the process lives.
      yield* proxy.speak;
      yield* Scope.close(scope, Exit.void);
    }).pipe(Effect.scoped),
  );
});
