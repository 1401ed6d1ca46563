/**
 * Measures a gateway's CPU per relayed event and per stream, in turns with a plain proxy and with other proxies.
 */
import { setTimeout as pause } from "node:timers/promises";
import { median, spread } from "../Median.ts";
import { type Row, spreadText, verdict } from "../Row.ts";
import { type Burst, playBurst, playPaced, warmUp } from "./Client.ts";
import { type Contender, gateway, plainProxy } from "./Contenders.ts";
import { play, type Round, ratios, valuesOf } from "./CpuRounds.ts";
import { cpuTitle } from "./GatewayFigures.ts";
import type { Options } from "./Options.ts";
import { others, startInOrder } from "./Others.ts";
import { flagsOf, nameOf, type Setting, settingsOf, streamsOf } from "./Settings.ts";
import type { Protocol } from "./Wires.ts";

/** A load, its units of work, and the maximum cost of a unit relative to the plain proxy. */
interface Load {
  readonly what: string;
  /** Undefined if the design names no bar. */
  readonly bar?: number;
  readonly aim?: number;
  readonly units: number;
  /** Number of settings that play it; all by default. */
  readonly settings?: number;
  /** Duration at a contender that keeps up, in milliseconds; undefined if nothing is paced. */
  readonly pacedMs?: number;
  readonly play: (contender: Contender) => Promise<unknown>;
}

const everyMs = 20;
const burst: Burst = { play: "burst", streams: 250, events: 20, concurrent: 4 };

const loadsOf = (protocol: Protocol, options: Options): ReadonlyArray<Load> => [
  ...streamsOf(protocol, options).map((streams) => ({
    what: `an event, ${streams} paced streams of ${options.events}`,
    // At few streams the cost of a wake-up is shared by fewer events.
    bar: streams < 300 ? 1.6 : 1.4,
    units: streams * options.events,
    // Only --full plays many streams with every setting; otherwise only live ones in memory and on a file do.
    ...(options.size === "usual" && streams > 50 ? { settings: 2 } : {}),
    pacedMs: (options.events + 1) * everyMs,
    play: (contender: Contender) => playPaced(contender, protocol, { streams, events: options.events, everyMs }),
  })),
  {
    what: `a stream of ${burst.events} in a burst`,
    bar: 2.3,
    aim: 2,
    units: burst.streams,
    play: (contender: Contender) => playBurst(contender, protocol, burst),
  },
  {
    // A proxy that parses nothing treats one piece as one event, so the cost of decoding twenty shows most clearly here.
    what: `a stream of ${burst.events} in one piece`,
    units: burst.streams,
    play: (contender: Contender) => playBurst(contender, protocol, { ...burst, play: "piece" }),
  },
];

/** The first streams of a process, before its code is compiled. A contender can play them only once. */
const youngOf = (protocol: Protocol): Load => ({
  what: `a stream of ${burst.events}, the first ${youngStreams} of a process`,
  units: youngStreams,
  play: (contender) => playBurst(contender, protocol, { ...burst, streams: youngStreams }),
});

const youngStreams = 1000;

/** Time for work after the last byte, in milliseconds: a commit and the end of a run belong to the load too. */
const settleMs = 50;

/** Measures one contender once. @param took collects the durations of the load, in milliseconds */
const measure = async (contender: Contender, load: Load, took: Map<string, Array<number>>): Promise<number> => {
  const [before, started] = [await contender.cpu(), performance.now()];
  await load.play(contender);
  took.set(contender.name, [...(took.get(contender.name) ?? []), performance.now() - started]);
  await pause(settleMs);
  return ((await contender.cpu()) - before) / 1000 / load.units;
};

/** Maximum duration of a paced load, relative to its pace. */
const paceKept = 1.15;

/** A note for a contender that did not keep up. It handles several events at once, so each costs it less. */
const formatDelay = (load: Load, took: ReadonlyArray<number>): string => {
  const longer = load.pacedMs === undefined ? 1 : median(took) / load.pacedMs;
  return longer > paceKept ? `; it took ${longer.toFixed(1)} × as long as paced` : "";
};

/** @param isBarred true if the design has a bar for this row */
const rowOf = (
  load: Load,
  { isBarred, name }: { readonly name: string; readonly isBarred: boolean },
  against: string,
  rounds: ReadonlyArray<Round>,
  took: ReadonlyArray<number>,
): Row => {
  const ratio = spread(ratios(rounds, name, against));
  const [all, plain] = [spread(valuesOf(rounds, name)), median(valuesOf(rounds, against))];
  const own = all.median;
  const bar = isBarred ? load.bar : undefined;
  return {
    what: `${load.what}: ${name}`,
    value: `${spreadText(ratio, 2, "×")}, ${own.toFixed(0)} µs against ${plain.toFixed(0)}${formatDelay(load, took)}`,
    bar: bar === undefined ? undefined : `≤ ${bar} ×${load.aim === undefined ? "" : `, aim ${load.aim}`}`,
    verdict: bar === undefined ? undefined : verdict(ratio.median, bar),
    numbers: { ratio: ratio.median, min: ratio.min, max: ratio.max, own, ownMax: all.max, plain },
  };
};

/** Starts the other proxies. They speak only one protocol, and a quick run has no time for them. */
const othersOf = async (protocol: Protocol, upstream: string, { size }: Options): Promise<ReadonlyArray<Contender>> => {
  if (protocol !== "chat" || size === "quick") return [];
  // Missing ones are reported with the latencies.
  return (await startInOrder(others(upstream))).filter((one) => "url" in one);
};

const named = (setting: Setting) => ({ name: nameOf(setting), isBarred: setting.seam });

/** Measures one protocol. In every round each setting and the plain proxy take a turn. */
export const cpu = async (
  protocol: Protocol,
  upstream: string,
  options: Options,
): Promise<{ readonly name: string; readonly rows: ReadonlyArray<Row> }> => {
  const settings = settingsOf(protocol, options);
  const plain = await plainProxy(upstream);
  const beside = [plain, ...(await othersOf(protocol, upstream, options))];
  const contenders: Array<Contender> = [...beside];
  for (const setting of settings)
    contenders.push(await gateway(nameOf(setting), upstream, setting.store, flagsOf(setting, options)));
  const rowsFor = async (load: Load, times: number): Promise<ReadonlyArray<Row>> => {
    console.error(`${protocol}: ${load.what} …`);
    const took = new Map<string, Array<number>>();
    const playing = contenders.slice(0, beside.length + (load.settings ?? settings.length));
    const rounds = await play(playing, times, (contender) => measure(contender, load, took));
    const measured = [
      ...beside.slice(1).map(({ name }) => ({ name, isBarred: false })),
      ...settings.slice(0, load.settings).map(named),
    ];
    const rows = measured.map((row) => rowOf(load, row, plain.name, rounds, took.get(row.name) ?? []));
    for (const row of rows) console.error(`  ${row.what}: ${row.value}  ${row.verdict ?? ""}`);
    return rows;
  };
  const young = await rowsFor(youngOf(protocol), 1);
  for (const contender of contenders) await warmUp(contender, protocol);
  const all: Array<Row> = [];
  for (const load of loadsOf(protocol, options)) all.push(...(await rowsFor(load, options.rounds)));
  for (const contender of contenders) await contender.end();
  return { name: cpuTitle(protocol), rows: [...all, ...young] };
};
