import { assert, describe, it } from "@effect/vitest";
import { callKey } from "../../src/domain/AttemptFacts.ts";
import { toolRowsMax } from "../../src/domain/Limits.ts";
import * as Observation from "../../src/domain/Observation.ts";
import { empty, type ToolBoundary } from "../../src/domain/SideEffects.ts";
import * as Facts from "../../src/facts/Facts.ts";

const boundaries: ReadonlyArray<ToolBoundary> = [
  { name: "read", executor: "runtime", effect: "read_only" },
  { name: "bash", executor: "runtime", effect: "mutating" },
  { name: "deploy", executor: "provider", effect: "mutating" },
];
const options: Facts.FactsOptions = { sideEffects: empty, discardable: true, boundaries, guarded: false };
const start = (changes: Partial<Facts.FactsOptions> = {}) => Facts.make({ ...options, ...changes });
const signal = (
  phase: Observation.CallSignal["phase"],
  tool?: string,
  changes: Partial<Observation.CallSignal> = {},
): Observation.CallSignal => ({
  choice: 0,
  ordinal: 0,
  executor: "runtime",
  phase,
  ...(tool === undefined ? {} : { tool }),
  ...changes,
});
const both = (fold: Facts.FactsFold, o: Observation.Observation): void => {
  fold.decoded(o);
  fold.handedOver(o);
};

describe("Facts of an attempt, decoded", () => {
  it("are accepted with the first part, even if it is a ping", () => {
    const fold = start();
    assert.strictEqual(fold.snapshot().delivery, "not_sent");
    assert.isTrue(fold.decoded(Observation.ping));
    assert.strictEqual(fold.snapshot().delivery, "accepted");
    assert.isFalse(fold.delivery("ambiguous"));
    assert.strictEqual(fold.snapshot().delivery, "accepted");
  });

  it("distinguish news from counters", () => {
    const fold = start();
    assert.isTrue(fold.decoded(Observation.text(3)));
    assert.isFalse(fold.decoded(Observation.text(4)));
    assert.deepStrictEqual(fold.snapshot().counters, { parts: 2, bytes: 0, characters: 7 });
    assert.isTrue(fold.decoded(Observation.terminal("stop")));
  });

  it("show nothing until a part is handed over (L4)", () => {
    const fold = start();
    fold.decoded(Observation.text(3));
    assert.strictEqual(fold.snapshot().shown, "nothing");
    assert.isTrue(fold.wouldShow(Observation.text(3)));
    assert.isTrue(fold.handedOver(Observation.text(3)));
    assert.isFalse(fold.wouldShow(Observation.text(3)));
    assert.isFalse(fold.handedOver(Observation.text(3)));
    assert.strictEqual(fold.snapshot().shown, "text");
  });

  it("count no marker after an error or in the same event (L5)", () => {
    const fold = start();
    fold.decoded(Observation.failed({ kind: "overloaded" }));
    fold.decoded(Observation.terminal("stop"));
    assert.isFalse(fold.snapshot().terminal_seen);
  });

  it("keep the highest usage, bytes and suspended time", () => {
    const fold = start();
    fold.decoded({ ...Observation.none, usage: { input_tokens: 9, output_tokens: 1 } });
    fold.decoded({ ...Observation.none, usage: { output_tokens: 5 } });
    fold.bytes(10);
    fold.bytes(5);
    fold.suspended(20);
    assert.deepStrictEqual(fold.snapshot().counters, {
      parts: 2,
      bytes: 15,
      characters: 0,
      input_tokens: 9,
      output_tokens: 5,
      suspended_ms: 20,
    });
  });

  it("give the same snapshot until something changes, and never change a snapshot", () => {
    const fold = start();
    both(fold, Observation.calls([signal("input_started", "bash")]));
    const first = fold.snapshot();
    assert.strictEqual(fold.snapshot(), first);
    const copy = structuredClone(first);
    both(fold, Observation.calls([signal("ready", "bash")]));
    fold.dispatched("0.0");
    assert.deepStrictEqual(first, copy);
    assert.strictEqual(fold.snapshot().tools[0]?.phase, "dispatched");
  });
});

