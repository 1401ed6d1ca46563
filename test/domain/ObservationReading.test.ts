/**
 * Reads an observation with each value of a table in each of its fields, and compares the whole result.
 */
import { assert, describe, it } from "@effect/vitest";
import { labelCharactersMax } from "../../src/domain/Limits.ts";
import * as Observation from "../../src/domain/Observation.ts";
import { count, ObservationError, read, readCursor } from "../../src/domain/ObservationReading.ts";

const long = "x".repeat(labelCharactersMax + 1);
const call = { choice: 0, ordinal: 1, executor: "provider", phase: "settled" } as const;
const whole = {
  progress: "output",
  shows: "text",
  quiet: true,
  keep_alive: true,
  characters: 1,
  calls: [{ ...call, id: "c", tool: "look", input: "{}" }],
  terminal: true,
  text_before_calls: true,
  terminal_at_end: true,
  closes: "later",
  stores: true,
  finish: "stop",
  failure: { kind: "empty" },
  usage: { input_tokens: 1, output_tokens: 2 },
};

/** Replaces the value at a path; `undefined` removes it. */
const withValue = (base: object, [key = "", ...rest]: ReadonlyArray<string>, value: unknown): object => {
  const inner = rest.length === 0 ? value : withValue(Reflect.get(base, key), rest, value);
  const own = Array.isArray(base) ? base.map((it, at) => (String(at) === key ? inner : it)) : { ...base, [key]: inner };
  if (inner === undefined && !Array.isArray(own)) Reflect.deleteProperty(own, key);
  return own;
};

// The values are typed by hand: an observer in plain JavaScript returns any of them.
const readAny = (given: unknown) => read(given as Observation.Observation);

/** Valid values of a field, invalid ones with their repair, and what the refusal of another one says. */
interface Field {
  readonly path: string;
  readonly valid: ReadonlyArray<unknown>;
  readonly repaired?: ReadonlyArray<readonly [given: unknown, read: unknown]>;
  readonly expected: string;
  readonly isOptional?: boolean;
  /** Values that are refused in addition to those that no field accepts. */
  readonly refused?: ReadonlyArray<unknown>;
}

const flag = { valid: [true, false], expected: "a boolean", refused: [0, 1, "true"] };
const token = {
  valid: [0, 7, Number.MAX_SAFE_INTEGER],
  repaired: [
    [-1, 0],
    [1.5, 1],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER],
    [null, undefined],
  ],
  expected: "a number",
  isOptional: true,
  refused: ["1", true],
} as const;
const index = { valid: [0, 1, 5], expected: "a whole number, not below 0", refused: [-1, 1.5, Number.NaN, "0"] };
const text = { valid: ["", "a", long], expected: "a string", isOptional: true, refused: [5, true] };
const fields: ReadonlyArray<Field> = [
  {
    path: "progress",
    valid: ["none", "started", "reasoning", "output"],
    expected: '"none" | "started" | "reasoning" | "output"',
    refused: ["text", ""],
  },
  {
    path: "shows",
    valid: ["nothing", "reasoning", "text"],
    expected: '"nothing" | "reasoning" | "text"',
    refused: ["output"],
  },
  { path: "quiet", ...flag, repaired: [[undefined, false]] },
  { path: "keep_alive", ...flag, repaired: [[undefined, false]] },
  { path: "terminal", ...flag, repaired: [[undefined, false]] },
  { path: "text_before_calls", ...flag, isOptional: true },
  { path: "terminal_at_end", ...flag, isOptional: true },
  { path: "stores", ...flag, isOptional: true },
  {
    path: "characters",
    valid: [0, 1, Number.MAX_SAFE_INTEGER],
    repaired: [
      [undefined, 0],
      [null, 0],
      [-1, 0],
      [1.5, 1],
      [Number.NaN, 0],
      [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER],
    ],
    expected: "a number",
    refused: ["1", true],
  },
  { path: "calls", valid: [[], [call], [call, call]], expected: "a list of call signals", refused: [{}, "[]"] },
  { path: "calls.0", valid: [call], expected: "an object", refused: ["call", 1] },
  { path: "calls.0.choice", ...index },
  { path: "calls.0.ordinal", ...index },
  { path: "calls.0.executor", valid: ["runtime", "provider"], expected: '"runtime" | "provider"', refused: ["model"] },
  {
    path: "calls.0.phase",
    valid: ["input_started", "input_complete", "ready", "settled"],
    expected: '"input_started" | "input_complete" | "ready" | "settled"',
    refused: ["dispatched"],
  },
  { path: "calls.0.id", ...text },
  { path: "calls.0.tool", ...text },
  { path: "calls.0.input", ...text },
  {
    path: "closes",
    valid: ["later", "required", "now"],
    expected: '"later" | "required" | "now"',
    isOptional: true,
    refused: ["soon"],
  },
  {
    ...text,
    path: "finish",
    valid: ["", "stop", long.slice(1)],
    repaired: [[long, long.slice(1)]],
  },
  { path: "usage", valid: [{}, whole.usage], expected: "an object", isOptional: true, refused: ["usage", 1] },
  { path: "usage.input_tokens", ...token },
  { path: "usage.output_tokens", ...token },
];

const kindOf = (given: unknown): string =>
  given === undefined
    ? "nothing"
    : typeof given === "number" || given === null
      ? String(given)
      : Array.isArray(given)
        ? "a list"
        : typeof given === "string"
          ? "another string"
          : `a value of type ${typeof given}`;

