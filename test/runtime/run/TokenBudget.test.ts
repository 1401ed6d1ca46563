/** The cost of a run's broken attempts, the question by rule `token_budget`, and the estimates in its incident. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Stream } from "effect";
import { fresh } from "../../../src/domain/RunFacts.ts";
import { Spending } from "../../../src/runtime/run/Spending.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

/** Plays a run, and returns the tokens in its incidents. */
const play = (
  scripts: ReadonlyArray<ReadonlyArray<S.Step>>,
  more: Parameters<typeof S.options>[1],
  answers: Parameters<typeof S.processor>[0] = ["stop"],
) =>
  Effect.gen(function* () {
    const { lines } = yield* S.played(
      (yield* StreamProcessor).run(S.options(S.scripted(...scripts), { runId: "r", ...more })),
    );
    const { incidents } = yield* S.recordOf("r");
    const tokens = incidents.map(({ run }) => [run.wasted_tokens, run.next_tokens, run.tokens_estimated]);
    return { lines, tokens, incidents };
  }).pipe(Effect.provide(S.processor(answers)));

describe("Tokens of a run", () => {
  it.effect("are those that its provider has reported, over all its broken attempts", () =>
    Effect.gen(function* () {
      const broken = [S.start, S.usage(500, 20), S.reset];
      const { lines, tokens } = yield* play([broken, broken, S.hello], { requestTokens: 9 });
      assert.strictEqual(lines.at(-1), "completed");
      assert.deepStrictEqual(tokens, [
        [520, 500, false],
        [1_040, 500, false],
      ]);
    }),
  );

  it.effect("stay whole numbers that a record can hold, whatever a provider reports (L9)", () =>
    Effect.gen(function* () {
      const broken = [S.start, S.usage(1e300, 1e300), S.reset];
      const { tokens } = yield* play([broken, broken, S.hello], { group: "tree" });
      const most = Number.MAX_SAFE_INTEGER;
      assert.deepStrictEqual(tokens, [
        [most, most, false],
        [most, most, false],
      ]);
    }),
  );

  it.effect("are estimated if it reported nothing, and the incident says so", () =>
    Effect.gen(function* () {
      const { tokens } = yield* play([[S.start, S.reasoning("x".repeat(40)), S.reset], S.hello], { requestTokens: 90 });
      assert.deepStrictEqual(tokens, [[100, 90, true]]);
    }),
  );

  it.effect("are zero for a request that was not sent, or with which its provider did nothing", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.fail({ kind: "rate_limited", status: 429 })], S.hello);
      const attempt: typeof provider.attempt = (context) => {
        if (context.attempt > 1) return provider.attempt(context);
        context.delivery("not_sent");
        return S.scripted([S.reset]).attempt(context);
      };
      yield* S.played((yield* StreamProcessor).run(S.options({ attempt }, { runId: "r", requestTokens: 90 })));
      const { incidents } = yield* S.recordOf("r");
      assert.deepStrictEqual(
        incidents.map(({ run }) => [run.wasted_tokens, run.next_tokens]),
        [
          [0, 90],
          [0, 90],
        ],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect(
    "raise a question about tokens that one more attempt would spend beyond the budget, which says if they are an estimate",
    () =>
      Effect.gen(function* () {
        const budget = { max_wasted_tokens: 1_000 };
        const told = yield* play([[S.start, S.usage(500, 20), S.reset]], { budget });
        assert.deepStrictEqual(told.lines.slice(-3), ["ask token_budget", "answer stop", "end stopped token_budget"]);
        assert.include(told.incidents[0]?.message, "The count is the provider's own.");
        const guessed = yield* play([[S.start, S.reset]], { budget, requestTokens: 501 });
        assert.include(guessed.incidents[0]?.message, "The count is an estimate");
        assert.include(guessed.incidents[0]?.decision.because ?? [], "tokens=estimated");
      }),
  );

  it.effect("restart with a person's retry, like the whole budget", () =>
    Effect.gen(function* () {
      const broken = [S.start, S.usage(500, 20), S.reset];
      const more = { budget: { max_wasted_tokens: 1_100 } };
      const { lines, tokens } = yield* play([broken, broken, broken, broken, S.hello], more, ["retry"]);
      assert.strictEqual(lines.at(-1), "completed");
      assert.deepStrictEqual(
        tokens.map(([wasted]) => wasted),
        [520, 1_040, 520, 1_040],
      );
      assert.strictEqual(lines.filter((it) => it === "ask token_budget").length, 2);
    }),
  );

  it.effect("of a resumed response are not wasted, because its request is paid once", () =>
    Effect.gen(function* () {
      const first = [S.start, S.usage(500, 1), S.reasoning("x".repeat(40)), S.reset];
      const resumed = [S.reasoning("x".repeat(40)), S.reset];
      const { lines, tokens } = yield* play([first, resumed, S.hello], { cursor: (part) => part.name });
      assert.include(lines, "retry resume resume_cursor");
      assert.deepStrictEqual(
        tokens.map(([wasted]) => wasted),
        [510, 520],
      );
    }),
  );

  it("are kept in a run that another process takes over: the wasted ones, and the counted cost of its request", () => {
    const spending = new Spending();
    spending.restore({ ...fresh, wasted_tokens: 700, tokens_estimated: true }, 500);
    assert.deepInclude(spending.facts(), { wasted_tokens: 700, next_tokens: 500, tokens_estimated: true });
    spending.addAbandonedCost({ input: 500, output: 20, estimated: false });
    assert.deepInclude(spending.facts(), { wasted_tokens: 1_220, next_tokens: 500, tokens_estimated: true });
  });

  it.effect("and its group are validated by name before anything is sent", () =>
    Effect.gen(function* () {
      const refused = (more: object) =>
        Effect.map(
          S.played(Stream.unwrap(Effect.map(StreamProcessor, (it) => it.run(S.options(S.scripted(), more))))),
          ({ exit }) => S.errorOf(exit)?.message ?? "",
        );
      assert.match(yield* refused({ requestTokens: Number.NaN }), /^requestTokens: expected a whole number/);
      assert.match(yield* refused({ requestTokens: -1 }), /^requestTokens: expected a whole number/);
      assert.match(yield* refused({ group: "" }), /^group: expected 1 to/);
      assert.match(yield* refused({ group: 7 }), /^group: expected 1 to/);
    }).pipe(Effect.provide(S.processor())),
  );
});
