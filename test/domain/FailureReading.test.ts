/**
 * Reads a failure of each kind with each value of a table in each of its fields, and compares the whole result.
 */
import { assert, describe, it } from "@effect/vitest";
import { type FailureKind, kinds } from "../../src/domain/Failure.ts";
import { read } from "../../src/domain/FailureReading.ts";
import { labelCharactersMax } from "../../src/domain/Limits.ts";

const longest = "x".repeat(labelCharactersMax);
const endlessMs = Number.MAX_SAFE_INTEGER;
const print = { name: "Error", code: "E1", depth: 2 };

/** A value that the failure keeps as it is. */
const kept = Symbol("kept");
/** A value that the failure loses. */
const dropped = Symbol("dropped");
type Row = readonly [given: unknown, read: unknown];

const flag: ReadonlyArray<Row> = [
  [true, kept],
  [false, kept],
  [1, false],
  ["true", false],
  [null, false],
  [undefined, dropped],
];
const label: ReadonlyArray<Row> = [
  ["E1", kept],
  [longest, kept],
  [`${longest}y`, longest],
  [5, "5"],
  [null, dropped],
  [{}, dropped],
  [undefined, dropped],
];

const common: Readonly<Record<string, ReadonlyArray<Row>>> = {
  retryable: flag,
  not_processed: flag,
  in_band: flag,
  code: label,
  retry_after_ms: [
    [0, kept],
    [1.5, kept],
    [endlessMs, kept],
    [-0, 0],
    [-1, endlessMs],
    [Number.NaN, endlessMs],
    [Number.POSITIVE_INFINITY, endlessMs],
    ["5", endlessMs],
    [null, endlessMs],
    [undefined, dropped],
  ],
  status: [
    [100, kept],
    [599, kept],
    [99, dropped],
    [600, dropped],
    [200.5, dropped],
    ["200", dropped],
    [undefined, dropped],
  ],
  fingerprint: [
    [print, kept],
    [{ name: longest, depth: 0 }, kept],
    [{ ...print, code: longest }, kept],
    [{ name: `${longest}y`, depth: 0 }, dropped],
    [{ ...print, code: `${longest}y` }, dropped],
    [{ ...print, code: 5 }, dropped],
    [{ ...print, code: undefined }, dropped],
    [{ ...print, name: undefined }, dropped],
    [{ ...print, name: 5 }, dropped],
    [{ code: "E1", depth: 0 }, dropped],
    [{ name: "Error" }, dropped],
    [{ ...print, depth: -1 }, dropped],
    [{ ...print, depth: 0.5 }, dropped],
    [{ ...print, secret: "s" }, dropped],
    [null, dropped],
    ["Error", dropped],
    [undefined, dropped],
  ],
};

const literal = (words: ReadonlyArray<string>, otherwise: unknown): ReadonlyArray<Row> => [
  ...words.map((word): Row => [word, kept]),
  ["else", otherwise],
  [5, otherwise],
  [null, otherwise],
  [undefined, otherwise],
];

/** The fields that only some kinds have. */
const own: Partial<Record<FailureKind, Readonly<Record<string, ReadonlyArray<Row>>>>> = {
  transport: {
    operation: literal(["connect", "write", "head", "body"], dropped),
    http2_code: label,
    reached_host_before: flag,
  },
  stalled: { clock: literal(["connect", "first_progress", "idle", "silence", "attempt", "run"], "run") },
  rejected: {
    reason: literal(
      [
        ...["auth", "permission", "quota", "invalid_request", "context_overflow", "payload_too_large"],
        ...["content_policy", "not_found"],
      ],
      "invalid_request",
    ),
  },
  protocol: { reason: literal(["damaged_frame", "oversize", "not_a_stream"], "oversize") },
  cancelled: { by: literal(["user", "lifecycle", "caller", "provider"], "caller") },
};

// The record has a key for each kind.
for (const kind of Object.keys(kinds) as ReadonlyArray<FailureKind>)
  describe(`a failure ${kind}`, () => {
    const fields = { ...common, ...own[kind] };
    const base = {
      kind,
      ...Object.fromEntries(Object.entries(own[kind] ?? {}).map(([name, rows]) => [name, rows[0]?.[0]])),
    };

    for (const [name, rows] of Object.entries(fields))
      it(`keeps each valid ${name}, and reads an invalid one as what permits least`, () => {
        for (const [given, expected] of rows) {
          const failure = { ...base, [name]: given };
          const result = read(failure);
          if (expected === kept) assert.strictEqual(result, failure);
          const value = expected === kept ? given : expected;
          const { [name]: _, ...others } = failure as Record<string, unknown>;
          assert.deepStrictEqual<object>(result, value === dropped ? others : { ...others, [name]: value });
          // A key that is unknown to the schema makes the whole failure a copy without it.
          assert.deepStrictEqual(read({ ...failure, unknown_key: 1 }), result);
          assert.notStrictEqual(read({ ...failure, other: undefined }), failure);
        }
      });

    it("keeps a valid -0 as 0 only, because JSON has no -0", () => {
      assert.isTrue(Object.is(Reflect.get(read({ ...base, retry_after_ms: -0 }), "retry_after_ms"), 0));
    });

    it("has no field of another kind", () => {
      for (const other of Object.values(own))
        for (const [name, rows] of Object.entries(other ?? {}))
          if (!(name in fields)) assert.deepStrictEqual<object>(read({ ...base, [name]: rows[0]?.[0] }), base);
    });
  });

describe("a value that is not a failure", () => {
  it("is unknown", () => {
    for (const value of [undefined, null, 1, "transport", [], {}, { kind: "else" }, { kind: 5 }, { kind: "toString" }])
      assert.deepStrictEqual(read(value), { kind: "unknown" });
  });
});
