/**
 * Folds generated sequences of parts and tool events, and compares each snapshot, each answer and what follows from them with the record.
 * `vitest -u` writes the record again.
 */
import { assert, describe, expect, it } from "@effect/vitest";
import { type AttemptFacts, fresh } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import * as Observation from "../../src/domain/Observation.ts";
import { empty, snapshot, type ToolBoundary } from "../../src/domain/SideEffects.ts";
import { isEmpty, outputTokensMax } from "../../src/facts/EmptyResponse.ts";
import * as Facts from "../../src/facts/Facts.ts";
import { canGrowInto, join, joinAttempts, lastMoment } from "../../src/facts/Growth.ts";
import { estimateRequest, estimateResponse } from "../../src/facts/Tokens.ts";
import { hashOf } from "../Hashes.ts";
import { oneOf, seeded } from "../Seeded.ts";

const boundaries: ReadonlyArray<ToolBoundary> = [
  { name: "read", executor: "runtime", effect: "read_only" },
  { name: "bash", executor: "runtime", effect: "mutating" },
  { name: "bash", executor: "runtime", effect: "unknown" },
  { name: "deploy", executor: "provider", effect: "mutating" },
];

const random = seeded(20261130);
const pick = <A>(...all: ReadonlyArray<A>): A => oneOf(random, all);

const observation = (calls: number): Observation.Observation => {
  const signal = (): Observation.CallSignal => ({
    ...{
      choice: pick(0, 0, 0, 1),
      ordinal: Math.floor(random() * calls),
      executor: pick("runtime", "runtime", "provider"),
    },
    phase: pick("input_started", "input_complete", "ready", "settled"),
    ...pick({}, { tool: "read" }, { tool: "bash" }, { tool: "web_search" }, { tool: "hidden" }, { tool: "deploy" }),
  });
  return {
    ...pick(Observation.none, Observation.ping, Observation.text(3), Observation.reasoning(2)),
    ...pick({}, {}, { calls: [signal()] }, { calls: [signal(), signal()] }),
    ...pick({}, {}, {}, { text_before_calls: true }, { quiet: true }, { stores: true }, { terminal: true }),
    ...pick({}, {}, {}, {}, { usage: { input_tokens: 9 } }, { usage: { output_tokens: pick(1, 5) } }),
    ...(random() < 0.02 ? { failure: { kind: "truncated" } as const } : {}),
  };
};

const step = (fold: Facts.FactsFold, calls: number): unknown => {
  const call = `0.${Math.floor(random() * calls)}`;
  const [tool] = pick<ReadonlyArray<string>>([], ["read"], ["bash"]);
  const o = observation(calls);
  return pick<() => unknown>(
    () => [fold.decoded(o), fold.wouldShow(o), fold.handedOver(o)],
    () => [fold.decoded(o), fold.handedOver(o), fold.wouldShow(o)],
    () => fold.decoded(o),
    () => fold.passed([o, observation(calls)]),
    () => fold.dispatched(call, tool),
    () => fold.settled(call, tool),
    () => fold.outcomeUnknown(call, tool),
    () => fold.delivery(pick("not_sent", "ambiguous", "accepted")),
    () => fold.bytes(7),
    () => fold.suspended(11),
  )();
};

const failures: ReadonlyArray<Failure | undefined> = [undefined, { kind: "truncated" }, { kind: "overloaded" }];

describe("generated facts", () => {
  let last: AttemptFacts | undefined;
  const folded = Array.from({ length: 90 }, (_, at) => {
    const guarded = random() < 0.5;
    const from = at % 9 === 8 ? last : undefined;
    const sideEffects = pick(empty, snapshot(boundaries, guarded), null);
    const fold = Facts.make({
      ...{ boundaries, guarded, sideEffects },
      discardable: random() < 0.6,
      ...(from && { from }),
    });
    const calls = at % 15 === 7 ? 400 : pick(2, 6);
    const steps = Array.from({ length: calls === 400 ? 900 : 30 }, () => [step(fold, calls), fold.snapshot()] as const);
    const facts = fold.snapshot();
    last = facts;
    const { counters, delivery, progress, shown, terminal_seen, tools } = facts;
    const said = `${delivery} ${progress} ${shown} ${tools.length} rows ${JSON.stringify(counters)} ${terminal_seen}`;
    return { facts, line: `${at}: ${said}, steps ${hashOf(steps)}` };
  });

  it("grow as recorded", async () => {
    await expect(`${folded.map(({ line }) => line).join("\n")}\n`).toMatchFileSnapshot("../fixtures/facts/folds.txt");
  });

  it("compare, join and cost as recorded", async () => {
    const some = folded.map(({ facts }) => facts).filter((_, at) => at % 3 === 0);
    const lines = some.map((f, at) => {
      const others = some.map((g) => [canGrowInto(f, g), join(f, g), joinAttempts([f, g]), joinAttempts([f, g, f])]);
      const costs = failures.map((failure) => [
        estimateResponse([f], failure, 70),
        estimateResponse([f, ...some.slice(at, at + 2)], failure, undefined),
      ]);
      return `${at}: moment ${lastMoment(f)}, others ${hashOf(others)}, ${JSON.stringify(costs)}`;
    });
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../fixtures/facts/joins.txt");
  });
});

describe("an empty response", () => {
  const counters = { parts: 1, bytes: 0, characters: 0 };
  const ended: AttemptFacts = { ...fresh, terminal_seen: true, progress: "started", counters };
  const other = "length max_tokens content_filter safety refusal stop_sequence pause_turn error cancelled other".split(
    " ",
  );

  it("ended by itself, without output, calls and invisible work", () => {
    const rows: ReadonlyArray<readonly [Partial<AttemptFacts>, boolean]> = [
      [{}, true],
      [{ terminal_seen: false }, false],
      [{ progress: "none" }, true],
      [{ progress: "reasoning" }, true],
      [{ progress: "output" }, false],
      [{ counters: { ...counters, output_tokens: outputTokensMax } }, true],
      [{ counters: { ...counters, output_tokens: outputTokensMax + 1 } }, false],
      [{ counters: { ...counters, characters: 1, output_tokens: outputTokensMax + 1 } }, true],
      [{ progress: "reasoning", counters: { ...counters, output_tokens: outputTokensMax + 1 } }, true],
      [{ progress: "output", counters: { ...counters, characters: 1 } }, false],
    ];
    for (const [facts, expected] of rows)
      for (const finish of [undefined, "stop", "end_turn"])
        assert.strictEqual(isEmpty({ ...ended, ...facts }, finish), expected, JSON.stringify([facts, finish]));
    assert.strictEqual(outputTokensMax, 8);
    for (const finish of other) assert.isFalse(isEmpty(ended, finish), finish);
  });
});

describe("the tokens of a request", () => {
  it("count each file once, whatever surrounds it, and in each form of body", async () => {
    const file = (length: number) => "Ab3+/-_z".repeat(Math.ceil(length / 8)).slice(0, length);
    const lengths = [1_022, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 5_000];
    const rest = ["", " ", '"', "x y", "é".repeat(3), " ".repeat(1_100)];
    const lines = lengths.flatMap((length) =>
      rest.flatMap((before) =>
        rest.map((after) => {
          const body = `${before}${file(length)}${after}`;
          const twice = `${body}"${body}`;
          const bytes = new TextEncoder().encode(body);
          return [estimateRequest(body), estimateRequest(twice), estimateRequest(bytes)].join(" ");
        }),
      ),
    );
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../fixtures/facts/requests.txt");
    assert.strictEqual(estimateRequest(undefined), 0);
  });
});
