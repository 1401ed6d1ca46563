/**
 * Plays a history: several processes share one store, and are stopped, killed and restarted as the seed decides, while their
 * connections break. Their logs are then judged against the final state of the store.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Context, Deferred, Effect, Layer, type Scope } from "effect";
import { PostgresRunRecorder } from "../../src/recorder/postgres/PostgresRunRecorder.ts";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import { seeded } from "../../test/Seeded.ts";
import type { SocketProxy } from "../postgres/SocketProxy.ts";
import { program } from "../programs/Program.ts";
import { type Final, type Operation, operations, storeAwayCode } from "./History.ts";
import { problems, type Rule } from "./HistoryJudge.ts";

/** The store of a history. */
export interface Place {
  /** The processes' address of the store: an SQLite file, or a PostgreSQL behind the proxy. */
  readonly store: string;
  /** The proxy between the processes and their server. */
  readonly proxy?: SocketProxy;
  /** Stops the server, at once or in order, and starts it again. Undefined if the history may not restart it. */
  readonly restart?: (mode: "fast" | "immediate") => Promise<void>;
}

/** Formats the problems of a history and the logs of the affected runs. The seed does not reproduce a history exactly. */
export const formatProblems = ({ operations, problems }: Played): ReadonlyArray<string> => [
  ...problems.map(({ rule, told }) => `${rule}: ${told}`),
  ...operations
    .filter(({ run }) => problems.some((it) => it.told.startsWith(`${run}: `)))
    .toSorted((one, other) => one.from - other.from)
    .map((it) => JSON.stringify(it)),
];

/** Summarises a history in one line. */
export const summarize = ({ kills, operations, resets, restarts, stops }: Happened): string => {
  const taken = Object.entries(Object.groupBy(operations, ({ kind }) => kind)).map(
    ([kind, all]) => `${all.filter((it) => it.outcome === "ok").length} ${kind}`,
  );
  const count = (outcome: string) => operations.filter((it) => it.outcome === outcome).length;
  return `${operations.length} operations (${count("ok")} taken: ${taken.join(", ")}; ${count("refused")} refused, ${count("unknown")} unknown), ${kills} kills, ${stops} stops, ${resets} resets, ${restarts} restarts`;
};

/** The parameters that a history is drawn from. */
export interface Given {
  readonly seed: number;
  readonly processes: number;
  readonly seconds: number;
  /** Condition that must hold before the history ends, however slow the machine is, up to `secondsMax`. */
  readonly until?: (so: Happened) => boolean;
}

/** The events of a history so far. */
export interface Happened {
  readonly operations: ReadonlyArray<Operation>;
  readonly kills: number;
  readonly stops: number;
  readonly resets: number;
  readonly restarts: number;
}

/** Maximum duration of a history with an `until` condition, in seconds. */
export const secondsMax = 150;

/**
 * True if a history proves something: enough operations were accepted, refused and interrupted.
 *
 * @param place connections break only with a proxy, and the server restarts only with `restart`
 */
export const isRich = ({ kills, operations, resets, restarts }: Happened, { proxy, restart }: Place): boolean =>
  operations.filter(({ outcome }) => outcome === "ok").length > 30 &&
  operations.filter(({ reason }) => reason === "owned" || reason === "fenced").length > 5 &&
  kills > 0 &&
  (resets > 0 || proxy === undefined) &&
  (restarts > 0 || restart === undefined);

/** A finished history and its violations. */
export interface Played extends Happened {
  readonly finals: ReadonlyArray<Final>;
  readonly problems: ReadonlyArray<{ readonly rule: Rule; readonly told: string }>;
}

/** Lease of a process, in milliseconds. It is short, so that many leases expire in a history. */
const leaseMs = 600;

/** Ids reserved for one life, far more than it can use. */
const idsOfLife = 100_000;

interface LifePlan {
  readonly actor: string;
  readonly seed: number;
  readonly ms: number;
  readonly stops: ReadonlyArray<{ readonly at: number; readonly ms: number }>;
  readonly aheadMs: number;
  readonly isKilled: boolean;
  /** True if the next life reports this one as ended, and so does not wait for its lease. */
  readonly isTold: boolean;
}

/** Draws the lives of each process. */
export const draw = ({ processes, seconds, seed }: Given): ReadonlyArray<ReadonlyArray<LifePlan>> =>
  Array.from({ length: processes }, (_, index) => {
    const random = seeded(seed * 1_009 + index);
    const between = (from: number, to: number) => Math.floor(from + random() * (to - from));
    const lives: Array<LifePlan> = [];
    for (let left = seconds * 1_000; left > 0; ) {
      const ms = Math.min(left, between(700, 6_000));
      const stops = random() < 0.5 ? [{ at: between(100, ms), ms: between(leaseMs / 2, leaseMs * 4) }] : [];
      lives.push({
        actor: `p${index}-${lives.length}`,
        seed: between(1, 2 ** 30),
        ms,
        stops,
        aheadMs: random() < 0.3 ? between(-3_600_000, 3_600_000) : 0,
        isKilled: random() < 0.8,
        isTold: random() < 0.3,
      });
      left -= ms + stops.reduce((sum, it) => sum + it.ms, 0);
    }
    return lives;
  });

