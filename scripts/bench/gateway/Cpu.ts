/**
 * Measures the CPU that a gateway takes for a relayed event and for a whole stream, in turns with a plain proxy.
 */
import { setTimeout as pause } from "node:timers/promises";
import { median, spread } from "../Median.ts";
import { type Row, spreadText, verdict } from "../Row.ts";
import { type Burst, playBurst, playPaced } from "./Client.ts";
import { type Contender, gateway, plainProxy } from "./Contenders.ts";
import { play, type Round, ratios, valuesOf } from "./CpuRounds.ts";
import type { Options } from "./Options.ts";
import { flagsOf, nameOf, type Setting, settingsOf, streamsOf } from "./Settings.ts";
import { type Protocol, wires } from "./Wires.ts";

/** A load, how many units of work it is, and what a unit may cost against the plain proxy. */
interface Load {
  readonly what: string;
  readonly bar: number;
  readonly aim?: number;
  readonly units: number;
  readonly play: (contender: Contender) => Promise<unknown>;
}

const everyMs = 20;
const burst: Burst = { streams: 300, events: 20, concurrent: 16 };

const loadsOf = (protocol: Protocol, options: Options): ReadonlyArray<Load> => [
  ...streamsOf(protocol, options).map((streams) => ({
    what: `an event, ${streams} paced streams of ${options.events}`,
    bar: 1.8,
    units: streams * options.events,
    play: (contender: Contender) => playPaced(contender, protocol, { streams, events: options.events, everyMs }),
  })),
  {
    what: `a stream of ${burst.events} in a burst`,
    bar: 4,
    aim: 3,
    units: burst.streams,
    play: (contender: Contender) => playBurst(contender, protocol, burst),
  },
];

/** What comes after the last byte (a commit, the end of a run) belongs to the load as well. */
const settleMs = 50;

const measure = async (contender: Contender, load: Load): Promise<number> => {
  const before = await contender.cpu();
  await load.play(contender);
  await pause(settleMs);
  return ((await contender.cpu()) - before) / 1000 / load.units;
};

/** Code, connections and everything that is made at first use. */
const warmUp = async (contender: Contender, protocol: Protocol): Promise<void> => {
  await playBurst(contender, protocol, { ...burst, streams: 600 });
  await playPaced(contender, protocol, { streams: 50, events: 40, everyMs });
};

const rowOf = (load: Load, setting: Setting, against: string, rounds: ReadonlyArray<Round>): Row => {
  const name = nameOf(setting);
  const ratio = spread(ratios(rounds, name, against));
  const [own, plain] = [median(valuesOf(rounds, name)), median(valuesOf(rounds, against))];
  return {
    what: `${load.what}: ${name}`,
    value: `${spreadText(ratio, 2, "×")}, ${own.toFixed(0)} µs against ${plain.toFixed(0)}`,
    bar: setting.seam ? `≤ ${load.bar} ×${load.aim === undefined ? "" : `, aim ${load.aim}`}` : undefined,
    verdict: setting.seam ? verdict(ratio.median, load.bar) : undefined,
    numbers: { ratio: ratio.median, min: ratio.min, max: ratio.max, own, plain },
  };
};

/** Measures one protocol: every setting takes its turn beside the plain proxy in every round. */
export const cpu = async (
  protocol: Protocol,
  upstream: string,
  options: Options,
): Promise<{ readonly name: string; readonly rows: ReadonlyArray<Row> }> => {
  const settings = settingsOf(protocol, options);
  const plain = await plainProxy(upstream);
  const contenders: Array<Contender> = [plain];
  for (const setting of settings)
    contenders.push(await gateway(nameOf(setting), upstream, setting.store, flagsOf(setting)));
  for (const contender of contenders) await warmUp(contender, protocol);
  const rows: Array<Row> = [];
  for (const load of loadsOf(protocol, options)) {
    console.error(`${protocol}: ${load.what} …`);
    const rounds = await play(contenders, options.rounds, (contender) => measure(contender, load));
    const found = settings.map((setting) => rowOf(load, setting, plain.name, rounds));
    for (const row of found) console.error(`  ${row.what}: ${row.value}  ${row.verdict ?? ""}`);
    rows.push(...found);
  }
  for (const contender of contenders) await contender.end();
  return { name: `CPU of ${wires[protocol].title}, against a plain Node proxy`, rows };
};
