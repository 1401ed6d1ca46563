import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import * as Limits from "../../src/domain/Limits.ts";
import { defaultBudget, RunFacts, subtractRetries } from "../../src/domain/RunFacts.ts";
import { type Executor, snapshot, type ToolBoundary, type ToolEffect } from "../../src/domain/SideEffects.ts";

describe("the limits of the domain", () => {
  it("are those that the documentation names", () => {
    const { Label: _, Milliseconds: __, Status: ___, dropOldest: ____, label: _____, ...numbers } = Limits;
    assert.deepStrictEqual(numbers, {
      labelCharactersMax: 128,
      toolRowsMax: 256,
      callsMax: 1_024,
      evidenceFirstMax: 16,
      evidenceLastMax: 48,
      incidentsMax: 32,
      resumesMax: 10,
      causeDepthMax: 8,
    });
  });

  it("of a label, a duration and a status hold at their edges", () => {
    const accepts = <A>(schema: Schema.Schema<A>, value: unknown) => Schema.is(schema)(value);
    const longest = "x".repeat(128);
    assert.deepStrictEqual(
      [
        accepts(Limits.Label, longest),
        accepts(Limits.Label, `${longest}x`),
        Limits.label(longest),
        Limits.label(`${longest}y`),
      ],
      [true, false, longest, longest],
    );
    assert.deepStrictEqual(
      [0, -0.1, Number.POSITIVE_INFINITY].map((it) => accepts(Limits.Milliseconds, it)),
      [true, false, false],
    );
    assert.deepStrictEqual(
      [99, 100, 599, 600, 200.5].map((it) => accepts(Limits.Status, it)),
      [false, true, true, false, false],
    );
  });

  it("drop the oldest entries of a set or map, and only those above the limit", () => {
    for (const size of [0, 1, 2, 3, 5])
      for (const max of [0, 1, 3]) {
        const items = Array.from({ length: size }, (_, at) => at);
        const set = new Set(items);
        Limits.dropOldest(set, max);
        assert.deepStrictEqual([...set], items.slice(Math.max(0, size - max)), `${size} over ${max}`);
        const map = new Map(items.map((at) => [at, at]));
        Limits.dropOldest(map, max);
        assert.deepStrictEqual([...map.keys()], [...set]);
      }
  });
});

describe("the defaults of a run", () => {
  it("are the documented budget", () => {
    assert.deepStrictEqual(defaultBudget, {
      max_auto_retries: 3,
      max_not_processed: 3,
      max_after_shown: 1,
      max_after_stall: 1,
      max_elapsed_ms: 300_000,
      max_retry_after_ms: 60_000,
      max_outage_ms: 120_000,
      max_moves: 15,
    });
  });

  it("are facts that permit nothing and count nothing", () => {
    assert.deepStrictEqual<object>(Schema.decodeSync(RunFacts)({}), {
      ...{ mode: "first", user_cancelled: false, lifecycle_closed: false, can_continue: false, continue_text: "ask" },
      ...{ resumable: false, discardable: true, can_refresh_credentials: false, credential_refreshes: 0 },
      ...{ throttle_wait_ms: 0, auto_retries: 0, not_processed_retries: 0, retries_after_shown: 0 },
      ...{ retries_after_stall: 0, retries_after_empty: 0, elapsed_ms: 0, path: "up", waited_for_path: false },
      ...{ waited_ms: 0, cooldown_ms: 0, next_route: "none", route_failures: 0, own_route: false, moves: 0 },
      ...{ wasted_tokens: 0, next_tokens: 0, tokens_estimated: false, same_partial: false, group_retries: 0 },
      ...{ group_wasted_tokens: 0 },
    });
  });

  it("are reduced by what was spent, down to nothing", () => {
    assert.deepStrictEqual(subtractRetries({}, 0), { max_auto_retries: 3, max_not_processed: 3 });
    assert.deepStrictEqual(subtractRetries({ max_auto_retries: 5, max_moves: 2 }, 1), {
      ...{ max_auto_retries: 4, max_not_processed: 2, max_moves: 2 },
    });
    assert.deepStrictEqual(subtractRetries({ max_not_processed: 1 }, 2), { max_auto_retries: 1, max_not_processed: 0 });
    assert.deepStrictEqual(subtractRetries({}, 4), { max_auto_retries: 0, max_not_processed: 0 });
  });
});

describe("the snapshot of the tools of a request", () => {
  const effects: ReadonlyArray<ToolEffect> = ["read_only", "mutating", "unknown"];
  const executors: ReadonlyArray<Executor> = ["runtime", "provider"];
  const tools = executors.flatMap((executor) =>
    effects.map((effect): ToolBoundary => ({ name: `${executor} ${effect}`, executor, effect })),
  );

  it("counts each set of tools, and names the first reason why it is not complete", () => {
    for (let set = 0; set < 2 ** tools.length; set += 1)
      for (const guarded of [true, false]) {
        const exposed = tools.filter((_, at) => (set & (1 << at)) !== 0);
        const twice = [...exposed, ...exposed];
        const count = (executor: Executor) =>
          Object.fromEntries(
            effects.map((effect) => [
              effect,
              twice.filter((it) => it.executor === executor && it.effect === effect).length,
            ]),
          );
        const has = (executor: Executor, ...of: ReadonlyArray<ToolEffect>) =>
          exposed.some((it) => it.executor === executor && of.includes(it.effect));
        const reason = has("provider", "mutating", "unknown")
          ? "provider_tools"
          : has("runtime", "unknown")
            ? "unclassified_tools"
            : "all_classified";
        assert.deepStrictEqual<object>(snapshot(twice, guarded), {
          ...{ guarded, complete: reason === "all_classified", reason },
          ...{ runtime: count("runtime"), provider: count("provider") },
        });
      }
  });
});
