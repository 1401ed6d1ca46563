/**
 * Measures what more processes behind one port give: streams a second of `serve --workers N` against those of one process.
 *
 * Client and provider take cores of their own, so a small machine shows less than the workers could give. Beside what was
 * measured stands what CPU alone allows: each process on a core of its own is as fast as the busiest of them.
 *
 * What a stream takes depends on what else the machine does and on how many streams a process has at one time, which share turns and
 * commits. So the CPU of one process is that of N which have nothing to do with each other, asked at the same moment: each has as many
 * streams as a worker has, beside as many busy processes. What is left between the two is what workers cost that share a port, a store and
 * a bus, and whether connections are spread evenly over them.
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

/** What a round says of one of both: streams a second that were measured, and those that CPU allows. */
interface Rate {
  readonly measured: number;
  readonly allowed: number;
}

/**
 * Streams a second that CPU allows: on so many cores no more than all processes together can, and no more than the busiest can
 * on one.
 *
 * @param spent nanoseconds of CPU of each process
 */
export const allowedBy = (spent: ReadonlyArray<number>, streams: number, cores: number): number => {
  const all = spent.reduce((sum, one) => sum + one, 0);
  return streams / (Math.max(...spent, all / cores) / 1e9);
};

/** Nanoseconds of CPU of each process of a contender while something is played. */
const spentOf = async (contender: Contender, playing: () => Promise<unknown>): Promise<ReadonlyArray<number>> => {
  const before = cpuNsOfEach(contender.pid);
  await playing();
  return [...cpuNsOfEach(contender.pid)].map(([pid, ns]) => ns - (before.get(pid) ?? 0));
};

/** The same load for each process. */
const burstOf = (processes: number): Burst => ({
  ...burst,
  streams: processes * burst.streams,
  concurrent: processes * burst.concurrent,
});

/** One process: what it gives alone, and what CPU allows while it has as many others beside it as a worker has. */
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

/** Measures one process and N in turns. */
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
  // Each process has seen as many streams as any other before it is measured.
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
      rowOf("streams a second against one process, client and provider on the same cores", text("measured"), {
        ratio: ratioOf("measured"),
      }),
      {
        ...rowOf("what CPU allows where each process has a core", text("allowed"), { ratio: allowed }),
        bar: `≥ ${least.toFixed(2)} ×`,
        // This number has to be great, not small.
        verdict: verdict(-allowed, -least),
      },
    ],
  };
};
