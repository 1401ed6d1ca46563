import { assert, describe, it } from "@effect/vitest";
import { Arbitrary, Effect, Result, Schema } from "effect";
import { AttemptFacts } from "../../src/domain/AttemptFacts.ts";
import { Failure, kinds } from "../../src/domain/Failure.ts";
import { parse } from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { Arbitraries, FaultScript } from "../../src/testing/index.ts";

const seed = 20_261_122;

const seeded = { arbitrary: { seed } };

const sample = <A>(arbitrary: Arbitrary.Arbitrary<A>, count: number) =>
  Arbitrary.sampleEffect(arbitrary, { seed, count });

describe("Arbitraries", () => {
  it.prop(
    "facts are facts, each call with a key of its own",
    { facts: Arbitraries.attemptFacts },
    ({ facts }) => {
      assert.deepStrictEqual(Schema.decodeSync(AttemptFacts)(facts), facts);
      assert.strictEqual(new Set(facts.tools.map(({ call }) => call)).size, facts.tools.length);
    },
    seeded,
  );

  it.prop(
    "failures are failures",
    { failure: Arbitraries.failure },
    ({ failure }) => {
      Schema.decodeSync(Failure)(failure);
    },
    seeded,
  );

  it.prop(
    "decision inputs are read back and decided",
    { input: Arbitraries.decisionInput },
    ({ input }) => {
      const read = parse(JSON.parse(JSON.stringify(input)));
      assert.isTrue(Result.isSuccess(read), JSON.stringify(read));
      RecoveryPolicy.default.decide(input);
    },
    seeded,
  );

  it.effect(`reach every kind of failure and every chain's end (seed ${seed})`, () =>
    Effect.gen(function* () {
      const inputs = yield* sample(Arbitraries.decisionInput, 2_000);
      assert.deepStrictEqual([...new Set(inputs.map(({ failure }) => failure.kind))].sort(), Object.keys(kinds).sort());
      assert.sameMembers([...new Set(inputs.map(({ facts }) => facts.shown))], ["nothing", "reasoning", "text"]);
      assert.sameMembers([...new Set(inputs.map(({ facts }) => facts.tools.length))], [0, 1, 2, 3]);
      const actions = new Set(inputs.map((input) => RecoveryPolicy.default.decide(input).action));
      assert.sameMembers([...actions], ["auto_retry_once", "ask_user", "do_not_retry"]);
    }),
  );

  it.effect(`scripts can be played, end healthy and stall only where asked to (seed ${seed})`, () =>
    Effect.gen(function* () {
      const scripts = yield* sample(Arbitraries.faultScript({ tools: ["read", "write"] }), 500);
      const breaks = new Set<string>();
      for (const script of scripts) {
        const decoded = yield* FaultScript.decode(script);
        assert.deepInclude(decoded.answers?.at(-1), { status: 200, content: [{ text: 5 }] });
        for (const answer of decoded.answers ?? []) if (answer.break !== undefined) breaks.add(answer.break.kind);
      }
      assert.sameMembers([...breaks], ["rst", "fin", "end"]);
      const stalling = yield* sample(Arbitraries.faultScript({ stalls: true }), 500);
      for (const script of stalling) yield* FaultScript.decode(script);
      assert.include(JSON.stringify(stalling), '"stall"');
      assert.include(JSON.stringify(stalling), '"keep_alive"');
    }),
  );
});
