/**
 * Measures what more processes behind one port give: streams a second of `serve --workers N` against those of one process.
 *
 * Client and provider take cores of their own, so a small machine shows less than the workers could give. Beside what was
 * measured stands what CPU alone allows: each process on a core of its own is as fast as the busiest of them.
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

const rateOf = async (contender: Contender, cores: number): Promise<Rate> => {
  const before = cpuNsOfEach(contender.pid);
  const measured = await playBurst(contender, "chat", burst);
  const spent = [...cpuNsOfEach(contender.pid)].map(([pid, ns]) => ns - (before.get(pid) ?? 0));
  return { measured, allowed: allowedBy(spent, burst.streams, cores) };
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
  const one = await gateway("one process", upstream, "file", flags, "every");
  const several = await gateway("workers", upstream, "file", [...flags, "--workers", String(options.workers)], "every");
  const both = [
    { contender: one, cores: 1, rates: [] as Rate[] },
    { contender: several, cores: options.workers, rates: [] as Rate[] },
  ] as const;
  for (const { contender } of both) for (let times = 0; times < 2; times += 1) await warmUp(contender, "chat");
  for (let round = 0; round < options.rounds; round += 1)
    for (const { contender, cores, rates } of orderOf(both, round)) rates.push(await rateOf(contender, cores));
  for (const { contender } of both) await contender.end();
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
