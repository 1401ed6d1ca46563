import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema } from "effect";
import { AttemptFacts } from "../../../../src/domain/AttemptFacts.ts";
import { defaultBudget, fresh as freshRun } from "../../../../src/domain/RunFacts.ts";
import * as RunRecord from "../../../../src/recorder/RunRecord.ts";
import * as SqlEntryCheck from "../../../../src/recorder/sql/entry/SqlEntryCheck.ts";
import { shapeOf } from "../../../../src/recorder/sql/entry/SqlEntryShape.ts";
import { seeded } from "../../../Seeded.ts";
import * as E from "../../Entries.ts";
import { record } from "../../suite/Bench.ts";
import * as Folder from "../SqlFolder.ts";

/** An entry that an untyped program may pass and the types would refuse. */
const entry = (fields: object): RunRecord.Entry => fields as RunRecord.Entry;

const started = (fields: object) => entry({ ...E.begun("r"), ...fields });
const counters = { parts: 1, bytes: 1, characters: 1 };

const unreadable: Readonly<Record<string, readonly [RunRecord.Entry, RegExp]>> = {
  "a budget of Infinity": [
    started({ budget: { ...defaultBudget, max_elapsed_ms: Number.POSITIVE_INFINITY } }),
    /RunStarted\.budget\.max_elapsed_ms: expected/,
  ],
  "a budget of two and a half": [
    started({ budget: { ...defaultBudget, max_auto_retries: 2.5 } }),
    /RunStarted\.budget\.max_auto_retries: expected/,
  ],
  "a model of 129 characters": [
    started({ provider: { id: "x", model: "m".repeat(129) } }),
    /RunStarted\.provider\.model: expected/,
  ],
  "a provider without an id": [started({ provider: {} }), /RunStarted\.provider\.id: missing key/],
  "a time that is none": [started({ at: Number.NaN }), /RunStarted\.at: expected/],
  "text of NaN characters": [
    E.raised(1, { counters: { ...counters, characters: Number.NaN } }),
    /FactsRaised\.facts\.counters\.characters: expected/,
  ],
  "half a token": [
    E.raised(1, { counters: { ...counters, output_tokens: 1.5 } }),
    /FactsRaised\.facts\.counters\.output_tokens: expected/,
  ],
  "fewer than no tokens": [
    E.raised(1, { counters: { ...counters, input_tokens: -1 } }),
    /FactsRaised\.facts\.counters\.input_tokens: expected/,
  ],
  "a phase that is none": [
    E.raised(1, {
      tools: [{ call: "0.0", tool: "t", executor: "runtime", effect: "mutating", phase: "x" as "settled" }],
    }),
    /FactsRaised\.facts\.tools\[0\]\.phase: expected/,
  ],
  "evidence of 129 characters": [E.noted(1, "progress", "x".repeat(129)), /EvidenceNoted\.evidence\.detail: expected/],
  "a seam in front of the text": [E.joined(1, -1), /RunContinued\.at: expected/],
  "a seam that nothing proves": [E.joined(1, 3, "overlap" as "anchor"), /RunContinued\.proof: expected/],
  "an incident's jitter": [E.opened("r", 1, { jitter: Number.NaN }), /IncidentOpened\.incident\.jitter: expected/],
  "an end of 300 characters": [E.ended({ reason: "f".repeat(300) }), /RunEnded\.end\.reason: expected/],
  "an entry of no kind": [entry({ _tag: "RunPaused" }), /RunPaused/],
  "what is no data": [started({ budget: { toJSON: () => 1n } }), /RunStarted/],
};