/** Plays a history and judges it. */
export const play = (given: Given, place: Place): Effect.Effect<Played, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "histories-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
    );
    const plans = draw({ ...given, seconds: given.until === undefined ? given.seconds : secondsMax });
    const counts = { kills: 0, stops: 0, resets: 0, restarts: 0 };
    const actors = plans.flat().map(({ actor }) => actor);
    const written = () => actors.flatMap((actor) => operations(logOf(folder, actor), actor));
    const begunAt = performance.now();
    const isOver = () => {
      const seconds = (performance.now() - begunAt) / 1_000;
      if (seconds <= given.seconds || seconds > secondsMax) return seconds > secondsMax;
      return given.until?.({ operations: written(), ...counts }) ?? true;
    };
    const resets = breakConnections(given, place, counts);
    const living = Effect.forEach(plans, (lives, index) => playLifetimes(folder, place, lives, index, isOver, counts), {
      concurrency: "unbounded",
    });
    yield* Effect.raceFirst(living, resets);
    const all = written();
    const finals = yield* finalsOf(place);
    return { operations: all, finals, ...counts, problems: problems({ operations: all, finals }) };
  });

const logOf = (folder: string, actor: string): string => join(folder, `${actor}.log`);

/** Breaks connections at random moments for the whole history: resets them, cuts the network, or restarts the server. */
const breakConnections = (
  { seed }: Given,
  { proxy, restart }: Place,
  counts: { resets: number; restarts: number },
): Effect.Effect<never> => {
  if (proxy === undefined) return Effect.never;
  const random = seeded(seed * 7 + 3);
  let breaks = 0;
  return Effect.forever(
    Effect.gen(function* () {
      yield* Effect.sleep(500 + random() * 2_500);
      const dice = random();
      breaks += 1;
      // Every history restarts the server at the third break, so that no test has to wait for one.
      if (restart !== undefined && (breaks === 3 || dice > 0.88)) {
        counts.restarts += 1;
        // Uninterruptible, because a history cannot be judged if its server stays down.
        return yield* Effect.uninterruptible(Effect.promise(() => restart(random() < 0.5 ? "fast" : "immediate")));
      }
      counts.resets += 1;
      if (dice < 0.62) return proxy.reset();
      proxy.cut(true);
      yield* Effect.sleep(200 + random() * 1_000);
      proxy.cut(false);
    }),
  );
};

const playLifetimes = Effect.fnUntraced(function* (
  folder: string,
  place: Place,
  lives: ReadonlyArray<LifePlan>,
  index: number,
  isOver: () => boolean,
  counts: { kills: number; stops: number },
) {
  const ended: Array<string> = [];
  for (const [life, plan] of lives.entries()) {
    // Checked before each life, because starting a process takes time too.
    if (isOver()) return;
    const { actor, aheadMs, seed } = plan;
    const ids = (index * 1_000 + life + 1) * idsOfLife;
    const argument = { actor, seed, ids, log: logOf(folder, actor), store: place.store, leaseMs, aheadMs, ended };
    yield* playLifetime(JSON.stringify(argument), plan, counts);
    if (plan.isTold) ended.push(actor);
  }
});

const playLifetime = Effect.fnUntraced(function* (
  argument: string,
  plan: LifePlan,
  counts: { kills: number; stops: number },
) {
  const actor = yield* Effect.promise(() => program("scripts/histories/Actor.ts"));
  const child = spawn(process.execPath, [actor, argument], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { NODE_COMPILE_CACHE: join(tmpdir(), "histories-compiled"), ...process.env },
  });
  const { ended, ready, told } = watch(child);
  yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")));
  yield* Effect.raceFirst(Deferred.await(ready), Deferred.await(ended));
  for (const stop of plan.stops) {
    yield* Effect.sleep(stop.at);
    counts.stops += 1;
    child.kill("SIGSTOP");
    yield* Effect.sleep(stop.ms);
    child.kill("SIGCONT");
  }
  const early = yield* Effect.timeoutOption(Deferred.await(ended), Math.max(1, plan.ms - (plan.stops[0]?.at ?? 0)));
  if (early._tag === "Some" && early.value === storeAwayCode) return;
  if (early._tag === "Some") return yield* Effect.die(new Error(`${plan.actor} failed: ${told()}`));
  if (plan.isKilled) counts.kills += 1;
  child.kill(plan.isKilled ? "SIGKILL" : "SIGTERM");
  // A process that waits for its store may not react to SIGTERM, so it is killed after 5 s.
  yield* Effect.timeoutOption(Deferred.await(ended), 5_000);
  child.kill("SIGKILL");
  yield* Deferred.await(ended);
}, Effect.scoped);

const watch = (child: ChildProcess) => {
  const ready = Deferred.makeUnsafe<void>();
  const ended = Deferred.makeUnsafe<number | null>();
  let errors = "";
  child.stdout?.once("data", () => Deferred.doneUnsafe(ready, Effect.void));
  child.stdout?.resume();
  child.stderr?.on("data", (bytes: Buffer) => {
    errors = `${errors}${bytes.toString()}`.slice(-4_000);
  });
  child.once("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code)));
  return { ready, ended, told: () => errors };
};

const finalsOf = ({ proxy, store }: Place) =>
  Effect.gen(function* () {
    proxy?.cut(false);
    const layer = store.startsWith("postgres:")
      ? PostgresRunRecorder.layer({ address: store, retention: false })
      : SqlRunRecorder.layerFile({ file: store, retention: false });
    const recorder = Context.get(yield* Layer.build(Layer.fresh(layer)), RunRecorder);
    return (yield* recorder.runs({ limit: 100_000 })).map(finalOf);
  });

const finalOf = ({ end, evidence, questions, run_id }: RunRecord): Final => {
  if (evidence.omitted > 0) throw new Error(`${run_id} has more notes than its record keeps`);
  return {
    run: run_id,
    notes: [...evidence.first, ...evidence.last].map(({ at_ms }) => at_ms),
    questions: questions.map(({ answer, asked_at, revision }) => ({
      id: asked_at ?? 0,
      revision,
      ...(answer === undefined ? {} : { answer }),
    })),
    ...(end === undefined ? {} : { end: end.at }),
  };
};
