import { assert, describe, it } from "@effect/vitest";
import { Effect, Scheduler } from "effect";
import {
  firstSliceBytes,
  levelsMax,
  scanInTurns,
  sliceBytes,
  wordBytesMax,
} from "../../../../src/adapters/relay/form/JsonScan.ts";
import { compare, readIn, ToldText } from "./JsonScanCases.ts";
import { parsed } from "./JsonTexts.ts";

const bytesOf = (text: string): Uint8Array => Buffer.from(text, "utf8");

const endOf = (text: string | Uint8Array, slice = 1) => {
  const bytes = typeof text === "string" ? bytesOf(text) : text;
  return readIn(bytes, new ToldText(bytes), () => slice);
};

describe("The scanner of JSON", () => {
  it("takes for JSON what JSON.parse takes, and tells the same parts, however it is cut", () => {
    const { json, others } = compare(1, 8_001);
    assert.isAbove(json, 2_000);
    assert.isAbove(others, 2_000);
  });

  it("takes and refuses the edges of the grammar as JSON.parse does", () => {
    const texts = [
      ..."|{}|[]|0|-|-0|00|01|1.|.1|1.0|1e|1e+|1e+1|1E-0|+1|--1|0x1|1_0|Infinity|NaN|-Infinity|1 2|1,2".split("|"),
      ..."true|tru|truex|true1|truefalse|nul|null|nulll|[true,false]|[truefalse]|True".split("|"),
      ...'""|"|"\\"|"\\\\"|"\\u"|"\\u12"|"\\u123g"|"\\uABcd"|"\\x41"|"a|"\\ud800"|"\\"|"\\a"|"\\/"|"\t"|"\u007f"|"\u2028"'.split(
        "|",
      ),
      ..."[1,]|[,1]|[1 2]|[1]]|[[1]|[1}|{]|}|]|{1:2}|{'a':1}".split("|"),
      ...'{"a":1,}|{"a"}|{"a":}|{"a":1 "b":2}|{"a":1,,"b":2}|{,}|{"a":1}x|{"a" :\n1 }|{"a":{"b":[{}]}}|{"a":1]'.split(
        "|",
      ),
      ...[
        "\ufeff{}",
        "\ufeff\ufeff{}",
        "{}\ufeff",
        "{\ufeff}",
        "\u00a0{}",
        "{}\u0000",
        "\u000b{}",
        "\f{}",
        "//x\n{}",
        " \n\r\t{}\n ",
      ],
    ];
    for (const text of texts)
      for (const slice of [1, 2, 1_000])
        assert.strictEqual(
          endOf(text, slice),
          parsed(bytesOf(text)) === undefined ? "damaged" : "json",
          JSON.stringify(text),
        );
  });

  it("takes a long number, and one that is longer than its limit for damage", () => {
    for (const slice of [1, 7, sliceBytes]) {
      assert.strictEqual(endOf(`[${"1".repeat(wordBytesMax)}]`, slice), "json");
      assert.strictEqual(endOf(`[${"1".repeat(wordBytesMax + 1)}]`, slice), "damaged");
      assert.strictEqual(endOf("1".repeat(wordBytesMax + 1), slice), "damaged");
    }
  });

  it("takes damaged characters in a text, as a decoder does, and nowhere else", () => {
    const damaged = [[0xff], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xc0, 0x80], [0xed, 0xa0, 0x80]];
    for (const some of damaged) {
      assert.strictEqual(endOf(Uint8Array.from([0x22, ...some, 0x22])), "json");
      assert.strictEqual(endOf(Uint8Array.from([...some, 0x31])), "damaged");
      assert.strictEqual(endOf(Uint8Array.from([0x22, 0x5c, ...some, 0x22])), "damaged");
    }
  });

  it("reads as many levels as it may, and not one more", () => {
    const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}${close.repeat(levels)}`;
    assert.strictEqual(endOf(nested(levelsMax, "[", "]"), 999), "json");
    assert.strictEqual(endOf(nested(levelsMax + 1, "[", "]"), 999), "deep");
    assert.strictEqual(endOf(`{"a":${nested(levelsMax, "[", "]")}}`, 999), "deep");
    assert.strictEqual(endOf("[".repeat(1_000_000), sliceBytes), "deep");
  });

  it("lets others have their turn behind every slice, in a text and in blanks too", () => {
    const long = 12 * sliceBytes;
    const texts = [`"${"a".repeat(long)}"`, " ".repeat(long), `[${"{},".repeat(long / 3)}1]`];
    return Effect.gen(function* () {
      for (const text of texts) {
        const yields = { count: 0 };
        yield* Effect.provideService(scanInTurns(bytesOf(text), silent), Scheduler.Scheduler, counting(yields));
        assert.isAtLeast(yields.count, 10, text.slice(0, 9));
      }
    }).pipe(Effect.runPromise);
  });

  it("reads little in its first turn and twice as much in each further one: a cold process is slow to read", () =>
    Effect.gen(function* () {
      const ends: Array<number> = [];
      let at = 0;
      const isDone = () => {
        ends.push(at);
        return false;
      };
      const listener = { ...silent, scalar: (_: number, to: number) => (at = to), isDone };
      assert.strictEqual(yield* scanInTurns(bytesOf(`[${"1,".repeat(3 * sliceBytes)}1]`), listener), "json");
      const read = ends.map((end, index) => Math.round((end - (ends[index - 1] ?? 0)) / firstSliceBytes));
      assert.deepStrictEqual(read, [1, 2, 4, 8, ...read.slice(4).map(() => sliceBytes / firstSliceBytes)]);
      assert.isAtLeast(read.length, 8);
    }).pipe(Effect.runPromise));

  it("ends where its listener has heard enough", () =>
    Effect.gen(function* () {
      let heard = 0;
      const listener = { ...silent, scalar: () => (heard += 1), isDone: () => heard > 0 };
      const end = yield* scanInTurns(bytesOf(`[1,"${"a".repeat(9 * sliceBytes)}",2]`), listener);
      assert.deepStrictEqual([end, heard], ["done", 1]);
    }).pipe(Effect.runPromise));
});

const silent = { open: () => undefined, close: () => undefined, key: () => undefined, scalar: () => undefined };

/** Counts the turns that a fiber gives up. */
const counting = (yields: { count: number }): Scheduler.Scheduler => {
  const inner = new Scheduler.MixedScheduler();
  return {
    executionMode: inner.executionMode,
    shouldYield: (fiber) => inner.shouldYield(fiber),
    makeDispatcher: () => {
      const dispatcher = inner.makeDispatcher();
      return {
        scheduleTask: (task, priority) => {
          yields.count += 1;
          dispatcher.scheduleTask(task, priority);
        },
        flush: () => dispatcher.flush(),
      };
    },
  };
};
