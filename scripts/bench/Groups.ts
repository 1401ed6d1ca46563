/**
 * All rows of the bench with their bars, in the order in which they are measured and printed.
 */
import { adapters } from "./AdapterLines.ts";
import type { Pace } from "./Events.ts";
import { median, spread } from "./Median.ts";
import * as Processes from "./Processes.ts";
import { type Group, type Row, type Size, spreadText, verdict } from "./Row.ts";
import { sqlite } from "./SqliteLines.ts";

/** Maximum CPU per event of a run, relative to a raw `for await`. */
const cpuBar = 2;
/** Maximum for a source of arrays of 64. */
const arraysBar = 0.7;
/** Maximum heap of an idle run beyond a bare Effect Stream, in KiB. */
const idleHeapBar = 4;
/** Maximum CPU of all idle runs, in percent of a core. */
const idleCpuBar = 0.2;
/** Maximum difference that counts as the same heap, in KiB. Collections vary by about as much. */
const sameHeapBar = 64;
/** Maximum duration of one decision, in microseconds. */
const decideBar = 0.5;
/** Maximum delay of a stall's report after its deadline, in milliseconds. */
const stallBar = 50;
/** Maximum time from a break to the next request, in milliseconds. */
const nextRequestBar = 10;

/** Maximum CPU for arguments of four times the length, relative to the short ones. */
const argumentsBar = 8;

const idleRuns = 10_000;

const cpuLine = (what: string, contender: string, pace: Pace, deltas: number, bar?: number) => ({
  what,
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const rounds = size.quick ? 4 : 10;
    const results = await Processes.several(size.processes, "throughput", { contender, pace, deltas, rounds });
    const ratio = spread(results.map((it) => it.ratio));
    const ns = median(results.map((it) => it.ns));
    const raw_ns = median(results.map((it) => it.raw_ns));
    return [
      {
        what,
        value: `${spreadText(ratio, ratio.median < 10 ? 2 : 0, "×")}, ${ns.toFixed(0)} ns`,
        bar: bar === undefined ? undefined : `≤ ${bar} ×`,
        verdict: bar === undefined ? undefined : verdict(ratio.median, bar),
        numbers: { ratio: ratio.median, ratio_min: ratio.min, ratio_max: ratio.max, ns, raw_ns },
      },
    ];
  },
});

const saturated: Group = {
  name: "saturated",
  lines: [
    cpuLine("raw `for await` (against itself)", "raw", "saturated", 102_400),
    cpuLine("StreamProcessor.run, fromAsyncIterable of this package", "processor", "saturated", 102_400, cpuBar),
    cpuLine("StreamProcessor.run, Stream.fromAsyncIterable", "processor_effect", "saturated", 25_600),
    cpuLine("Stream.runForEach, fromAsyncIterable of this package", "ours", "saturated", 102_400),
    cpuLine("Stream.runForEach, Stream.fromAsyncIterable", "effect", "saturated", 25_600),
    cpuLine("Stream.timeoutOrElse, Stream.fromAsyncIterable", "timeout", "saturated", 12_800),
    cpuLine("AI SDK streamText", "ai_sdk", "saturated", 2_560),
  ],
};

const arrays: Group = {
  name: "arrays",
  lines: [
    cpuLine("StreamProcessor.run, arrays of 64, runForEachArray", "processor_arrays", "saturated", 102_400, arraysBar),
    cpuLine("Stream.runForEachArray, arrays of 64", "effect_arrays", "saturated", 102_400),
  ],
};

const paced: Group = {
  name: "paced",
  lines: [
    cpuLine("StreamProcessor.run, fromAsyncIterable of this package", "processor", "paced", 12_800, cpuBar),
    cpuLine("StreamProcessor.run, Stream.fromAsyncIterable", "processor_effect", "paced", 12_800),
    cpuLine("Stream.runForEach, fromAsyncIterable of this package", "ours", "paced", 12_800),
    cpuLine("Stream.runForEach, Stream.fromAsyncIterable", "effect", "paced", 12_800),
    cpuLine("Stream.timeoutOrElse, Stream.fromAsyncIterable", "timeout", "paced", 12_800),
    cpuLine("AI SDK streamText", "ai_sdk", "paced", 2_560),
  ],
};

