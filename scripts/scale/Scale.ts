/**
 * Computes the needs of a load from figures alone: cores, memory, traffic, writes, primaries, disk, money, and the limits it runs into.
 */
import type { Values } from "./Figures.ts";

/** A load: the number of open streams, and the number of runs that start and end per second. */
export interface Load {
  readonly streams: number;
  readonly runs: number;
}

/** The loads of the page. Each step is ten times the previous one. */
export const steps: ReadonlyArray<Load> = [2, 3, 4, 5].map((power) => ({
  runs: 10 ** power,
  streams: 10 ** (power + 1),
}));

const [daySeconds, monthHours] = [86_400, 730];
const [KiB, MiB, GiB] = [1_024, 1_024 ** 2, 1_024 ** 3];

/** The needs of the gateways. */
export interface Gateways {
  readonly events: number;
  /** Cores busy with events, and cores busy with starts, ends and records of runs. */
  readonly eventCores: number;
  readonly runCores: number;
  /** Cores with headroom, with one process each. */
  readonly processes: number;
  readonly openBytes: number;
  /** Number of lingering runs, the number that the processes have room for, and the bytes of those that fit. */
  readonly lingering: number;
  readonly lingerRoom: number;
  readonly lingerBytes: number;
  readonly memoryBytes: number;
  /** Bytes per second to the clients, and from them. */
  readonly bytesOut: number;
  readonly bytesIn: number;
}

/** Computes the needs of a load's gateways. */
export const gateways = ({ runs, streams }: Load, is: Values): Gateways => {
  const events = streams * is.eventsPerSecond;
  const eventCores = (events * is.pacedEventUs) / 1e6;
  const runCores = (runs * (is.streamUs + is.recordUs)) / 1e6;
  const processes = Math.ceil((eventCores + runCores) / is.utilisation);
  const openBytes = streams * is.openKiB * KiB;
  const runBytes = is.lingerKiB * KiB + (events / runs) * is.eventBytes;
  const lingering = runs * is.lingerSeconds;
  const lingerRoom = processes * Math.min(is.lingerRuns, (is.lingerMiB * MiB) / runBytes);
  const lingerBytes = Math.min(lingering, lingerRoom) * runBytes;
  return {
    events,
    eventCores,
    runCores,
    processes,
    openBytes,
    lingering,
    lingerRoom,
    lingerBytes,
    memoryBytes: openBytes + lingerBytes + processes * is.processMiB * MiB,
    bytesOut: events * is.eventBytes,
    bytesIn: runs * is.requestBytes,
  };
};

/** The needs of the database. */
export interface Database {
  readonly writes: number;
  /** Transactions per second: groups of writes, heartbeats, and searches for dead gateways. */
  readonly transactions: number;
  readonly walBytes: number;
  /** Rows left for vacuum: those that updates replaced, and those of deleted runs. */
  readonly deadRows: number;
  /** Rows that searches would read with a single database. */
  readonly lookRows: number;
  /** Number of primaries that each limit requires, and the number that all of them require. */
  readonly needs: Readonly<Record<"WAL" | "transactions" | "CPU" | "polls", number>>;
  readonly primaries: number;
  readonly connections: number;
  readonly poolers: number;
  /** Bytes of one day of runs. */
  readonly dayBytes: number;
}

/** Computes the needs of a load's database. A process has one group of writes in flight, so it commits at most 1 / `commitMs` groups. */
export const database = (load: Load, is: Values): Database => {
  const { processes } = gateways(load, is);
  const writes = load.runs * is.writes;
  const transactions =
    Math.min(writes, (processes * 1_000) / is.commitMs) + processes / is.beatSeconds + processes / is.lookSeconds;
  const walBytes = load.runs * is.walBytes;
  const lookRows = processes ** 2 / is.lookSeconds;
  const connections = processes * is.connections;
  const needs = {
    WAL: walBytes / (is.primaryWalMB * 1e6),
    transactions: transactions / is.primaryTransactions,
    CPU: (writes * is.serverUs) / 1e6 / (is.primaryCores * is.utilisation),
    // K primaries have 1/K of the processes each, and each reads the square of that.
    polls: processes / Math.sqrt(is.primaryLookRows * is.lookSeconds),
  };
  const primaries = Math.ceil(Math.max(...Object.values(needs)));
  return {
    writes,
    transactions,
    walBytes,
    deadRows: load.runs * is.writes,
    lookRows,
    needs,
    primaries,
    connections,
    poolers: connections / primaries <= is.primaryConnections ? 0 : Math.ceil(connections / is.poolerClients),
    dayBytes: load.runs * daySeconds * is.tableBytes,
  };
};

/** The limit that requires the largest number of primaries. */
export const bindingOf = ({ needs }: Database): string =>
  Object.entries(needs).reduce((most, it) => (it[1] > most[1] ? it : most))[0];

