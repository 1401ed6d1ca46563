/** Gateways over one database divide the throttle of retries by as many of them as live. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Deferred, Duration, Effect, Exit, Scope } from "effect";
import { livingLookMs } from "../../../src/runtime/pacing/SharedThrottle.ts";
import { tokensMax, tokensPerSecond } from "../../../src/runtime/pacing/Throttle.ts";
import { Answers } from "../../../src/testing/index.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { bodies, type Fronted, front, post, serverOf } from "../GatewayCases.ts";

const whole = Buffer.concat(
  Answers.render("openai-chat", 1, { content: [{ text: 2 }] }).map(({ frame }) => Buffer.from(frame)),
);

/** A provider that fails the first request of each body, except of those that say `well`, and answers the next one. */
const failingOnce = Effect.suspend(() => {
  const seen = new Set<string>();
  return serverOf(async (request, response) => {
    const chunks: Array<Buffer> = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString();
    if (seen.has(body) || body.includes("well")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(whole);
      return;
    }
    seen.add(body);
    response.writeHead(500, { "content-type": "application/json" }).end('{"error":{"message":"x"}}');
  });
});

/** A clock by which no token comes back before a test says so, and by which a process looks who lives when a test says so. */
const handClock = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const began = clock.monotonicTimeNanosUnsafe();
  let passedMs = 0;
  const now = () => began + BigInt(passedMs) * 1_000_000n;
  let goes = Deferred.makeUnsafe<void>();
  let waits = Deferred.makeUnsafe<void>();
  const hand: Clock.Clock = {
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
    currentTimeMillis: clock.currentTimeMillis,
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
    currentTimeNanos: clock.currentTimeNanos,
    monotonicTimeNanosUnsafe: now,
    monotonicTimeNanos: Effect.sync(now),
    sleep: (duration) =>
      Duration.toMillis(duration) === livingLookMs
        ? Effect.suspend(() => {
            Deferred.doneUnsafe(waits, Exit.void);
            return Deferred.await(goes);
          })
        : clock.sleep(duration),
  };
  /** Has the process look once: it has looked when it waits for its next look. */
  const looks = Effect.gen(function* () {
    yield* Deferred.await(waits);
    const goes_ = goes;
    [goes, waits] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()];
    Deferred.doneUnsafe(goes_, Exit.void);
    yield* Deferred.await(waits);
  });
  return {
    hand,
    looks,
    passes: (ms: number) => {
      passedMs += ms;
    },
  };
});

/** Longer than the test: nothing but its leaving ends a gateway's part. It is beaten at other times than `livingLookMs`. */
const leaseMs = 120_000;

/** A run that needs a token waits for none. */
const budget = { max_retry_after_ms: 0 } as const;

const gateway = Effect.fnUntraced(function* (db: string, upstream: string) {
  const clock = yield* handClock;
  const fronted = yield* Effect.provideService(front(upstream, { db, leaseMs, budget }), Clock.Clock, clock.hand);
  return { ...fronted, ...clock };
});

/** Each body once: a body that comes again is the repeat of a run, which has what that one has left of its own budget. */
let users = 0;

const ask = ({ url }: Pick<Fronted, "url">, kind: "well" | "fails") => {
  users += 1;
  return post(url, "openai-chat", {
    body: JSON.stringify({ ...bodies["openai-chat"], user: `${kind} ${users}` }),
    headers: { "content-type": "application/json", authorization: "Bearer k1" },
  });
};

/** How many of the runs that break together are tried again at once. */
const retried = Effect.fnUntraced(function* (one: Fronted) {
  const more = 3;
  const before = new Set((yield* one.runs).map(({ run_id }) => run_id));
  const all = yield* Effect.forEach(Array.from({ length: tokensMax + more }), () => ask(one, "fails"), {
    concurrency: "unbounded",
  });
  const rules = (yield* one.runs)
    .filter(({ run_id }) => !before.has(run_id))
    .flatMap(({ incidents }) => incidents.map(({ decision }) => decision.rule));
  assert.lengthOf(rules, all.length, "each broke once");
  const whole = all.filter(({ status }) => status === 200).length;
  assert.strictEqual(rules.filter((rule) => rule === "throttled").length, all.length - whole);
  return whole;
});

describe("the throttle of gateways over one database", () => {
  it.live("gives each of two its half, and all of it to the one that stays", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const upstream = yield* failingOnce;
      const a = yield* gateway(db, upstream);
      const leaves = yield* Scope.make();
      const b = yield* Scope.provide(gateway(db, upstream), leaves);
      // A gateway counts from its first run on.
      for (const one of [a, b]) assert.strictEqual((yield* ask(one, "well")).status, 200);
      for (const one of [a, b]) yield* one.looks;
      for (const one of [a, b]) assert.strictEqual(yield* retried(one), tokensMax / 2);
      // By halves the tokens come back half as fast.
      a.passes(1_000);
      assert.strictEqual(yield* retried(a), tokensPerSecond / 2);
      yield* Scope.close(leaves, Exit.void);
      yield* a.looks;
      a.passes((tokensMax / tokensPerSecond) * 1_000);
      assert.strictEqual(yield* retried(a), tokensMax);
    }).pipe(Effect.scoped),
  );
});
