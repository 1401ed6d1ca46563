/** Gateways on two machines, as far as they can tell: each has its own processor, and they share one database. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Exit } from "effect";
import { Paths } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { bodies, type Fronted, front, type Got, post, recovery, serverOf } from "../GatewayCases.ts";

const repeat = { "x-stainless-retry-count": "1" };

const ask = (url: string, headers: Record<string, string> = {}, user = "u"): Effect.Effect<Got> =>
  post(url, "openai-chat", {
    body: JSON.stringify({ ...bodies["openai-chat"], user }),
    headers: { "content-type": "application/json", authorization: "Bearer sk-secret", ...headers },
  });

/** Waits until a gateway hears what the others say. */
const listening = ({ services }: Fronted): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { shared } = Context.get(services, RunRecorder);
    if (shared === undefined || shared.hears()) return Effect.void;
    const heard = Deferred.makeUnsafe<void>();
    const ends = shared.on(() => {
      if (shared.hears()) Deferred.doneUnsafe(heard, Exit.void);
    });
    return Effect.ensuring(shared.hears() ? Effect.void : Deferred.await(heard), Effect.sync(ends));
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
});