const happyLine = (what: string, source: "direct" | "mapped") => ({
  what,
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const measured = { source, events: 20, runs: 1_000, rounds: size.quick ? 5 : 11 };
    const results = await Processes.several(size.processes, "happy", measured);
    const us = spread(results.map((it) => it.us));
    const stream_us = median(results.map((it) => it.stream_us));
    return [
      {
        what: `happy run of 20 events, memory, ${what}`,
        value: `${spreadText(us, 0, "µs")} of CPU, ${stream_us.toFixed(0)} the stream alone`,
        bar: undefined,
        verdict: undefined,
        numbers: { us: us.median, us_min: us.min, us_max: us.max, stream_us },
      },
    ];
  },
});

const happy: Group = {
  name: "happy",
  lines: [happyLine("fromAsyncIterable of this package", "direct"), happyLine("a stream that was mapped", "mapped")],
};

const idleLine = (what: string, source: "ours" | "effect", bars: boolean) => ({
  what,
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const processes = Math.min(3, size.processes);
    const watch_ms = bars ? (size.quick ? 3_000 : 10_000) : 0;
    const all = { source, runs: idleRuns, begin_within_ms: 0 };
    const own = await Processes.several(processes, "idle", { ...all, reader: "processor", watch_ms });
    const bare = await Processes.several(processes, "idle", { ...all, reader: "stream", watch_ms: 0 });
    const run = median(own.map((it) => it.bytes)) / 1024;
    const stream = median(bare.map((it) => it.bytes)) / 1024;
    const more = spread(own.map((it) => it.bytes / 1024 - stream));
    const heap: Row = {
      what: `heap of an idle run above a bare Effect Stream, ${what}`,
      value: `${spreadText(more, 1, "KiB")}, ${run.toFixed(1)} against ${stream.toFixed(1)}`,
      bar: bars ? `≤ ${idleHeapBar} KiB` : undefined,
      verdict: bars ? verdict(more.median, idleHeapBar) : undefined,
      numbers: { kib_more: more.median, kib_run: run, kib_stream: stream },
    };
    if (!bars) return [heap];
    const cpu = spread(own.map((it) => it.cpu_share * 100));
    return [
      heap,
      {
        what: `CPU of ${idleRuns.toLocaleString("en")} idle runs together`,
        value: spreadText(cpu, 2, "% of a core"),
        bar: `≤ ${idleCpuBar} %`,
        verdict: verdict(cpu.median, idleCpuBar),
        numbers: { percent: cpu.median },
      },
    ];
  },
});

/** Period in which the runs of the row below start, in milliseconds. Each has been silent since a different moment. */
const beginWithinMs = 10_000;

const spreadIdleLine = {
  what: "CPU of idle runs that began one after the other",
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const watch_ms = size.quick ? 3_000 : 10_000;
    const all = {
      reader: "processor",
      source: "ours",
      runs: idleRuns,
      begin_within_ms: beginWithinMs,
      watch_ms,
    } as const;
    const own = await Processes.several(Math.min(3, size.processes), "idle", all);
    const cpu = spread(own.map((it) => it.cpu_share * 100));
    return [
      {
        what: `CPU of ${idleRuns.toLocaleString("en")} idle runs that began within ${beginWithinMs / 1_000} s, during the first check of each`,
        value: spreadText(cpu, 2, "% of a core"),
        bar: undefined,
        verdict: undefined,
        numbers: { percent: cpu.median },
      },
    ];
  },
};

const idle: Group = {
  name: "idle",
  lines: [
    idleLine("fromAsyncIterable of this package", "ours", true),
    spreadIdleLine,
    idleLine("Stream.fromAsyncIterable", "effect", false),
  ],
};

const growth: Group = {
  name: "growth",
  lines: [
    {
      what: "heap and evidence after many deltas",
      run: async (size) => {
        const [few, many] = [100, 1_000_000];
        const processes = Math.min(3, size.processes);
        const results = await Processes.several(processes, "growth", { few, many, rounds: size.quick ? 2 : 4 });
        const more = spread(results.map((it) => median(it.more_bytes) / 1024));
        const evidence_few = Math.max(...results.map((it) => it.evidence_few));
        const evidence_many = Math.max(...results.map((it) => it.evidence_many));
        return [
          {
            what: "heap of a live run, 1,000,000 deltas against 100",
            value: spreadText(more, 1, "KiB more"),
            bar: `same (≤ ${sameHeapBar} KiB)`,
            verdict: verdict(more.median, sameHeapBar),
            numbers: { kib_more: more.median },
          },
          {
            what: "evidence records of that run",
            value: `${evidence_many} against ${evidence_few}`,
            bar: "same",
            verdict: evidence_many === evidence_few ? "met" : "missed",
            numbers: { evidence_few, evidence_many },
          },
        ];
      },
    },
  ],
};

