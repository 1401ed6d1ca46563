/**
 * Holds what the bench of the gateway computes: its streams are whole, its rounds fair, its ratios and verdicts right.
 */
import { assert, describe, it } from "@effect/vitest";
import { orderOf, ratios, valuesOf } from "../../scripts/bench/gateway/CpuRounds.ts";
import {
  cpuTitle,
  figuresOf,
  heldTitle,
  lingerFigureOf,
  lingerTitle,
} from "../../scripts/bench/gateway/GatewayFigures.ts";
import { keptOf, lingerRow } from "../../scripts/bench/gateway/Linger.ts";
import { read } from "../../scripts/bench/gateway/Options.ts";
import { latenessRows, lossRows, type Measured, memoryRows, relativeTo } from "../../scripts/bench/gateway/PeerRows.ts";
import { onCore } from "../../scripts/bench/gateway/ProcessMeter.ts";
import { listing, selfTimes } from "../../scripts/bench/gateway/Profile.ts";
import { flagsOf, liveFile, liveMemory, nameOf, settingsOf, streamsOf } from "../../scripts/bench/gateway/Settings.ts";
import { type Protocol, protocolOf, stamp, stampsIn, wires } from "../../scripts/bench/gateway/Wires.ts";
import { allowedBy } from "../../scripts/bench/gateway/Workers.ts";
import type { Row } from "../../scripts/bench/Row.ts";
import { read as figuresOfFile } from "../../scripts/scale/Figures.ts";
import * as AnthropicMessages from "../../src/provider/anthropic/Decode.ts";
import * as Gemini from "../../src/provider/gemini/Decode.ts";
import * as OpenAiChat from "../../src/provider/openai-chat/Decode.ts";
import * as OpenAiResponses from "../../src/provider/openai-responses/Decode.ts";
import * as Decoder from "../../src/provider/stream/Decoder.ts";

const decoders = {
  chat: () => Decoder.make(OpenAiChat.protocol),
  responses: () => Decoder.make(OpenAiResponses.protocol),
  anthropic: () => Decoder.make(AnthropicMessages.protocol),
  gemini: () => Decoder.make(Gemini.protocol),
};

const names: ReadonlyArray<Protocol> = ["chat", "responses", "anthropic", "gemini"];

describe("the streams of the bench's provider", () => {
  const whole = (name: Protocol): string =>
    wires[name].begin + [1n, 2n, 3n].map((ns, at) => wires[name].delta(stamp(ns), at)).join("") + wires[name].end(3);

  for (const name of names) {
    it(`are whole to the decoder of ${name}, and broken without their end`, () => {
      const [decoder, cut] = [decoders[name](), decoders[name]()];
      decoder.push(new TextEncoder().encode(whole(name)));
      assert.isUndefined(decoder.failure);
      assert.isTrue(decoder.end().end.complete);
      cut.push(new TextEncoder().encode(whole(name).slice(0, -wires[name].end(3).length)));
      assert.isFalse(cut.end().end.complete);
    });

    it(`say when each delta of ${name} was written, once`, () => {
      const deltas = wires[name].begin + wires[name].delta(stamp(7n), 0) + wires[name].delta(stamp(8n), 1);
      assert.deepStrictEqual(stampsIn(deltas), [7, 8]);
      assert.strictEqual(stamp(7n).length, stamp(123_456_789_012_345n).length);
    });

    it(`of ${name} are known by the path that they are asked for under`, () => {
      assert.strictEqual(protocolOf(wires[name].path), name);
    });
  }
});

describe("rounds", () => {
  it("give each contender each place of the order equally often", () => {
    const places = new Map<string, Array<number>>();
    for (let round = 0; round < 6; round += 1)
      for (const [place, name] of orderOf(["a", "b", "c"], round).entries())
        places.set(name, [...(places.get(name) ?? []), place].toSorted());
    for (const found of places.values()) assert.deepStrictEqual(found, [0, 0, 1, 1, 2, 2]);
  });

  it("compare a contender with another of the same round only", () => {
    const rounds = [new Map([["a", 2], ["b", 1]]), new Map([["a", 9]]), new Map([["a", 30], ["b", 10]])]; // biome-ignore format: a table
    assert.deepStrictEqual(ratios(rounds, "a", "b"), [2, 3]);
    assert.deepStrictEqual(valuesOf(rounds, "a"), [2, 9, 30]);
  });

  it("read the time on a core of a thread's schedstat", () => {
    assert.strictEqual(onCore("1476308 523993 4\n"), 1476308);
  });
});

