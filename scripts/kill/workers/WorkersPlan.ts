/**
 * Draws the faults of a gateway with workers, the states of its clients' streams at each fault, and the behaviour of the clients and of
 * the person who answers. A seed always draws the same plan, so a failed plan can be repeated.
 */
import type { Choice } from "../../../src/domain/Decision.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { seeded } from "../../../test/Seeded.ts";
import { type Manner, patient } from "../streams/StreamClient.ts";
import { quick, type StreamState, states, streamStates } from "../streams/StreamStates.ts";

/** The consequences of a fault. */
interface Fault {
  readonly victims: 0 | 1 | 2;
  /** True if every stream may break, whichever worker serves it. */
  readonly all: boolean;
  /** True if all workers drain and end, and another `serve` takes over the port and the file. */
  readonly drains: boolean;
}

const kept: Fault = { victims: 0, all: false, drains: false };

const rows = {
  "worker killed": { ...kept, victims: 1 },
  /** Both at the same moment. */
  "two workers killed": { ...kept, victims: 2 },
  /** The second one while it takes over the runs of the first. */
  "workers killed in turn": { ...kept, victims: 2 },
  /** The replacement is killed as soon as it serves. */
  "worker killed twice": { ...kept, victims: 1 },
  /** Stopped for longer than its lease, but for less time than its supervisor needs to consider it hung. */
  "worker stopped": { ...kept, victims: 1 },
  /** Stopped for good. */
  "worker hangs": { ...kept, victims: 1 },
  "supervisor killed": { ...kept, drains: true },
  /** A worker dies while it drains, and no supervisor is left to replace it. */
  "supervisor killed, then a worker": { ...kept, victims: 1, drains: true },
  "all killed": { ...kept, all: true, drains: true },
  terminated: { ...kept, drains: true },
  "terminated, then a worker killed": { ...kept, victims: 1, drains: true },
} satisfies Readonly<Record<string, Fault>>;

export type WorkersFault = keyof typeof rows;
export const faults: Readonly<Record<WorkersFault, Fault>> = rows;
export const workersFaults = Object.keys(rows) as ReadonlyArray<WorkersFault>; // The keys of `rows` are the faults.

/**
 * The behaviour of a client whose response breaks. `repeats`: retries as SDKs do. `late`: retries after everything is decided. `never`:
 * does not retry. `impatient`: retries, and also treats a briefly silent response as broken.
 */
const clients = ["repeats", "late", "never", "impatient"] as const;
export type ClientKind = (typeof clients)[number];

/** Maximum tries. It is large enough to wait for a gateway that starts on a busy machine. */
const triesMax = 60;

export const manners: Readonly<Record<ClientKind, Manner>> = {
  repeats: { ...patient, triesMax },
  late: { ...patient, triesMax, againMs: 9_000 },
  never: { ...patient, triesMax: 1 },
  impatient: { ...patient, triesMax, silenceMs: 2_500 },
};

/** States in which the provider is silent for longer than an impatient client waits. It would leave even without a fault. */
const silent: ReadonlySet<StreamState> = new Set<StreamState>(["waiting", "asking"]);

/** A client's stream. The provider, the client and the record identify it by its name. */
export interface PlannedStream {
  readonly name: string;
  readonly state: StreamState;
  /** The worker that serves it; undefined for a stream of the load, which the fault does not wait for. */
  readonly worker: number | undefined;
  readonly client: ClientKind;
  /** The person's answer if the run asks. */
  readonly choice: Choice;
}

/** One fault and the situation it hits. Times are in milliseconds. */
export interface WorkersRound {
  readonly fault: WorkersFault;
  /** Numbers of the workers that it hits. */
  readonly victims: ReadonlyArray<number>;
  /** Delay between reaching all states and the fault, and between a first fault and its second. */
  readonly pauseMs: number;
  readonly betweenMs: number;
  /** Time for which the store accepts no writes, starting just before the fault. */
  readonly awayMs: number;
  /** Delay between the fault and the person's answers. At 0 they are in flight when it happens. */
  readonly answerMs: number;
  /** True if each answer is sent twice, concurrently. */
  readonly answersTwice: boolean;
  readonly streams: ReadonlyArray<PlannedStream>;
  /** Programs that request one stream after another, and the names of their streams. */
  readonly load: ReadonlyArray<ReadonlyArray<string>>;
}

/** A gateway over one file, and the faults that hit it one after another. */
export interface WorkersPlan {
  readonly seed: number;
  readonly workers: 2 | 3;
  /** True if runs outlive their clients. */
  readonly lingers: boolean;
  /** Time that a shutdown waits for runs in progress, in milliseconds. */
  readonly drainMs: number;
  readonly rounds: ReadonlyArray<WorkersRound>;
}

/** The parameters that a plan is drawn from. */
export interface Drawing {
  readonly seed: number;
  readonly rounds: number;
  /** The faults of the rounds in order, repeated from the start. Without it, each round draws its own fault. */
  readonly faults?: ReadonlyArray<WorkersFault> | undefined;
}

/** A drain timeout that lets all streams end, and one that lets none end, in milliseconds. */
const [drainMs, soonMs] = [30_000, 1_000];

/** Maximum streams that one program of the load requests. */
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
      // The first streams cover each state once.
      const state = streamStates[at] ?? of(streamStates);
      const client = of<ClientKind>(["repeats", ...clients]);
      return {
        name: `${name}-${at}-${state}`,
        state,
        // At least half of the streams are at the victim.
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

/** The provider's script of a plan. */
export const scriptOf = ({ rounds }: WorkersPlan): FaultScriptInput => ({
  answers: [quick],
  scripts: Object.fromEntries(
    rounds.flatMap(({ load, streams }) => [
      ...streams.map(({ name, state }) => [name, states[state].answers] as const),
      ...load.flat().map((name) => [name, [{ content: [{ text: 12 }], delay_ms: 50 }, quick]] as const),
    ]),
  ),
});

/** True if a stream may break: a fault hits its worker, or its worker is unknown. */
export const isStruck = (
  plan: Pick<WorkersPlan, "drainMs">,
  { fault, victims }: Pick<WorkersRound, "fault" | "victims">,
  { worker }: Pick<PlannedStream, "worker">,
): boolean => {
  const { all, drains } = faults[fault];
  return all || (drains && plan.drainMs < drainMs) || worker === undefined || victims.includes(worker);
};