describe("Facts of tool calls", () => {
  const phaseOf = (fold: Facts.FactsFold) => fold.snapshot().tools.map(({ phase }) => phase);

  it("count a runtime call when it is handed over, and a provider's call when it is decoded", () => {
    const fold = start();
    const o = Observation.calls([
      signal("ready", "bash"),
      signal("input_started", "web_search", { ordinal: 1, executor: "provider" }),
    ]);
    fold.decoded(o);
    assert.deepStrictEqual(fold.snapshot().tools, [
      { call: "0.1", tool: "web_search", executor: "provider", effect: "read_only", phase: "input_started" },
    ]);
    assert.isTrue(fold.wouldShow(o));
    assert.isTrue(fold.handedOver(o));
    assert.isFalse(fold.wouldShow(o));
    assert.deepInclude(fold.snapshot().tools[1], { call: "0.0", effect: "mutating", phase: "handed_over" });
  });

  it("reach all six phases, and never go back", () => {
    const fold = start();
    both(fold, Observation.calls([signal("input_started", "bash")]));
    assert.deepStrictEqual(phaseOf(fold), ["input_started"]);
    both(fold, Observation.calls([signal("input_complete")]));
    assert.deepStrictEqual(phaseOf(fold), ["input_complete"]);
    both(fold, Observation.calls([signal("ready", "bash")]));
    assert.deepStrictEqual(phaseOf(fold), ["handed_over"]);
    assert.isTrue(fold.dispatched("0.0"));
    assert.isTrue(fold.outcomeUnknown("0.0"));
    assert.isTrue(fold.settled("0.0"));
    assert.isFalse(fold.settled("0.0"));
    assert.isFalse(fold.dispatched("0.0"));
    assert.deepStrictEqual(phaseOf(fold), ["settled"]);
    assert.strictEqual(fold.snapshot().tools[0]?.effect, "mutating");
  });

  it("consider an undeclared tool dispatched once a guarded caller has its call", () => {
    const fold = start({ guarded: true });
    both(fold, Observation.calls([signal("input_started", "hidden")]));
    assert.deepStrictEqual(phaseOf(fold), ["input_started"]);
    both(fold, Observation.calls([signal("ready")]));
    assert.deepInclude(fold.snapshot().tools[0], { phase: "dispatched", effect: "unknown" });
    both(fold, Observation.calls([signal("input_started", "bash", { ordinal: 1 })]));
    both(fold, Observation.calls([signal("ready", undefined, { ordinal: 1 })]));
    assert.deepStrictEqual(phaseOf(fold), ["dispatched", "handed_over"]);
  });

  it("take effects from the request, then from hosted tools, and are unknown otherwise", () => {
    const fold = start();
    const hosted = (tool: string, ordinal: number) => signal("input_started", tool, { ordinal, executor: "provider" });
    fold.decoded(Observation.calls([hosted("deploy", 0), hosted("web_search", 1), hosted("read", 2)]));
    assert.deepStrictEqual(
      fold.snapshot().tools.map(({ effect }) => effect),
      ["mutating", "read_only", "unknown"],
    );
  });

  it("never revise an effect that was unknown before the name came", () => {
    const fold = start();
    both(fold, Observation.calls([signal("input_started")]));
    both(fold, Observation.calls([signal("ready", "read")]));
    assert.deepInclude(fold.snapshot().tools[0], { tool: "read", effect: "unknown" });
  });

  it("add a call that was not handed over, by the tool's name", () => {
    const fold = start();
    assert.isTrue(fold.dispatched("0.3", "bash"));
    assert.deepStrictEqual(fold.snapshot().tools, [
      { call: "0.3", tool: "bash", executor: "runtime", effect: "mutating", phase: "dispatched" },
    ]);
  });
});

describe("The order of text and calls", () => {
  const order = (...parts: ReadonlyArray<Observation.Observation>) => {
    const fold = start();
    for (const part of parts) both(fold, part);
    const { text_through, call_through } = fold.snapshot();
    return text_through === 0 ? "no text" : text_through < call_through ? "closed" : "open";
  };
  const begin = Observation.calls([signal("input_started", "bash")]);
  const mixed = { ...begin, shows: "text", characters: 3 } as const;

  it("is the order of the parts", () => {
    assert.strictEqual(order(Observation.text(1), begin), "closed");
    assert.strictEqual(order(begin, Observation.text(1)), "open");
    assert.strictEqual(order(Observation.text(1), begin, Observation.text(1)), "open");
    assert.strictEqual(order(begin), "no text");
  });

  it("puts text in the same part as a call's start after the call, unless the part says otherwise", () => {
    assert.strictEqual(order(mixed), "open");
    assert.strictEqual(order({ ...mixed, text_before_calls: true }), "closed");
    const later = { ...mixed, calls: [signal("ready", "bash")], text_before_calls: true };
    assert.strictEqual(order(begin, later), "open");
  });

  it("keeps text open that comes during a call's input", () => {
    assert.strictEqual(order(begin, Observation.text(1), Observation.calls([signal("ready", "bash")])), "open");
  });

  it("puts a settle after the text before it", () => {
    const fold = start();
    both(fold, Observation.text(1));
    both(fold, Observation.calls([signal("ready", "bash")]));
    fold.settled("0.0");
    assert.isBelow(fold.snapshot().text_through, fold.snapshot().settled_through);
    both(fold, Observation.text(1));
    assert.isAbove(fold.snapshot().text_through, fold.snapshot().settled_through);
  });
});

describe("Facts for a caller that cannot discard", () => {
  it("count every part as text except usage and pings", () => {
    const fold = start({ discardable: false });
    both(fold, Observation.ping);
    assert.strictEqual(fold.snapshot().shown, "nothing");
    assert.isTrue(fold.wouldShow(Observation.lifecycle));
    assert.isTrue(fold.handedOver(Observation.lifecycle));
    assert.strictEqual(fold.snapshot().shown, "text");
    assert.isAbove(fold.snapshot().text_through, 0);
  });
});