describe("an entry that could not be read back is refused when it is written (L7, L8)", () => {
  for (const [name, [wrong, field]] of Object.entries(unreadable)) {
    it.effect(`${name}: the message names the field, nothing of the write is stored and the run can be read`, () =>
      Effect.gen(function* () {
        const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
        const starts = wrong._tag === "RunStarted";
        if (!starts) yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
        const [refused, beside] = yield* Effect.all(
          [
            Effect.flip(recorder.write("r", starts ? [wrong, E.attempt(1)] : [E.noted(1), wrong])),
            Effect.result(recorder.write("other", [E.begun("other")])),
          ],
          { concurrency: "unbounded" },
        );
        assert.deepInclude(refused, { _tag: "RecorderError", reason: "invalid", run_id: "r" });
        assert.match(refused.message, field);
        assert.notMatch(refused.message, /m{20}|f{20}|x{20}/, "a message repeats no text");
        assert.strictEqual(beside._tag, "Success");
        if (starts) assert.isUndefined(yield* recorder.run("r"));
        else assert.deepStrictEqual(yield* record(recorder, "r"), E.folded([E.begun("r"), E.attempt(1)]));
        assert.strictEqual((yield* recorder.runs()).length, starts ? 1 : 2);
      }),
    );
  }

  it.effect("an entry that JSON completes is accepted: undefined fields are omitted", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* Folder.emptyPath });
      yield* recorder.write("r", [started({ provider: { id: "x", model: undefined }, retry_of: undefined })]);
      assert.deepStrictEqual((yield* record(recorder, "r")).provider, { id: "x" });
      const run = { ...freshRun, elapsed_ms: -0 };
      const attempt = E.attempt(1);
      if (attempt._tag === "AttemptStarted") yield* recorder.write("r", [{ ...attempt, run }]);
      yield* record(recorder, "r");
    }),
  );

  const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_122);
  it(`whatever is done to an entry, the record of the accepted ones can be read; seed ${seed}`, () => {
    const random = seeded(seed);
    const decode = Schema.decodeUnknownSync(RunRecord.RunRecord);
    let taken = 0;
    let refused = 0;
    for (let round = 0; round < 3_000; round += 1) {
      const life = [...E.life("r")];
      const at = Math.floor(random() * life.length);
      const damaged = damage(life[at], random) as RunRecord.Entry;
      const entries = life.with(at, damaged);
      const checked = SqlEntryCheck.normalizeEntries("r", entries);
      if ("reason" in checked) {
        refused += 1;
        continue;
      }
      taken += 1;
      const folded = fold(checked);
      if (folded !== undefined) decode(JSON.parse(JSON.stringify(folded)));
    }
    assert.isAbove(taken, 100);
    assert.isAbove(refused, 100);
  });
});

describe("the quick check of each entry agrees with its schema", () => {
  const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_123);
  it(`for each of 100,000 entries to which something was done; seed ${seed}`, () => {
    const random = seeded(seed);
    const [shape, schema] = [shapeOf(RunRecord.Entry), Schema.is(RunRecord.Entry)];
    const whole = full();
    assert.isTrue(whole.every((it) => shape(it) && schema(it)));
    const answers = { yes: 0, no: 0 };
    for (let round = 0; round < 100_000; round += 1) {
      const damaged = damage(whole[Math.floor(random() * whole.length)], random);
      const expected = schema(damaged);
      if (shape(damaged) !== expected) assert.fail(`expected ${expected} for ${JSON.stringify(damaged)}`);
      answers[expected ? "yes" : "no"] += 1;
    }
    assert.isAbove(answers.yes, 10_000);
    assert.isAbove(answers.no, 10_000);
  });

  it("checks bounds as Schema.is does, at their edges and for unknown checks", () => {
    const atLeast = (least: number) => Schema.isGreaterThanOrEqualTo(least);
    const schemas: ReadonlyArray<Schema.Constraint> = [
      Schema.String.check(Schema.isMaxLength(3)),
      Schema.String.check(Schema.isMaxLength(3), Schema.isMaxLength(2)),
      Schema.String.check(Schema.isMinLength(2), Schema.isMaxLength(3)),
      Schema.Array(Schema.Any).check(Schema.isMaxLength(3)),
      Schema.Natural,
      Schema.Int,
      Schema.Finite,
      Schema.Finite.check(atLeast(0)),
      Schema.Finite.check(atLeast(-1), atLeast(1)),
      Schema.Finite.check(Schema.isInt()),
      Schema.Int.check(Schema.isFinite()),
      Schema.Number.check(atLeast(0)),
      Schema.Natural.check(Schema.isLessThanOrEqualTo(2)),
      Schema.Number.check(Schema.isInt32()),
    ];
    const [most, large] = [Number.MAX_SAFE_INTEGER, 2 ** 31];
    const numbers = [0, -0, -1, 1, 2, 3, 0.5, -0.5, most, most + 1, -most - 1, large, large - 1, Number.MIN_VALUE];
    const none = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, null, undefined, true, 1n, {}];
    const texts = ["", "a", "ab", "abc", "abcd", "\u{1F600}a", "\u{1F600}ab", Object("ab")];
    const lists = [[], [1, 2, 3], [1, 2, 3, 4], { length: 1 }];
    for (const [at, schema] of schemas.entries())
      for (const value of [...numbers, ...none, ...texts, ...lists])
        assert.strictEqual(shapeOf(schema)(value), Schema.is(schema)(value), `schema ${at}, ${String(value)}`);
  });

  const inherited = Object.assign(Object.create({ parts: 1, bytes: 1 }), { characters: 1 });
  const odd: Readonly<Record<string, readonly [Schema.Constraint, unknown, boolean]>> = {
    "a hole in a list": [Schema.Array(Schema.String), Array(1), false],
    "a list for a struct": [Schema.Struct({ length: Schema.Number }), [1], false],
    "an inherited field": [AttemptFacts.fields.counters, inherited, true],
    "an optional field that is undefined": [
      Schema.Struct({ a: Schema.optionalKey(Schema.String) }),
      { a: undefined },
      false,
    ],
    "a missing field that may be undefined": [Schema.Struct({ a: Schema.UndefinedOr(Schema.String) }), {}, false],
    "a kind that it does not know": [Schema.Struct({ a: Schema.BigInt }), { a: 1 }, false],
    "two members of one tag": [
      Schema.Union([
        Schema.Struct({ kind: Schema.Literal("a"), n: Schema.Number }),
        Schema.Struct({ kind: Schema.Literal("a"), n: Schema.String }),
      ]),
      { kind: "a", n: 1 },
      true,
    ],
    "a second rest of a list": [
      Schema.TupleWithRest(Schema.Tuple([]), [Schema.String, Schema.Number]),
      ["a", "b"],
      false,
    ],
    "a first element of a list": [Schema.TupleWithRest(Schema.Tuple([Schema.Number]), [Schema.String]), ["a"], false],
    "two members where one is allowed": [
      Schema.Union([Schema.String, Schema.String.check(Schema.isMaxLength(3))], { mode: "oneOf" }),
      "x",
      false,
    ],
    "a record": [Schema.Record(Schema.String, Schema.Number), { a: "x" }, false],
    "a list of bounded length": [Schema.Array(Schema.Number).check(Schema.isMaxLength(1)), [1, 2], false],
    "an empty struct": [Schema.Struct({}), "x", true],
  };
  for (const [name, [schema, value, expected]] of Object.entries(odd)) {
    it(name, () => {
      assert.strictEqual(Schema.is(schema)(value), expected, "the schema's own answer");
      assert.strictEqual(shapeOf(schema)(value), expected);
    });
  }
});

