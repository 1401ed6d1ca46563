/**
 * Reads what processes have spent and hold from `/proc`, with all of their threads and the processes that they have started.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Whether this machine has it. */
export const canRead = process.platform === "linux";

const children = (pid: number): ReadonlyArray<number> =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" "))
    .filter((child) => child.trim() !== "")
    .map(Number);

/** A process and all that it has started, and those have started. */
export const family = (pid: number): ReadonlyArray<number> => [pid, ...children(pid).flatMap(family)];

/** Nanoseconds of CPU that all threads of a process and of those it has started were on a core. */
export const cpuNs = (pid: number): number => sum([...cpuNsOfEach(pid).values()]);

/** The same of each process on its own. */
export const cpuNsOfEach = (pid: number): ReadonlyMap<number, number> =>
  new Map(
    family(pid).map((member) => {
      const threads = readdirSync(`/proc/${member}/task`);
      return [
        member,
        sum(threads.map((task) => onCore(readFileSync(`/proc/${member}/task/${task}/schedstat`, "utf8")))),
      ];
    }),
  );

/** The first number of a `schedstat`: nanoseconds on a core. */
export const onCore = (schedstat: string): number => Number(schedstat.split(" ")[0]);

/** Resident memory of a process and of those it has started, in KiB. */
export const residentKib = (pid: number): number =>
  sum(
    family(pid).map((member) =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${member}/status`, "utf8"))?.[1] ?? Number.NaN),
    ),
  );

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0);
