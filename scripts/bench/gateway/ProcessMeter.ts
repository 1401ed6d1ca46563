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

/** Most readings of a family that changes while it is read. */
const readingsMax = 100;

/** How a family of processes is read; another one than this machine's in tests. */
export interface FamilyReading {
  readonly family: (pid: number) => ReadonlyArray<number>;
  /** Nanoseconds of CPU of one process that lives. */
  readonly living: (pid: number) => number;
  /** Nanoseconds of CPU of all that a process has started, that have ended, and that it has waited for. */
  readonly ended: (pid: number) => number;
}

const fromProc: FamilyReading = {
  family,
  living: (pid) =>
    sum(
      readdirSync(`/proc/${pid}/task`).map((task) =>
        onCore(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8")),
      ),
    ),
  ended: (pid) => endedNs(readFileSync(`/proc/${pid}/stat`, "utf8")),
};

/**
 * The same of a process whose children come and go, such as a PostgreSQL: what has ended goes on being counted. The kernel gives that in
 * hundredths of a second, user and system by themselves, so that up to 20 ms of it may come one reading late.
 *
 * A process that ends while it is read would be counted twice or not at all: then everything is read again.
 *
 * @throws Error where it changes at every reading
 */
export const cpuNsWithEnded = (pid: number, reading: FamilyReading = fromProc): number => {
  for (let tries = 0; tries < readingsMax; tries += 1) {
    const found = readingOf(pid, reading);
    if (found !== undefined) return found;
  }
  throw new Error(`the processes of ${pid} changed at each of ${readingsMax} readings`);
};

/** Undefined where one has begun or ended meanwhile. */
const readingOf = (pid: number, { ended, family, living }: FamilyReading): number | undefined => {
  try {
    const [before, endedBefore] = [family(pid), ended(pid)];
    const total = endedBefore + sum(before.map(living));
    const isSame = String(family(pid)) === String(before) && ended(pid) === endedBefore;
    return isSame ? total : undefined;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
};

/** A file of a process that has ended: it is missing, or can be opened and not read. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH");

/** Hundredths of a second that `stat` says a process's ended children had, in nanoseconds. */
export const endedNs = (stat: string): number => {
  // The name of the program stands in brackets and may have any character in it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system] = [Number(fields[13]), Number(fields[14])];
  return (user + system) * 1e7;
};

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