describe("an observation", () => {
  for (const { expected, isOptional = false, path, refused = [], repaired = [], valid } of fields) {
    const keys = path.split(".");
    const label = path.replace(/\.(\d)/, "[$1]");
    const given = (value: unknown) => withValue(whole, keys, value);

    it(`with a valid ${label} is returned unchanged`, () => {
      for (const value of isOptional ? [...valid, undefined] : valid) {
        const observation = given(value);
        assert.strictEqual<object>(readAny(observation), observation, String(value));
        // Another invalid field causes a repair, which keeps the valid one.
        const other = path === "characters" ? { quiet: undefined } : { characters: 1.5 };
        const odd = { ...observation, ...other };
        const mended = path === "characters" ? { quiet: false } : { characters: 1 };
        assert.deepStrictEqual<object>(readAny(odd), { ...observation, ...mended }, String(value));
      }
    });

    it(`with an invalid ${label} is repaired or refused by name`, () => {
      for (const [value, read] of repaired)
        assert.deepStrictEqual<object>(readAny(given(value)), given(read), String(value));
      const mendable = new Set([...repaired.map(([value]) => value), ...(isOptional ? [undefined] : [])]);
      // A list is a valid list of calls, and a usage without counts.
      const lists = path === "calls" || path === "usage" ? [] : [[]];
      const foreign = [undefined, null, () => 1, ...lists, ...refused].filter((value) => !mendable.has(value));
      for (const value of foreign) {
        const error = refusal(() => readAny(given(value)));
        assert.deepInclude(error, {
          reason: value === undefined ? "missing_field" : "bad_value",
          field: label,
          message: `${label}: expected ${expected}, got ${kindOf(value)}`,
        });
      }
    });
  }

  const refusal = (use: () => unknown): ObservationError => {
    try {
      use();
    } catch (error) {
      if (error instanceof ObservationError) return error;
    }
    return assert.fail("it is read");
  };

  it("that is not an object is refused", () => {
    for (const value of [undefined, null, 1, "text", [], () => 1])
      assert.strictEqual(
        refusal(() => readAny(value)).message,
        `observation: expected an object, got ${kindOf(value)}`,
      );
  });

  it("with an invalid failure keeps the most restrictive reading of it, and a valid failure as it is", () => {
    const valid = { ...whole, failure: { kind: "stalled", clock: "idle" } };
    assert.strictEqual<object>(readAny(valid), valid);
    for (const failure of [null, "empty", { kind: "stalled", clock: "long" }, { kind: "else" }])
      assert.deepStrictEqual<object>(readAny({ ...whole, failure }), {
        ...whole,
        failure:
          (failure as { readonly kind?: string } | null)?.kind === "stalled"
            ? { kind: "stalled", clock: "run" }
            : { kind: "unknown" },
      });
  });

  it("names the second call if that is the invalid one", () => {
    const error = refusal(() => readAny({ ...whole, calls: [call, { ...call, tool: 5 }] }));
    assert.strictEqual(error.message, "calls[1].tool: expected a string, got 5");
  });
});

describe("a count", () => {
  it("is the nearest natural number that JSON can hold", () => {
    const max = Number.MAX_SAFE_INTEGER;
    const counts: ReadonlyArray<readonly [number, number]> = [
      [0, 0],
      [-0.5, 0],
      [0.9, 0],
      [1, 1],
      [max, max],
      [max + 1, max],
      [Number.NEGATIVE_INFINITY, 0],
    ];
    for (const [given, expected] of counts) assert.strictEqual(count(given), expected, String(given));
  });
});

describe("a cursor", () => {
  it("is a string, or absent", () => {
    assert.deepStrictEqual(
      ["", "c", null, undefined].map((it) => readCursor(it)),
      ["", "c", undefined, undefined],
    );
    // Plain JavaScript passes this.
    assert.throws(() => readCursor(5 as unknown as string), TypeError, "cursor: expected a string or undefined");
  });
});

describe("the ready-made observations", () => {
  it("say exactly what their names promise", () => {
    const none = {
      progress: "started",
      shows: "nothing",
      quiet: false,
      keep_alive: false,
      characters: 0,
      calls: [],
      terminal: false,
    };
    assert.deepStrictEqual<object>(
      {
        none: Observation.none,
        lifecycle: Observation.lifecycle,
        ping: Observation.ping,
        text: Observation.text(3),
        reasoning: Observation.reasoning(4),
        terminal: Observation.terminal("stop"),
        failed: Observation.failed({ kind: "empty" }),
        calls: Observation.calls([call]),
      },
      {
        none,
        lifecycle: none,
        ping: { ...none, quiet: true, keep_alive: true },
        text: { ...none, progress: "output", shows: "text", characters: 3 },
        reasoning: { ...none, progress: "reasoning", shows: "reasoning", characters: 4 },
        terminal: { ...none, terminal: true, finish: "stop" },
        failed: { ...none, failure: { kind: "empty" } },
        calls: { ...none, progress: "output", calls: [call] },
      },
    );
    assert.deepStrictEqual(
      (["none", "started", "reasoning", "output"] as const).map((progress) =>
        Observation.isProgress({ ...Observation.none, progress }),
      ),
      [false, false, true, true],
    );
  });
});
