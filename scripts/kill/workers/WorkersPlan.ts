/**
 * Draws what happens to a gateway with workers, in which state its clients' streams are then, and how its clients and the person who
 * answers behave: from a seed, so that a plan that went wrong can be played again.
 */
import type { Choice } from "../../../src/domain/Decision.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { seeded } from "../../../test/Seeded.ts";
import { type Manner, patient } from "../streams/StreamClient.ts";
import { quick, type StreamState, states, streamStates } from "../streams/StreamStates.ts";

/** What happens. */
interface Fault {
  readonly victims: 0 | 1 | 2;
  /** Each stream may break, whichever worker it is at. */
  readonly all: boolean;
  /** All workers finish what runs, and end; another `serve` takes the port and the file. */
  readonly drains: boolean;
}

const kept: Fault = { victims: 0, all: false, drains: false };

const rows = {
  "worker killed": { ...kept, victims: 1 },
  /** At the same moment. */
  "two workers killed": { ...kept, victims: 2 },
  /** The second one while it takes over what the first one has left. */
  "workers killed in turn": { ...kept, victims: 2 },
  /** Its replacement is killed as soon as it serves. */
  "worker killed twice": { ...kept, victims: 1 },
  /** For longer than its lease, and shorter than its supervisor takes it for one that hangs. */
  "worker stopped": { ...kept, victims: 1 },
  /** Stopped for ever. */
  "worker hangs": { ...kept, victims: 1 },
  "supervisor killed": { ...kept, drains: true },
  /** A worker dies while it finishes what runs, and nobody is there to replace it. */
  "supervisor killed, then a worker": { ...kept, victims: 1, drains: true },
  "all killed": { ...kept, all: true, drains: true },
  terminated: { ...kept, drains: true },
  "terminated, then a worker killed": { ...kept, victims: 1, drains: true },
} satisfies Readonly<Record<string, Fault>>;

export type WorkersFault = keyof typeof rows;
export const faults: Readonly<Record<WorkersFault, Fault>> = rows;
export const workersFaults = Object.keys(rows) as ReadonlyArray<WorkersFault>; // The keys of `rows` are the faults.

/**
 * How a client behaves whose response breaks. `repeats`: as SDKs do. `late`: it asks again when all is decided. `never`: it does
 * not ask again. `impatient`: it also takes a response that is silent for a moment for broken.
 */
const clients = ["repeats", "late", "never", "impatient"] as const;
export type ClientKind = (typeof clients)[number];

/** A gateway that starts on a busy machine is waited for. */
const triesMax = 60;

export const manners: Readonly<Record<ClientKind, Manner>> = {
  repeats: { ...patient, triesMax },
  late: { ...patient, triesMax, againMs: 9_000 },
  never: { ...patient, triesMax: 1 },
  impatient: { ...patient, triesMax, silenceMs: 2_500 },
};

/** States in which a provider is silent for longer than an impatient client waits: it would leave with or without a fault. */
const silent: ReadonlySet<StreamState> = new Set<StreamState>(["waiting", "asking"]);

/** A stream of a client: its name is known to the provider, the client and the record. */
export interface PlannedStream {
  readonly name: string;
  readonly state: StreamState;
  /** Which worker has it; undefined for one of those that are there for the load, which no state is waited for of. */
  readonly worker: number | undefined;
  readonly client: ClientKind;
  /** What a person answers, where the run asks. */
  readonly choice: Choice;
}

/** One thing that happens, and what there is then. Times are milliseconds. */
export interface WorkersRound {
  readonly fault: WorkersFault;
  /** The workers that it happens to. */
  readonly victims: ReadonlyArray<number>;
  /** From when all states are reached to the fault, and from a first fault to its second. */
  readonly pauseMs: number;
  readonly betweenMs: number;
  /** So long the store takes no writes, from a moment before the fault on. */
  readonly awayMs: number;
  /** From the fault to the person's answers. At 0 they are on their way when it happens. */
  readonly answerMs: number;
  /** Each answer is given twice, at the same moment. */
  readonly answersTwice: boolean;
  readonly streams: ReadonlyArray<PlannedStream>;
  /** Programs that ask for one stream after the other, and the names of these. */
  readonly load: ReadonlyArray<ReadonlyArray<string>>;
}

