import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import { OutageLog, outageLogs, saidAgainMs } from "../../../src/recorder/shared/OutageLog.ts";
import { heard } from "./Heard.ts";

const words = { away: "nothing is heard", back: "it is heard again" };

describe("a repeated failure", () => {
  it.effect("is logged when it begins, once a minute while it lasts, and when it is over", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      yield* Effect.gen(function* () {
        const outage = new OutageLog(words);
        yield* outage.recordSuccess;
        for (let second = 0; second < 150; second += 1) {
          yield* outage.recordFailure("the server is away");
          yield* TestClock.adjust("1 second");
        }
        assert.isTrue(outage.isOn);
        yield* outage.recordSuccess;
        yield* outage.recordSuccess;
        assert.isFalse(outage.isOn);
      }).pipe(Effect.provide(log));
      assert.deepStrictEqual(said, [
        "WARN nothing is heard: the server is away",
        "WARN nothing is heard: the server is away away_ms=60000 failures=61",
        "WARN nothing is heard: the server is away away_ms=120000 failures=121",
        "INFO it is heard again away_ms=150000 failures=150",
      ]);
    }),
  );

  it.effect("fills no log if it comes and goes all the time", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      yield* Effect.gen(function* () {
        const outage = new OutageLog(words);
        for (let times = 0; times < 100; times += 1) {
          yield* outage.recordFailure("x");
          yield* outage.recordSuccess;
          yield* TestClock.adjust(saidAgainMs / 50);
        }
      }).pipe(Effect.provide(log));
      assert.deepStrictEqual(
        said.map((line) => line.slice(0, 4)),
        ["WARN", "INFO", "WARN", "INFO"],
      );
    }),
  );

  it.effect("is logged once for a store, however many components observe it", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      const [one, other] = [{}, {}];
      const outageOf = outageLogs(words);
      yield* Effect.forEach([one, one, other, one], (store) => outageOf(store).recordFailure("x")).pipe(
        Effect.provide(log),
      );
      assert.strictEqual(said.length, 2);
    }),
  );
});