/** Cost in dollars per month. */
export interface Cost {
  readonly gateways: number;
  readonly database: number;
  readonly disk: number;
  readonly traffic: number;
  /** Cost of a million runs, without traffic to clients. */
  readonly millionRuns: number;
  /** That cost as a share of the provider's price for the runs' output. */
  readonly share: number;
}

/**
 * Computes the monthly cost of a load.
 *
 * @param days retention of runs
 */
export const cost = (load: Load, days: number, is: Values): Cost => {
  const { bytesOut, events, memoryBytes, processes } = gateways(load, is);
  const { dayBytes, primaries } = database(load, is);
  const beyond = Math.max(0, memoryBytes / is.utilisation / GiB - processes * 4);
  const ofGateways = (processes * is.coreDollars + beyond * is.gibDollars) * monthHours;
  // Each primary has a standby, and disks have the same headroom as everything else.
  const ofDatabase = primaries * 2 * is.primaryCores * is.coreDollars * monthHours;
  const disk = ((dayBytes * days * 2) / is.utilisation / 1e9) * is.diskDollars;
  const monthSeconds = monthHours * 3_600;
  const own = ofGateways + ofDatabase + disk;
  return {
    gateways: ofGateways,
    database: ofDatabase,
    disk,
    traffic: ((bytesOut * monthSeconds) / 1e9) * is.trafficDollars,
    millionRuns: (own / (load.runs * monthSeconds)) * 1e6,
    share: own / (((events * monthSeconds) / 1e6) * is.tokenDollars),
  };
};

/** A limit that a single instance of something reaches at some load. */
export interface Wall {
  readonly what: string;
  readonly instead: string;
  /** Utilisation at a load; above 1 the limit is exceeded. */
  readonly times: (load: Load, is: Values) => number;
}

/** All limits, in no particular order. */
export const walls: ReadonlyArray<Wall> = [
  {
    what: "one process (one core at 50 % utilisation)",
    instead: "`--workers`, which share one port and one store",
    times: (load, is) => {
      const { eventCores, runCores } = gateways(load, is);
      return (eventCores + runCores) / is.utilisation;
    },
  },
  {
    what: "one machine of gateways",
    instead: "several machines behind a balancer, with PostgreSQL instead of the file",
    times: (load, is) => gateways(load, is).processes / is.machineCores,
  },
  {
    what: "a SQLite file with one commit per write",
    instead: '`synchronous: "normal"` and writes that share a commit, then PostgreSQL',
    times: (load, is) => (load.runs * is.writes * is.fileCommitUs) / 1e6,
  },
  {
    what: "a day of ended runs under the default `--keep-runs-max`",
    instead: "a higher maximum; otherwise only the newest runs are kept, and nothing else breaks",
    times: (load, is) => (load.runs * daySeconds) / is.keptRuns,
  },
  {
    what: "memory for lingering runs",
    instead:
      "a shorter `--linger-ms`; otherwise returning clients are refused (410), and runs continue only for their readers",
    times: (load, is) => {
      const { lingerRoom, lingering } = gateways(load, is);
      return lingering / lingerRoom;
    },
  },
  {
    what: "connections to one server without a pooler",
    instead: "PgBouncer in transaction mode with `prepare=false`, or fewer connections per process",
    times: (load, is) => database(load, is).connections / is.primaryConnections,
  },
  {
    what: "checks for dead gateways in one database, which grow with the square of the processes",
    instead: "several databases, or checks that get rarer as processes are added (not implemented)",
    times: (load, is) => database(load, is).lookRows / is.primaryLookRows,
  },
  {
    what: "transactions of one primary",
    instead: "several databases; larger batches of writes would help too, but each process only fills its own",
    times: (load, is) => database(load, is).needs.transactions,
  },
  {
    what: "CPU of one primary",
    instead: "several databases",
    times: (load, is) => database(load, is).needs.CPU,
  },
  {
    what: "write-ahead log of one primary",
    instead: "several databases",
    times: (load, is) => database(load, is).needs.WAL,
  },
  {
    what: "one network card in front of all gateways",
    instead: "several balancers, or DNS names with several addresses",
    times: (load, is) => {
      const { bytesIn, bytesOut } = gateways(load, is);
      return (Math.max(bytesIn, bytesOut) * 8) / (is.linkGbit * 1e9 * is.utilisation);
    },
  },
];

/** The load at which a limit is reached, with ten streams per run a second; `undefined` if not below a hundred million runs a second. */
export const reachedAt = (wall: Wall, is: Values): Load | undefined => {
  const at = (power: number): Load => ({ runs: 10 ** power, streams: 10 ** (power + 1) });
  let [low, high] = [-3, 8];
  if (wall.times(at(high), is) <= 1) return undefined;
  for (let round = 0; round < 60; round += 1) {
    const middle = (low + high) / 2;
    if (wall.times(at(middle), is) > 1) high = middle;
    else low = middle;
  }
  return at(high);
};