/** A life with every field that an entry can have. */
const full = (): ReadonlyArray<RunRecord.Entry> => [
  ...E.life("r"),
  started({
    budget: { ...defaultBudget, max_outage_ms: "forever", max_wasted_tokens: 1 },
    policy: "p",
    transcript: "t",
  }),
  entry({
    ...E.attempt(2, "continue"),
    request: "continue",
    run: freshRun,
    route: "b",
    seam: { at: 3, proof: "anchor" },
  }),
  { _tag: "RunWaited", waited_ms: 1, wait: { for: "path", since: 1, until: 2 } },
  E.joined(1, 3),
  E.raised(1, { tools: [E.call("settled")], counters: { ...counters, input_tokens: 1, suspended_ms: 0.5 } }),
  { _tag: "CallHandedOver", attempt: 1, call: "0.0", id: "c", tool: "bash" },
  { _tag: "CallJudged", attempt: 1, call: "0.0", tool: "bash", verdict: "it_ran", by: "person" },
  E.opened("r", 1),
  E.asked("r", 1),
  { _tag: "RunParked", reason: "question" },
  { _tag: "RunResumed" },
  E.ended(),
];

/** The record of the entries that fit. */
const fold = (entries: ReadonlyArray<RunRecord.Entry>): RunRecord.RunRecord | undefined => {
  let record: RunRecord.RunRecord | undefined;
  for (const it of entries) {
    const next = RunRecord.apply(record, it);
    if (typeof next !== "string") record = next;
  }
  return record;
};

const wrongs = [
  Number.NaN,
  -1,
  1.5,
  1e308,
  Number.POSITIVE_INFINITY,
  "x".repeat(129),
  "",
  "x",
  null,
  undefined,
  true,
  [],
  {},
  0,
];

/** Replaces a part of a value with another value. */
const damage = (value: unknown, random: () => number): unknown => {
  const isLeaf = typeof value !== "object" || value === null || Object.keys(value).length === 0;
  if (isLeaf || random() < 0.1) return wrongs[Math.floor(random() * wrongs.length)];
  const keys = Object.keys(value).filter((key) => key !== "_tag");
  const key = keys[Math.floor(random() * keys.length)];
  if (key === undefined) return value;
  if (Array.isArray(value)) return value.with(Number(key), damage(value[Number(key)], random));
  return { ...value, [key]: damage((value as Readonly<Record<string, unknown>>)[key], random) };
};
