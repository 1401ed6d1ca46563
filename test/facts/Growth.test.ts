/** Checks the table of growth against the order of facts (law L1): every fact in it, and everything derived from it. */
import { assert, describe, it } from "@effect/vitest";
import { expectTypeOf } from "vitest";
import { AttemptFacts, Delivery, fresh, Progress, Shown, type ToolRow } from "../../src/domain/AttemptFacts.ts";
import { empty } from "../../src/domain/SideEffects.ts";
import * as Facts from "../../src/facts/Facts.ts";
import { canGrowInto, type Growth, growth, join, joinAttempts, lastMoment } from "../../src/facts/Growth.ts";

type Table<F> = { readonly [K in keyof F]: Growth<F[K]> };

const row: ToolRow = { call: "0.0", tool: "t", executor: "runtime", effect: "read_only", phase: "input_started" };
const hosted = {
  ...empty,
  complete: false,
  reason: "provider_tools",
  provider: { ...empty.provider, mutating: 1 },
} as const;

/** Some values of every fact; the laws hold between any two or three of them. */
const values: { readonly [K in keyof AttemptFacts]: ReadonlyArray<AttemptFacts[K]> } = {
  delivery: Delivery.literals,
  progress: Progress.literals,
  shown: Shown.literals,
  text_through: [0, 1, 7],
  call_through: [0, 2, 7],
  settled_through: [0, 3],
  tools: [
    [],
    [row],
    [{ ...row, phase: "settled" }],
    [{ ...row, effect: "mutating", phase: "handed_over" }],
    [row, { ...row, call: "0.1", executor: "provider" }],
  ],
  terminal_seen: [false, true],
  side_effects: [{ ...empty, guarded: true }, empty, { ...hosted, guarded: true }, hosted, null],
  counters: [fresh.counters, { parts: 3, bytes: 9, characters: 4, output_tokens: 2 }],
};

// `Object.keys` loses the literal keys of the table.
const names = Object.keys(growth) as ReadonlyArray<keyof AttemptFacts>;

/** Facts that differ from fresh ones in one fact. */
const samples: ReadonlyArray<AttemptFacts> = names.flatMap((name) =>
  values[name].map((value) => ({ ...fresh, side_effects: { ...empty, guarded: true }, [name]: value })),
);
const same = (a: AttemptFacts, b: AttemptFacts): boolean => canGrowInto(a, b) && canGrowInto(b, a);

describe("L1 facts grow: a fact", () => {
  it("does not compile before its growth is declared", () => {
    expectTypeOf(growth).toEqualTypeOf<Table<AttemptFacts>>();
    expectTypeOf(growth).not.toExtend<Table<AttemptFacts & { readonly newcomer: boolean }>>();
    expectTypeOf<Omit<typeof growth, "shown">>().not.toExtend<Table<AttemptFacts>>();
    expectTypeOf<Omit<Growth<boolean>, "join">>().not.toExtend<Growth<boolean>>();
    assert.deepStrictEqual<ReadonlyArray<string>>(names, Object.keys(AttemptFacts.fields));
  });

  for (const name of names) {
    it(`${name}: has an order, and a join that is the lowest value above both`, () => {
      const laws = <K extends keyof AttemptFacts>(
        { isAtMost, join }: Growth<AttemptFacts[K]>,
        some: ReadonlyArray<AttemptFacts[K]>,
      ) => {
        for (const a of some) {
          assert.isTrue(isAtMost(a, a));
          for (const b of some) {
            const both = join(a, b);
            assert.isTrue(isAtMost(a, both) && isAtMost(b, both));
            assert.isTrue(isAtMost(both, join(b, a)));
            if (isAtMost(a, b)) assert.isTrue(isAtMost(both, b));
            for (const c of some) {
              if (isAtMost(a, b) && isAtMost(b, c)) assert.isTrue(isAtMost(a, c));
              if (isAtMost(a, c) && isAtMost(b, c)) assert.isTrue(isAtMost(both, c));
            }
          }
        }
      };
      const of = <K extends keyof AttemptFacts>(fact: K) => laws(growth[fact], values[fact]);
      of(name);
    });
  }
});

describe("The table of growth", () => {
  it("compares and joins every fact", () => {
    for (const f of samples) {
      for (const g of samples) {
        const both = join(f, g);
        assert.isTrue(canGrowInto(f, both) && canGrowInto(g, both));
        assert.isTrue(same(both, join(g, f)));
        assert.strictEqual(canGrowInto(f, g), same(both, g));
        const facts = <K extends keyof AttemptFacts>(name: K) => growth[name].isAtMost(f[name], g[name]);
        assert.strictEqual(canGrowInto(f, g), names.every(facts));
      }
    }
  });

  it("resumes from the facts of an earlier process: folding them gives them again", () => {
    for (const from of samples) {
      const { guarded = false } = from.side_effects ?? {};
      const fold = Facts.make({ sideEffects: from.side_effects, discardable: true, boundaries: [], guarded, from });
      assert.deepStrictEqual(fold.snapshot(), from);
    }
  });

  it("puts a later attempt of a response after the earlier ones: other calls, later moments, nothing lost", () => {
    for (const f of samples) {
      assert.strictEqual(joinAttempts([f]), f);
      for (const g of samples) {
        const both = joinAttempts([f, g]);
        assert.isTrue(canGrowInto(f, both));
        assert.lengthOf(both.tools, f.tools.length + g.tools.length);
        assert.strictEqual(lastMoment(both), lastMoment(f) + lastMoment(g));
      }
    }
  });
});