describe("L1 facts grow", () => {
  it("if a provider begins to keep the response: once, and the record knows it first", () => {
    for (const sideEffects of [empty, { ...empty, guarded: true }, null]) {
      const fold = start({ sideEffects });
      fold.decoded(Observation.ping);
      const before = fold.snapshot();
      const stores = { ...Observation.lifecycle, stores: true };
      assert.isTrue(fold.wouldShow(stores));
      assert.isTrue(fold.decoded(stores));
      assert.isFalse(fold.wouldShow(stores));
      fold.passed([stores, Observation.ping]);
      const after = fold.snapshot();
      assert.isTrue(Facts.atMost(before, after));
      assert.isFalse(sideEffects !== null && Facts.atMost(after, before));
      assert.strictEqual(after.side_effects?.provider.mutating, sideEffects === null ? undefined : 1);
      assert.strictEqual(after.side_effects?.guarded, sideEffects?.guarded);
    }
    const read = start({ discardable: false });
    read.passed([{ ...Observation.lifecycle, quiet: true, stores: true }]);
    assert.strictEqual(read.snapshot().side_effects?.provider.mutating, 1);
  });

  it("in parts and characters, for a delta like the one before it too", () => {
    for (const discardable of [false, true]) {
      const fold = start({ discardable });
      fold.decoded(Observation.lifecycle);
      for (const characters of [3, 4, 5]) fold.passed([Observation.text(characters)]);
      const { parts, characters } = fold.snapshot().counters;
      assert.deepStrictEqual([parts, characters], [4, 12]);
    }
  });

  it("over any sequence of parts, hand-overs and tool events, far past the ledger's limit", () => {
    for (const seed of [1, 2, 3, 20_261_121]) {
      const random = seeded(seed);
      const fold = start({ guarded: random() < 0.5, discardable: random() < 0.5 });
      let before = fold.snapshot();
      for (let step = 0; step < 3_000; step++) {
        takeStep(fold, random, step);
        const after = fold.snapshot();
        if (!Facts.atMost(before, after))
          assert.fail(`seed ${seed}, step ${step}: ${JSON.stringify(diff(before, after))}`);
        assert.isAtMost(after.tools.length, toolRowsMax);
        before = after;
      }
      assert.strictEqual(before.tools.length, toolRowsMax, `seed ${seed}`);
      assert.isAbove(before.counters.rows_folded ?? 0, 0);
    }
  });

  it("and a join is at or above each of its inputs", () => {
    const random = seeded(7);
    const made = Array.from({ length: 40 }, () => {
      const fold = start();
      for (let step = 0; step < 12; step++) takeStep(fold, random, step);
      return fold.snapshot();
    });
    for (const f of made) {
      for (const g of made) {
        const both = Facts.join(f, g);
        assert.isTrue(Facts.atMost(f, both) && Facts.atMost(g, both), JSON.stringify([f, g]));
        assert.strictEqual(Facts.atMost(g, f), Facts.atMost(both, f));
      }
    }
  });

  it("says the same after a million deltas as after a hundred (L11)", () => {
    const said = (deltas: number) => {
      const fold = start();
      for (let i = 0; i < deltas; i++) both(fold, Observation.text(1));
      const { counters: _, ...facts } = fold.snapshot();
      return facts;
    };
    assert.deepStrictEqual(said(1_000_000), said(100));
  });
});

const takeStep = (fold: Facts.FactsFold, random: () => number, step: number): void => {
  const ordinal = Math.floor(random() * Math.min(step + 1, 600));
  const phases = ["input_started", "input_complete", "ready", "settled"] as const;
  const phase = phases[Math.floor(random() * 4)] ?? "ready";
  const executor = ordinal % 5 === 0 ? "provider" : "runtime";
  const tool = ["read", "bash", "web_search", "hidden"][ordinal % 4] ?? "read";
  const o = [
    Observation.text(1),
    Observation.reasoning(1),
    Observation.ping,
    Observation.lifecycle,
    Observation.calls([signal(phase, random() < 0.8 ? tool : undefined, { ordinal, executor })]),
    {
      ...Observation.calls([signal(phase, tool, { ordinal, executor })]),
      shows: "text",
      text_before_calls: true,
    } as const,
  ][Math.floor(random() * 6)];
  const call = callKey(0, ordinal);
  const [event] = [random()];
  if (executor === "runtime" && event < 0.1) fold.dispatched(call, tool);
  else if (executor === "runtime" && event < 0.2) fold.settled(call, tool);
  else if (executor === "runtime" && event < 0.25) fold.outcomeUnknown(call);
  else if (o !== undefined) {
    fold.decoded(o);
    const would = fold.wouldShow(o);
    assert.strictEqual(fold.handedOver(o), would);
  }
};

const diff = (a: object, b: object): object =>
  Object.fromEntries(
    Object.entries(b).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(Object.entries(a).find(([n]) => n === name)?.[1]),
    ),
  );

const seeded = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
};