describe("what is later than direct", () => {
  const measured = (name: string, ms: number, perSecond: number, rssKib: number): Measured => ({
    name,
    late: { heads: [ms], bare: [ms], firsts: [ms], events: [ms] },
    perSecond: [perSecond],
    memory: { rssKib },
  });
  const plain = measured("plain node proxy", 2, 1000, 10);
  const direct = measured("direct", 1, 2000, 0);

  it("is counted against what the plain proxy adds, and not at all where that adds nothing", () => {
    assert.strictEqual(relativeTo(4, 1, 2), 3);
    assert.isUndefined(relativeTo(4, 1, 1));
  });

  for (const { expected, ms } of [
    { ms: 2.5, expected: "met" },
    { ms: 2.6, expected: "missed" },
  ]) {
    it(`is ${expected} if it is ${(ms - 1).toFixed(1)} times as much at p50 and p99`, () => {
      const own = measured(nameOf(liveFile), ms, 500, 20);
      const verdicts = latenessRows(own, [direct, plain, own]).map((row) => row.verdict);
      assert.deepStrictEqual(verdicts, [expected, undefined, expected, undefined]);
    });
  }

  it("stands among the losses, with fewer streams a second and more memory", () => {
    const own = measured(nameOf(liveFile), 3, 500, 20);
    assert.deepStrictEqual(
      lossRows([direct, plain, own]).map(({ value, what }) => `${what}: ${value}`),
      [
        "to direct: head +2.00 · +2.00 ms, head, content 20 ms after it +2.00 · +2.00 ms, first content +2.00 · +2.00 ms, each event +2.00 · +2.00 ms, 4.0 times fewer streams a second, 20.0 KiB more resident a stream",
        "to plain node proxy: head +1.00 · +1.00 ms, head, content 20 ms after it +1.00 · +1.00 ms, first content +1.00 · +1.00 ms, each event +1.00 · +1.00 ms, 2.0 times fewer streams a second, 10.0 KiB more resident a stream",
      ],
    );
  });

  it("has no row of memory where none was looked at", () => {
    assert.deepStrictEqual(memoryRows({ ...direct, memory: {} }), []);
  });
});

describe("the figures of the scale tables in docs/bench.md", () => {
  const row = (what: string, numbers: Record<string, number>): Row => ({
    what,
    value: "",
    bar: undefined,
    verdict: undefined,
    numbers,
  });
  const [memory, file] = [nameOf(liveMemory), nameOf(liveFile)];
  const others = {
    name: cpuTitle("gemini"),
    rows: [row(`a stream of 20 in a burst: ${memory}`, { own: 1 })],
  };
  const cpu = {
    name: cpuTitle("chat"),
    rows: [
      row(`an event, 50 paced streams of 150: ${file}`, { own: 2, ownMax: 2 }),
      row(`an event, 50 paced streams of 150: ${memory}`, { own: 51.4, ownMax: 80.2 }),
      row(`an event, 300 paced streams of 150: ${memory}`, { own: 3, ownMax: 3 }),
      row(`a stream of 20 in a burst: ${memory}`, { own: 750.4, ownMax: 900.6 }),
      row(`a stream of 20 in one piece: ${memory}`, { own: 4, ownMax: 4 }),
    ],
  };
  const held = {
    name: heldTitle(1000),
    rows: [row("nginx", { rssKib: 5 }), row(memory, { rssKib: 6 }), row(file, { rssKib: 23.64, heapKib: 33.64 })],
  };

  it("are the middle and the dearest round of Chat Completions in memory, and an open stream on a file", () => {
    assert.deepStrictEqual(figuresOf([others, cpu, held]), {
      pacedEventUs: { value: 51, worst: 80 },
      streamUs: { value: 750, worst: 901 },
      openKiB: { value: 33.6, worst: 33.6 },
    });
  });

  it("are those of the file of figures, and nothing where one of them was not measured", () => {
    const { measured } = figuresOfFile();
    for (const name of Object.keys(figuresOf([cpu, held]) ?? {})) assert.property(measured, name);
    assert.isUndefined(figuresOf([others, held]));
    assert.isUndefined(figuresOf([cpu]));
  });
});

