/** The runs of a group share a budget: one run's spending counts before another is decided. */
import { assert, describe, it, vi } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import type { Failure } from "../../../src/domain/Failure.ts";
import { Groups, groupKey, groupsMax, idleMs } from "../../../src/runtime/pacing/Groups.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
import * as S from "../Scripted.ts";

const member = (runId: string, group = "g") => ({ runId, group });

describe("A group", () => {
  it("counts a retry once, from the step that takes it, and returns one that was not sent (G1, G2)", () => {
    const groups = new Groups();
    groups.take(member("a"), 0);
    groups.take(member("a"), 0);
    assert.strictEqual(groups.facts(member("a"), 0).group_retries, 0, "its own is no reason against it");
    assert.strictEqual(groups.facts(member("b"), 0).group_retries, 1);
    groups.markStarted(member("a"), false, 0);
    assert.strictEqual(groups.facts(member("a"), 0).group_retries, 1);
    groups.take(member("b"), 0);
    groups.leave(member("b"));
    assert.strictEqual(groups.facts(member("c"), 0).group_retries, 1);
    groups.leave(member("a"));
    assert.strictEqual(groups.facts(member("c"), 0).group_retries, 1);
  });

  it("leaves a retry its place while others take theirs, and returns the place on request (G2)", () => {
    const groups = new Groups();
    for (const run of ["a", "b", "c"]) groups.take(member(run), 0);
    assert.strictEqual(groups.facts(member("a"), 0).group_retries, 0, "a run with a smaller limit decided first");
    assert.strictEqual(groups.facts(member("c"), 0).group_retries, 2);
    groups.returnRetry(member("b"));
    groups.returnRetry(member("b"));
    assert.strictEqual(groups.facts(member("c"), 0).group_retries, 1);
    assert.strictEqual(groups.facts(member("d"), 0).group_retries, 2);
  });

  it("counts the cost of a response once, however often it is decided, and the next response again (G3)", () => {
    const groups = new Groups();
    const wasted = () => groups.facts(member("b"), 0).group_wasted_tokens;
    groups.countBreak(member("a"), 100, 0);
    groups.countBreak(member("a"), 100, 0);
    assert.strictEqual(wasted(), 100);
    groups.markStarted(member("a"), true, 0);
    groups.countBreak(member("a"), 130, 0);
    assert.strictEqual(wasted(), 130);
    groups.markStarted(member("a"), false, 0);
    groups.countBreak(member("a"), 50, 0);
    assert.strictEqual(wasted(), 180);
  });

  it("is separate from the same group with another credential, and from runs without a group", () => {
    assert.notStrictEqual(groupKey("g", "k1"), groupKey("g", "k2"));
    assert.notStrictEqual(groupKey('"],["', "k"), groupKey('"', '],["k'));
    const groups = new Groups();
    groups.take({ runId: "a", group: undefined }, 0);
    assert.strictEqual(groups.size, 0);
  });

  it.effect("is left by each run that has ended, and keeps nothing of it (L11)", () =>
    Effect.gen(function* () {
      const left = vi.spyOn(Groups.prototype, "leave");
      yield* Effect.addFinalizer(() => Effect.sync(() => left.mockRestore()));
      const processor = yield* StreamProcessor;
      for (const more of [{ group: "g" }, { group: "g", linger: Linger.of(1_000) }, {}]) {
        const run = S.options(S.scripted(S.hello), { runId: `r${left.mock.calls.length}`, ...more });
        yield* S.played(processor.run(run));
      }
      assert.deepStrictEqual(
        left.mock.calls.map(([it]) => [it.runId, it.group !== undefined]),
        [
          ["r0", true],
          ["r1", true],
        ],
      );
    }).pipe(Effect.scoped, Effect.provide(S.processor())),
  );

  it("is deleted after an hour without activity, and the idlest ones if there are too many (G4, L11)", () => {
    const groups = new Groups();
    groups.take(member("a", "old"), 0);
    assert.strictEqual(groups.facts(member("b", "old"), idleMs).group_retries, 1);
    assert.strictEqual(groups.facts(member("b", "old"), idleMs + 1).group_retries, 0);
    groups.take(member("a", "new"), idleMs + 1);
    assert.strictEqual(groups.size, 1);
    for (let index = 0; index < groupsMax + 10; index += 1) groups.take(member("a", `g${index}`), idleMs + 2);
    assert.strictEqual(groups.size, groupsMax);
    assert.strictEqual(groups.facts(member("b", "new"), idleMs + 2).group_retries, 0);
    assert.strictEqual(groups.facts(member("b", `g${groupsMax}`), idleMs + 2).group_retries, 1);
  });
});

