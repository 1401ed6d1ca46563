/** Law L12: the caller's final error has the provider's own error object as its cause. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Stream } from "effect";
import type { Failure } from "../../src/domain/Failure.ts";
import type { RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import * as S from "../runtime/Scripted.ts";

/** An attempt that shows nothing and fails with the given object. */
const failsWith = (error: S.ProviderBroke) => ({
  attempt: () => Stream.concat(Stream.make({ name: "start", says: observed(S.start) }), Stream.fail(error)),
});

const observed = (step: S.Step) => {
  if (!("part" in step)) throw new Error("a step without a part");
  return step.part.says;
};

const causeOf = (run: Parameters<typeof S.options>[0], more?: Parameters<typeof S.options>[1]) =>
  Effect.gen(function* () {
    const seen = yield* S.played((yield* StreamProcessor).run(S.options(run, more)));
    const error: RunInterrupted | undefined = S.errorOf(seen.exit);
    return error?.cause;
  }).pipe(Effect.provide(S.processor()));

describe("L12 original error", () => {
  const failures: ReadonlyArray<Failure> = [
    { kind: "transport", code: "ECONNRESET" },
    { kind: "rejected", reason: "invalid_request", status: 400 },
    { kind: "unknown" },
    { kind: "rate_limited", retry_after_ms: 3_600_000 },
  ];
  for (const failure of failures) {
    it.effect(`a run that ends with ${failure.kind} gives the very object that the source failed with`, () =>
      Effect.gen(function* () {
        const error = new S.ProviderBroke(failure);
        assert.strictEqual(yield* causeOf(failsWith(error), { budget: { max_auto_retries: 0 } }), error);
      }),
    );
  }

  it.effect("after retries the cause is the error of the last attempt, not of the first", () =>
    Effect.gen(function* () {
      const errors = [1, 2, 3].map(() => new S.ProviderBroke({ kind: "transport" }));
      let attempts = 0;
      const run = {
        attempt: () => Stream.fail(errors[attempts++] ?? new S.ProviderBroke({ kind: "unknown" })),
      };
      assert.strictEqual(yield* causeOf(run, { budget: { max_auto_retries: 2 } }), errors[2]);
    }),
  );

  it.effect("a defect of the source is the cause, too", () =>
    Effect.gen(function* () {
      const defect = Object.freeze({ name: "TypeError", message: "not an Error even" });
      assert.strictEqual(yield* causeOf(S.scripted([S.start, { die: defect }])), defect);
    }),
  );

  it.effect("an error event is the cause itself, with everything that the provider put into it", () =>
    Effect.gen(function* () {
      const event = S.errorEvent({ kind: "rejected", reason: "content_policy" });
      const cause = yield* causeOf(S.scripted([S.start, event]));
      assert.strictEqual(cause, "part" in event ? event.part : undefined);
    }),
  );
});
