/** Gateways over one database draw the tokens of retries from one bucket. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect } from "effect";
import { throttleSize, tokensMax, tokensPerSecond } from "../../../src/runtime/pacing/Throttle.ts";
import { Answers } from "../../../src/testing/index.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, type Fronted, front, post } from "../GatewayCases.ts";

const whole = Buffer.concat(
  Answers.render("openai-chat", 1, { content: [{ text: 2 }] }).map(({ frame }) => Buffer.from(frame)),
);

/** A provider that fails the first request of each body, and answers the next one. */
const failingOnce = Effect.suspend(() => {
  const seen = new Set<string>();
  return serverOf(async (request, response) => {
    const chunks: Array<Buffer> = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString();
    if (seen.has(body)) {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(whole);
      return;
    }
    seen.add(body);
    response.writeHead(500, { "content-type": "application/json" }).end('{"error":{"message":"x"}}');
  });
});

/** A run that needs a token waits for none. */
const budget = { max_retry_after_ms: 0 } as const;

const gateway = (db: string, upstream: string) => front(upstream, { db, budget });

/** Each body once: a body that comes again is the repeat of a run, which has what that one has left of its own budget. */
let users = 0;

const ask = ({ url }: Pick<Fronted, "url">) => {
  users += 1;
  return post(url, "openai-chat", {
    body: JSON.stringify({ ...bodies["openai-chat"], user: `${users}` }),
    headers: { "content-type": "application/json", authorization: "Bearer k1" },
  });
};

/** How many of the runs that break together are tried again at once. Their records may follow their answers (L8). */
const retried = Effect.fnUntraced(function* (gateways: readonly [Fronted, ...ReadonlyArray<Fronted>]) {
  const more = 3;
  const { runs, until } = gateways[0];
  const before = new Set((yield* runs).map(({ run_id }) => run_id));
  const asked = gateways.flatMap((one) => Array.from({ length: tokensMax + more }, () => ask(one)));
  const all = yield* Effect.all(asked, { concurrency: "unbounded" });
  const rules = yield* until((now) => {
    const broken = now.filter(({ end, run_id }) => end !== undefined && !before.has(run_id));
    return broken.length < all.length
      ? undefined
      : broken.flatMap(({ incidents }) => incidents.map(({ decision }) => decision.rule));
  });
  assert.lengthOf(rules, all.length, "each broke once");
  const whole = all.filter(({ status }) => status === 200).length;
  assert.strictEqual(rules.filter((rule) => rule === "throttled").length, all.length - whole);
  return whole;
});

describe("the throttle of gateways over one database", () => {
  it.live("is one for all of them, from their first moment on, and whole for the one that is busy", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const upstream = yield* failingOnce;
      const busy = yield* gateway(db, upstream);
      const others = yield* Effect.forEach([1, 2], () => gateway(db, upstream));
      const clock = yield* Clock.Clock;
      const began = clock.currentTimeMillisUnsafe();
      const first = yield* retried([busy, ...others]);
      const tookMs = clock.currentTimeMillisUnsafe() - began;
      assert.isAtLeast(first, tokensMax);
      assert.isAtMost(first, tokensMax + Math.ceil((tokensPerSecond * tookMs) / 1_000));
      // Idle ones keep nothing back: when the bucket is full again, one has all of it.
      const { shared } = yield* Databases.open({ address: db });
      const [run] = yield* busy.runs;
      const [provider] = run?.incidents.map((incident) => incident.provider.id) ?? [];
      if (shared === undefined || provider === undefined) return assert.fail("each has broken");
      yield* shared.draw(provider, -tokensMax, throttleSize);
      assert.isAtLeast(yield* retried([busy]), tokensMax);
    }).pipe(Effect.scoped),
  );
});