describe("Forty runs of a group that break at once", () => {
  const limited: Failure = { kind: "rate_limited", status: 429 };
  const play = (failures: number, failure: Failure, more: Parameters<typeof S.options>[1]) =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      let requests = 0;
      const attempt: ReturnType<typeof S.scripted>["attempt"] = (context) => {
        requests += 1;
        const steps = context.attempt <= failures ? [S.start, S.reasoning("four"), S.fail(failure)] : S.hello;
        return S.scripted(steps).attempt(context);
      };
      const fibers = yield* Effect.forEach(Array.from({ length: 40 }), () =>
        Effect.forkChild(S.watch(processor.run(S.options({ attempt }, more)))),
      );
      for (let step = 0; step < 60; step += 1) yield* TestClock.adjust("1 minute");
      const seen = yield* Effect.forEach(fibers, Fiber.join);
      return { retries: requests - 40, ends: seen.map(({ lines }) => lines.at(-1)) };
    }).pipe(Effect.provide(S.processor()));

  for (const [name, failure] of [
    ["cut", { kind: "transport" }],
    ["turned away", limited],
  ] as const) {
    it.effect(`get as many retries as their group has left and never one more: all were ${name}`, () =>
      Effect.gen(function* () {
        const { ends, retries } = yield* play(1, failure, { group: "tree", budget: { max_group_retries: 5 } });
        assert.strictEqual(retries, 5);
        assert.strictEqual(ends.filter((it) => it === "completed").length, 5);
        assert.strictEqual(ends.filter((it) => it === "end stopped budget_exhausted").length, 35);
      }),
    );
  }

  it.effect("make no more retries than the group allows over all of their breaks", () =>
    Effect.gen(function* () {
      const { retries } = yield* play(3, { kind: "transport" }, { group: "tree", budget: { max_group_retries: 7 } });
      assert.strictEqual(retries, 7);
    }),
  );

  it.effect("are asked if the broken responses have cost more than the group's budget, in any order of decision", () =>
    Effect.gen(function* () {
      const budget = { max_group_wasted_tokens: 1_200 };
      const { ends, retries } = yield* play(1, { kind: "transport" }, { group: "tree", requestTokens: 100, budget });
      // The group's budget covers eleven breaks. A run that decides again once more runs have broken is asked, too.
      assert.isAtMost(retries, 10);
      assert.strictEqual(ends.filter((it) => it === "end stopped token_budget").length, 40 - retries);
    }),
  );

  it.effect(
    "and consecutive breaks are asked once the cost so far and that of the next retry exceed the group's budget",
    () =>
      Effect.gen(function* () {
        const processor = yield* StreamProcessor;
        const more = { group: "tree", requestTokens: 100, budget: { max_group_wasted_tokens: 1_200 } };
        const ends: Array<string | undefined> = [];
        for (let run = 0; run < 12; run += 1) {
          // Each break has cost 100 for the request and 1 for four characters, and a retry would cost 100 again.
          const provider = S.scripted([S.start, S.reasoning("four"), S.reset], S.hello);
          ends.push((yield* S.played(processor.run(S.options(provider, more)))).lines.at(-1));
        }
        const stopped = "end stopped token_budget";
        assert.deepStrictEqual(ends, [...Array.from({ length: 10 }, () => "completed"), stopped, stopped]);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("behave as before without a group, and share nothing", () =>
    Effect.gen(function* () {
      const { retries } = yield* play(1, { kind: "transport" }, { budget: { max_group_retries: 5 } });
      assert.strictEqual(retries, 40);
    }),
  );

  it.effect("of two credentials are two groups", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const play = (credential: string) =>
        S.played(
          processor.run(
            S.options(S.scripted([S.reset], S.hello), {
              group: "tree",
              path: { id: "https://api.example", credential },
              budget: { max_group_retries: 1 },
            }),
          ),
        );
      const ends = [yield* play("k1"), yield* play("k1"), yield* play("k2")].map(({ lines }) => lines.at(-1));
      assert.deepStrictEqual(ends, ["completed", "end stopped budget_exhausted", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );
});