const decide: Group = {
  name: "decide",
  lines: [
    {
      what: "`decide`",
      run: async (size) => {
        const results = await Processes.several(size.processes, "deciding", {
          times: size.quick ? 5_000 : 20_000,
          rounds: 7,
        });
        const mean = spread(results.map((it) => it.mean_us));
        const slowest_us = median(results.map((it) => it.slowest_us));
        return [
          {
            what: `\`decide\`, mean of ${results[0]?.inputs} inputs`,
            value: `${spreadText(mean, 2, "µs")}, slowest input ${slowest_us.toFixed(2)}`,
            bar: `≤ ${decideBar} µs`,
            verdict: verdict(mean.median, decideBar),
            numbers: { mean_us: mean.median, slowest_us },
          },
        ];
      },
    },
  ],
};

const latency: Group = {
  name: "latency",
  lines: [
    {
      what: "stall detection",
      run: async (size) => {
        const results = await Processes.several(size.processes, "stalls", {
          runs: 200,
          idle_ms: 500,
          apart_ms: 7,
        });
        const last = spread(results.map((it) => it.last));
        const middle = median(results.map((it) => it.median));
        const first = Math.min(...results.map((it) => it.first));
        return [
          {
            what: "report of a stall after its deadline, latest of 200 runs",
            value: `${spreadText(last, 1, "ms")}, median ${middle.toFixed(1)}, earliest ${first.toFixed(1)}`,
            bar: `≤ ${stallBar} ms`,
            verdict: first < 0 ? "missed" : verdict(last.median, stallBar),
            numbers: { last_ms: last.median, median_ms: middle, first_ms: first },
          },
        ];
      },
    },
    {
      what: "failure → next request",
      run: async (size) => {
        const runs = size.quick ? 100 : 400;
        const results = await Processes.several(size.processes, "next_request", { runs });
        const p99 = spread(results.map((it) => it.p99));
        const middle = median(results.map((it) => it.median));
        return [
          {
            what: `break → next request at the server, p99 of ${runs}`,
            value: `${spreadText(p99, 1, "ms")}, median ${middle.toFixed(1)}`,
            bar: `≤ ${nextRequestBar} ms`,
            verdict: verdict(p99.median, nextRequestBar),
            numbers: { p99_ms: p99.median, median_ms: middle },
          },
        ];
      },
    },
  ],
};

const argumentLine = (protocol: "openai-chat" | "openai-responses" | "anthropic-messages" | "google-gemini") => ({
  what: `arguments of a call, ${protocol}`,
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const measured = { protocol, short: 100_000, long: 400_000, rounds: size.quick ? 3 : 7 };
    const results = await Processes.several(Math.min(3, size.processes), "arguments", measured);
    const ratio = spread(results.map((it) => it.ratio));
    const ns = median(results.map((it) => it.ns));
    return [
      {
        what: `arguments of 400,000 characters against 100,000, ${protocol}`,
        value: `${spreadText(ratio, 1, "×")}, ${ns.toFixed(0)} ns a character`,
        bar: `≤ ${argumentsBar} ×`,
        verdict: verdict(ratio.median, argumentsBar),
        numbers: { ratio: ratio.median, ns },
      },
    ];
  },
});

const toolArguments: Group = {
  name: "arguments",
  lines: [
    argumentLine("openai-chat"),
    argumentLine("openai-responses"),
    argumentLine("anthropic-messages"),
    argumentLine("google-gemini"),
  ],
};

/** All groups. */
export const groups: ReadonlyArray<Group> = [
  saturated,
  arrays,
  paced,
  happy,
  idle,
  growth,
  toolArguments,
  decide,
  latency,
  sqlite,
  adapters,
];
