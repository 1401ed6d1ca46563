/** The run's own timeout covers all attempts and the waits between them. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect } from "effect";
import type { Failure } from "../../../src/domain/Failure.ts";
import * as S from "../Scripted.ts";
import * as Bench from "./OutageBench.ts";

const busy: Failure = { kind: "server_error", status: 503, not_processed: true };

/** Plays a run with a timeout of 25 s and returns the second in which it ended. */
const endedAfter = (
  scripts: (outage: Bench.Outage) => ReadonlyArray<ReadonlyArray<S.Step>>,
  more: Bench.Options = {},
) =>
  Effect.gen(function* () {
    const outage = new Bench.Outage();
    yield* outage.reached;
    const from = yield* Clock.currentTimeMillis;
    const seen = yield* Bench.play(outage.options(scripts(outage), { clocks: { run: 25_000 }, ...more }), 600_000);
    return { ...seen, ms: (seen.record.end?.at ?? Number.NaN) - from, sent: outage.sent.length };
  });

describe("The timeout clocks.run", () => {
  for (const [name, scripts] of Object.entries({
    "a backoff": () => [[S.start, S.wait(24_500), S.fail(busy)], S.hello],
    "an announced wait": () => [[S.start, S.wait(5_000), S.fail({ ...busy, retry_after_ms: 40_000 })], S.hello],
    "an outage": (outage: Bench.Outage) => [[S.start, { run: outage.away(60_000) }, S.reset], S.hello],
    "a second attempt": () => [
      [S.start, S.wait(15_000), S.reset],
      [S.start, S.wait(15_000), S.done],
    ],
  }))
    it.effect(`ends a run in ${name} after 25 s`, () =>
      Effect.gen(function* () {
        const { lines, ms, record } = yield* endedAfter(scripts);
        assert.strictEqual(lines.at(-1), "end do_not_retry not_retryable");
        assert.isAtLeast(ms, 25_000);
        assert.isAtMost(ms, 25_100);
        assert.deepInclude(record.incidents.at(-1)?.failure, { kind: "stalled", clock: "run" });
      }).pipe(Effect.provide(Bench.processor())),
    );

  it.effect("ends a first attempt that waits for its path", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      const paths = yield* outage.reached;
      outage.network.fail();
      yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
      const seen = yield* Bench.play(outage.options([S.hello], { clocks: { run: 25_000 } }), 600_000);
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.strictEqual(outage.sent.length, 0);
      assert.isAtMost(seen.record.end?.at ?? Number.NaN, 27_000);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("counts a first attempt's wait for its path while it reads", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      const paths = yield* outage.reached;
      outage.network.fail();
      yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
      yield* Effect.forkChild(
        Effect.delay(
          Effect.sync(() => outage.network.mend()),
          18_000,
        ),
      );
      const script = [S.start, S.wait(15_000), S.done];
      const seen = yield* Bench.play(outage.options([script], { clocks: { run: 25_000 } }), 600_000);
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.strictEqual(outage.sent.length, 1);
      assert.isAtMost(seen.record.end?.at ?? Number.NaN, 27_000);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("does not count the time of an open question", () =>
    Effect.gen(function* () {
      const { lines } = yield* endedAfter(() => [[S.start, S.text("a"), S.wait(1), S.reset], S.hello]);
      assert.strictEqual(lines.at(-1), "completed");
    }).pipe(
      Effect.provide(
        Bench.processor(
          Bench.answering(
            [],
            () => "retry",
            () => 60_000,
          ),
        ),
      ),
    ),
  );
});