describe("a run that lingers", () => {
  it("keeps for each value the runs that are more than half way between before and after", () => {
    const of = (heap: number, outside: number) => ({ heap, outside });
    assert.deepStrictEqual(keptOf(of(1_000, 100), of(1_700, 600), of(1_400, 300), 10), of(50, 40));
  });

  it("has a figure of what stands beside its bytes, of long runs: the middle of the rounds and the dearest", () => {
    const round = (heap: number) => ({ heap: heap * 1_024, outside: 200 * 1_024, wire: 150 * 1_024 });
    const rows = [lingerRow(20, [round(1), round(1), round(1)]), lingerRow(500, [round(9), round(10), round(30)])];
    assert.strictEqual(
      rows[1]?.value,
      "210.0 KiB (209.0–230.0), 10.0 of it on the heap and 200.0 outside; 60.0 in addition to the bytes of its response",
    );
    assert.deepStrictEqual(lingerFigureOf([{ name: lingerTitle, rows }]), { lingerKiB: { value: 60, worst: 80 } });
    assert.isUndefined(lingerFigureOf([{ name: lingerTitle, rows: rows.slice(0, 1) }]));
    assert.isUndefined(lingerFigureOf([]));
    assert.property(figuresOfFile().measured, "lingerKiB");
  });
});

describe("workers", () => {
  it("are as fast as the busiest of them, or as all of them share the cores", () => {
    assert.strictEqual(allowedBy([1e9, 3e9], 6, 2), 2);
    assert.strictEqual(allowedBy([1e9, 1e9, 1e9], 6, 2), 4);
  });
});

describe("a profile", () => {
  it("is listed by part, by function and by file, without what is idle", () => {
    const frame = (id: number, functionName: string, url: string, children: ReadonlyArray<number> = []) => ({
      id,
      children,
      callFrame: { functionName, url, lineNumber: 4 },
    });
    const { files, functions, parts } = selfTimes({
      nodes: [
        frame(1, "(idle)", ""),
        frame(2, "run", "file:///a/node_modules/effect/dist/Effect.js"),
        frame(3, "", "file:///a/src/facts/Facts.ts", [5]),
        frame(4, "fold", "file:///a/src/facts/Facts.ts"),
        frame(5, "map", "file:///a/node_modules/effect/dist/Array.js"),
      ],
      samples: [1, 2, 3, 4, 4, 5],
      timeDeltas: [100, 1, 2, 3, 4, 5],
    });
    assert.deepStrictEqual(files, [
      { where: "src/facts/Facts.ts", us: 9 },
      { where: "effect/dist/Array.js", us: 5 },
      { where: "effect/dist/Effect.js", us: 1 },
    ]);
    assert.deepStrictEqual(parts, [
      { where: "attempt: facts and parts", us: 14 },
      { where: "Effect: fibers without our code above them", us: 1 },
    ]);
    assert.strictEqual(functions[0]?.where, "fold src/facts/Facts.ts:5");
    assert.match(
      listing("by file", files, 2, 1),
      /^by file: 7\.5 µs a unit\n 60\.0 % +4\.50 µs {2}src\/facts\/Facts\.ts$/,
    );
  });
});

describe("options", () => {
  it("choose what a run has time for, all with continue_text and linger but one", () => {
    const usual = read([]);
    assert.deepStrictEqual(usual.parts, ["cpu", "peers", "workers", "bodies", "linger"]);
    assert.deepStrictEqual(
      settingsOf("chat", usual).map(({ seam }) => seam),
      [true, true, true, false],
    );
    assert.deepStrictEqual(streamsOf("chat", usual), [50, 300]);
    assert.strictEqual(settingsOf("gemini", read(["--full"])).length, 8);
  });

  it("name one line", () => {
    const one = read(["--only", "anthropic", "--store", "memory", "--serve=--access-log off"]);
    assert.deepStrictEqual(one.parts, ["cpu"]);
    const settings = settingsOf("anthropic", one);
    assert.deepStrictEqual(settings.map(nameOf), ["gateway, live, memory"]);
    assert.include(flagsOf(settings[0] ?? liveFile, one).join(" "), "--linger-ms 60000 --access-log off");
  });

  it("that are wrong are told", () => {
    assert.throws(() => read(["--only", "chta"]), /--only: expected cpu, .*, got "chta"/);
    assert.throws(() => read(["--rounds", "0"]), /--rounds: expected an integer ≥ 1/);
  });
});
