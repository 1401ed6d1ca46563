/**
 * Measures the gain of several processes on one port: streams per second of `serve --workers N` against those of one process.
 *
 * Client and provider need cores too, so a small machine shows less than the workers could deliver. The second row therefore shows the
 * rate that CPU alone allows, if each process had its own core: the total is limited by the busiest process.
 *
 * The cost of a stream depends on the machine's load and on the number of concurrent streams in a process, which share turns and commits.
 * The baseline is therefore N independent processes under load at once: each has as many streams as a worker and as many busy neighbours.
 * The remaining difference is the cost of sharing a port, a store and a bus, and of an uneven distribution of connections.
 */
import { cpus } from "node:os";
import { median } from "../Median.ts";
import { type Row, verdict } from "../Row.ts";
import { type Burst, playBurst, warmUp } from "./Client.ts";
import { type Contender, gateway } from "./Contenders.ts";
import { orderOf } from "./CpuRounds.ts";
import type { Options } from "./Options.ts";
import { rowOf } from "./PeerRows.ts";
import { canRead, cpuNsOfEach } from "./ProcessMeter.ts";
import { flagsOf, liveFile } from "./Settings.ts";

const burst: Burst = { play: "burst", streams: 1500, events: 20, concurrent: 32 };
const bar = 0.85;

/** Result of a round for one contender: the measured streams per second, and the rate that CPU allows. */
interface Rate {
  readonly measured: number;
  readonly allowed: number;
}

/**
 * Streams per second that CPU allows: no more than all processes together can serve on the cores, and no more than the busiest can serve
 * on one.
 *
 * @param spent CPU time of each process, in nanoseconds
 */
export const allowedBy = (spent: ReadonlyArray<number>, streams: number, cores: number): number => {
  const all = spent.reduce((sum, one) => sum + one, 0);
  return streams / (Math.max(...spent, all / cores) / 1e9);
};

/** CPU time of each process of a contender during a load, in nanoseconds. */
const spentOf = async (contender: Contender, playing: () => Promise<unknown>): Promise<ReadonlyArray<number>> => {
  const before = cpuNsOfEach(contender.pid);
  await playing();
  return [...cpuNsOfEach(contender.pid)].map(([pid, ns]) => ns - (before.get(pid) ?? 0));
};

/** The same load per process. */
const burstOf = (processes: number): Burst => ({
  ...burst,
  streams: processes * burst.streams,
  concurrent: processes * burst.concurrent,
});

/** One process: its measured rate alone, and the rate that CPU allows if as many other processes are busy as with workers. */
const rateOfOne = async (apart: ReadonlyArray<Contender>): Promise<Rate> => {
  const [first] = apart;
  if (first === undefined) throw new Error("no process to measure");
  const measured = await playBurst(first, "chat", burst);
  const allowed = await Promise.all(
    apart.map(async (one) => allowedBy(await spentOf(one, () => playBurst(one, "chat", burst)), burst.streams, 1)),
  );
  return { measured, allowed: median(allowed) };
};

const rateOfWorkers = async (several: Contender, workers: number): Promise<Rate> => {
  const together = burstOf(workers);
  let measured = Number.NaN;
  const spent = await spentOf(several, async () => {
    measured = await playBurst(several, "chat", together);
  });
  return { measured, allowed: allowedBy(spent, together.streams, workers) };
};

/** Measures one process and N workers in turns. */
export const workers = async (
  upstream: string,
  options: Options,
): Promise<{ readonly name: string; readonly rows: ReadonlyArray<Row> }> => {
  const name = `${options.workers} workers on ${cpus().length} cores, live, file`;
  if (!canRead) return { name, rows: [rowOf("not measured", "CPU of each process is read from /proc", {})] };
  console.error(`${name} …`);
  const flags = flagsOf(liveFile, options);
  const apart: Array<Contender> = [];
  for (let n = 1; n <= options.workers; n += 1)
    apart.push(await gateway(`process ${n}`, upstream, "file", flags, "every"));
  const several = await gateway("workers", upstream, "file", [...flags, "--workers", String(options.workers)], "every");
  // Gives each process the same number of streams before it is measured.
  for (const one of apart) await warmUp(one, "chat");
  for (let times = 0; times < options.workers; times += 1) await warmUp(several, "chat");
  const both = [
    { rateNow: () => rateOfOne(apart), rates: [] as Rate[] },
    { rateNow: () => rateOfWorkers(several, options.workers), rates: [] as Rate[] },
  ] as const;
  for (let round = 0; round < options.rounds; round += 1)
    for (const { rateNow, rates } of orderOf(both, round)) rates.push(await rateNow());
  for (const contender of [...apart, several]) await contender.end();
  const ratioOf = (what: keyof Rate): number =>
    median(both[1].rates.map((rate, round) => rate[what] / (both[0].rates[round]?.[what] ?? Number.NaN)));
  const text = (what: keyof Rate): string =>
    `${ratioOf(what).toFixed(2)} ×, ${both.map(({ rates }) => median(rates.map((rate) => rate[what])).toFixed(0)).join(" and ")} a second`;
  const least = bar * options.workers;
  const allowed = ratioOf("allowed");
  return {
    name,
    rows: [
      rowOf("streams per second relative to one process, client and provider on the same cores", text("measured"), {
        ratio: ratioOf("measured"),
      }),
      {
        ...rowOf("the rate that CPU allows if each process has a core", text("allowed"), { ratio: allowed }),
        bar: `≥ ${least.toFixed(2)} ×`,
        // Negated, because `verdict` expects values that must be small.
        verdict: verdict(-allowed, -least),
      },
    ],
  };
};
