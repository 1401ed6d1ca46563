/** A process without descriptors says so, and does not blame its clients. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Logger } from "effect";
import { TestClock } from "effect/testing";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import {
  checkDescriptors,
  isOutOfDescriptors,
  limitIn,
  ownDescriptors,
  ranOutEveryMs,
  reportOutOfDescriptors,
} from "../../../src/gateway/limits/Descriptors.ts";

/** The lines that an effect logs. */
const linesOf = (effect: Effect.Effect<void>) =>
  Effect.suspend(() => {
    const lines: Array<unknown> = [];
    const logger = Logger.layer([Logger.make(({ message }) => void lines.push(message))]);
    return Effect.as(Effect.provide(effect, logger), lines);
  });

describe("file descriptors", () => {
  it("are limited as the system says", () => {
    assert.strictEqual(limitIn("Max processes  7 7 processes\nMax open files            1024   4096   files\n"), 1_024);
    assert.isUndefined(limitIn("Max open files  unlimited unlimited files"));
  });

  it.effect("are compared with the connections at a start, and a lack of them is one line", () =>
    Effect.gen(function* () {
      assert.lengthOf(yield* linesOf(checkDescriptors(100, 200 + ownDescriptors)), 0);
      assert.lengthOf(yield* linesOf(checkDescriptors(100, 199 + ownDescriptors)), 1);
    }),
  );

  it.effect("that have run out are told once a minute, however many requests meet it", () =>
    Effect.gen(function* () {
      const thrice = Effect.repeat(reportOutOfDescriptors, { times: 2 });
      assert.lengthOf(yield* linesOf(Effect.asVoid(thrice)), 1);
      yield* TestClock.adjust(ranOutEveryMs);
      assert.lengthOf(yield* linesOf(Effect.asVoid(thrice)), 1);
    }),
  );

  it("are missing where a connection fails so, also one to a proxy", () => {
    for (const code of ["EMFILE", "ENFILE", "PROXY_EMFILE"])
      assert.isTrue(isOutOfDescriptors({ kind: "transport", code }));
    assert.isFalse(isOutOfDescriptors({ kind: "transport", code: "ECONNREFUSED" }));
    assert.isFalse(isOutOfDescriptors({ kind: "caller_failed", code: "EMFILE" }));
  });

  it.effect("are metrics of the process", () =>
    Effect.gen(function* () {
      if (process.platform !== "linux") return;
      assert.match(yield* Metrics.text(), /^process_open_fds \d+$/m);
    }),
  );
});