/** A gateway over one file, and what happens to it, one thing after the other. */
export interface WorkersPlan {
  readonly seed: number;
  readonly workers: 2 | 3;
  /** Runs outlive their clients. */
  readonly lingers: boolean;
  /** A shutdown waits so long for what runs, in milliseconds. */
  readonly drainMs: number;
  readonly rounds: ReadonlyArray<WorkersRound>;
}

/** What is drawn. */
export interface Drawing {
  readonly seed: number;
  readonly rounds: number;
  /** What happens, one after the other and from the first again; left out, each round draws its own. */
  readonly faults?: ReadonlyArray<WorkersFault> | undefined;
}

/** Shutdowns within which all streams end, and none does, in milliseconds. */
const [drainMs, soonMs] = [30_000, 1_000];

/** Most streams that a program of the load asks for. */
const loadMax = 40;

/** Draws a plan. */
export const draw = ({ faults: given = [], rounds, seed }: Drawing): WorkersPlan => {
  const random = seeded(seed);
  const workers = random() < 0.5 ? 2 : 3;
  return {
    seed,
    workers,
    lingers: random() < 0.6,
    drainMs: random() < 0.75 ? drainMs : soonMs,
    rounds: Array.from({ length: rounds }, (_, at) =>
      roundOf(random, `w${seed}-${at}`, workers, given[at % given.length]),
    ),
  };
};

const roundOf = (random: () => number, name: string, workers: number, only: WorkersFault | undefined): WorkersRound => {
  const below = (limit: number) => Math.floor(random() * limit);
  const of = <A>(all: readonly [A, ...ReadonlyArray<A>]): A => all[below(all.length)] ?? all[0];
  const drawn = workersFaults[below(workersFaults.length)] ?? "worker killed";
  const fault = only ?? drawn;
  const first = 1 + below(workers);
  return {
    fault,
    victims: [first, 1 + (first % workers)].slice(0, faults[fault].victims),
    pauseMs: below(900),
    betweenMs: below(500),
    awayMs: of([0, 0, 0, 1_500, 4_000]),
    answerMs: of([0, 0, 300, 1_500, 12_000]),
    answersTwice: random() < 0.5,
    streams: Array.from({ length: 6 + below(3) }, (_, at): PlannedStream => {
      // Each state is in each round.
      const state = streamStates[at] ?? of(streamStates);
      const client = of<ClientKind>(["repeats", ...clients]);
      return {
        name: `${name}-${at}-${state}`,
        state,
        // Half of them are at the victim for sure.
        worker: random() < 0.5 ? first : 1 + below(workers),
        client: client === "impatient" && silent.has(state) ? "repeats" : client,
        choice: random() < 0.8 ? "retry" : "stop",
      };
    }),
    load: Array.from({ length: below(4) }, (_, program) =>
      Array.from({ length: loadMax }, (__, at) => `${name}-load-${program}-${at}`),
    ),
  };
};

/** What the provider says in a plan. */
export const scriptOf = ({ rounds }: WorkersPlan): FaultScriptInput => ({
  answers: [quick],
  scripts: Object.fromEntries(
    rounds.flatMap(({ load, streams }) => [
      ...streams.map(({ name, state }) => [name, states[state].answers] as const),
      ...load.flat().map((name) => [name, [{ content: [{ text: 12 }], delay_ms: 50 }, quick]] as const),
    ]),
  ),
});

/** Whether a stream may break: something happens to its worker, or it is not known which it has. */
export const isStruck = (
  plan: Pick<WorkersPlan, "drainMs">,
  { fault, victims }: Pick<WorkersRound, "fault" | "victims">,
  { worker }: Pick<PlannedStream, "worker">,
): boolean => {
  const { all, drains } = faults[fault];
  return all || (drains && plan.drainMs < drainMs) || worker === undefined || victims.includes(worker);
};
