/**
 * Reads CPU time and memory of processes from `/proc`, including all their threads and descendants.
 */
import { readdirSync, readFileSync } from "node:fs";

/** True if this machine has `/proc`. */
export const canRead = process.platform === "linux";

const children = (pid: number): ReadonlyArray<number> =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" "))
    .filter((child) => child.trim() !== "")
    .map(Number);

/** A process and all its descendants. */
export const family = (pid: number): ReadonlyArray<number> => [pid, ...children(pid).flatMap(family)];

/** CPU time of all threads of a process and its descendants, in nanoseconds. */
export const cpuNs = (pid: number): number => sum([...cpuNsOfEach(pid).values()]);

/** CPU time like `cpuNs`, for each process separately. */
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

/** Maximum readings of a family that changes while it is read. */
const readingsMax = 100;

/** The functions that read a family of processes. Tests replace them. */
export interface FamilyReading {
  readonly family: (pid: number) => ReadonlyArray<number>;
  /** CPU time of one live process, in nanoseconds. */
  readonly living: (pid: number) => number;
  /** CPU time of a process's ended children that it has waited for, in nanoseconds. */
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
 * CPU time like `cpuNs` for a process whose children come and go, for example PostgreSQL. Ended children stay counted. The kernel reports
 * those in hundredths of a second, separately for user and system time, so up to 20 ms may appear one reading late.
 *
 * A process that ends during the reading would be counted twice or not at all, so the reading is then repeated.
 *
 * @throws Error if the family changes at every reading
 */
export const cpuNsWithEnded = (pid: number, reading: FamilyReading = fromProc): number => {
  for (let tries = 0; tries < readingsMax; tries += 1) {
    const found = readingOf(pid, reading);
    if (found !== undefined) return found;
  }
  throw new Error(`the processes of ${pid} changed at each of ${readingsMax} readings`);
};

/** Undefined if a process started or ended meanwhile. */
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

/** True if a file belongs to a process that has ended: it is missing, or can be opened but not read. */
const isGone = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH");

/** CPU time of a process's ended children, from its `stat` in hundredths of a second, in nanoseconds. */
export const endedNs = (stat: string): number => {
  // The program's name is in parentheses and may contain any character.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system] = [Number(fields[13]), Number(fields[14])];
  return (user + system) * 1e7;
};

/** The first number of a `schedstat`: nanoseconds on a core. */
export const onCore = (schedstat: string): number => Number(schedstat.split(" ")[0]);

/** Resident memory of a process and its descendants, in KiB. */
export const residentKib = (pid: number): number =>
  sum(
    family(pid).map((member) =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${member}/status`, "utf8"))?.[1] ?? Number.NaN),
    ),
  );

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0);
