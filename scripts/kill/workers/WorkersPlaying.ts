/**
 * Plays a plan: a gateway with workers over one file, clients with streams in every state, a fault in each round, and a person who
 * answers the questions from then on.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Context, Effect, Layer, References, Result } from "effect";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { FaultProvider, type RequestLog } from "../../../src/testing/index.ts";
import { connected } from "../../../test/cli/Workers.ts";
import { integrityOf } from "../Integrity.ts";
import { Slowness } from "../Slowness.ts";
import * as StreamClient from "../streams/StreamClient.ts";
import { isTaken } from "../streams/StreamLaws.ts";
import { bodyOf, lingerMs, states } from "../streams/StreamStates.ts";
import { WorkersGateway } from "./WorkersGateway.ts";
import { problems, problemsOfEnd, type WorkersDecided, type WorkersEnd, type WorkersRemains } from "./WorkersJudge.ts";
import { WorkersPerson } from "./WorkersPerson.ts";
import {
  faults,
  isStruck,
  manners,
  type PlannedStream,
  scriptOf,
  type WorkersPlan,
  type WorkersRound,
} from "./WorkersPlan.ts";
import { type Struck, strike } from "./WorkersStrike.ts";

/** The result of a plan. */
export interface WorkersPlayed {
  readonly plan: WorkersPlan;
  readonly remains: ReadonlyArray<WorkersRemains>;
  readonly end: WorkersEnd;
  readonly problems: ReadonlyArray<string>;
}

/** Timeouts for reaching all states, and for ending all streams and processes, in milliseconds. They allow for a busy machine. */
const reachedMsMax = 60_000;
const endedMsMax = 90_000;
const lookEveryMs = 50;

/** Time for which the load continues after the fault, in milliseconds. */
const loadBehindMs = 2_500;

/** Age at which a kept response may already be gone, in milliseconds. */
const keptMs = lingerMs / 2;

interface Streamed {
  readonly stream: PlannedStream;
  readonly one: StreamClient.Wanted;
}

/** Plays a plan in a temporary folder. */
export const play = (plan: WorkersPlan): Effect.Effect<WorkersPlayed, unknown> =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "wk-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
    );
    const provider = yield* FaultProvider.make({ script: scriptOf(plan) });
    const gateway = yield* WorkersGateway.start(plan, folder, provider.url);
    const recorder = Context.get(
      yield* Layer.build(Layer.fresh(SqlRunRecorder.layerFile({ file: gateway.db, retention: false }))),
      RunRecorder,
    );
    const slowness = new Slowness();
    yield* Effect.forkScoped(slowness.measured);
    const world: World = { plan, provider, gateway, recorder, slowness };
    const remains = yield* Effect.forEach(plan.rounds, (round) =>
      Effect.scoped(
        Effect.gen(function* () {
          yield* gateway.served();
          const play = new Round(world, round);
          yield* Effect.forkScoped(play.watched);
          yield* Effect.forkScoped(play.answering);
          return yield* play.streams();
        }),
      ),
    );
    const end = yield* stopGateway(world);
    return {
      plan,
      remains: remains.flat(),
      end,
      problems: [...remains.flat().flatMap(problems), ...problemsOfEnd(end)],
    };
  }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"));

interface World {
  readonly plan: WorkersPlan;
  readonly provider: FaultProvider["Service"];
  readonly gateway: WorkersGateway;
  readonly recorder: RunRecorder["Service"];
  readonly slowness: Slowness;
}

/** Stops the gateway, and collects the evidence of its processes. */
const stopGateway = Effect.fnUntraced(function* ({ gateway, slowness }: World) {
  const exit = yield* Effect.promise(() => gateway.end("SIGTERM"));
  const until = performance.now() + 10_000 * slowness.factor;
  while (performance.now() < until && gateway.living.length > 0) yield* Effect.sleep(lookEveryMs);
  return {
    leftBehind: gateway.living,
    exit,
    succeededMs: gateway.succeeded.map(({ ms }) => ms),
    files: gateway.files,
    integrity: integrityOf(gateway.db),
    slowness: slowness.factor,
  } satisfies WorkersEnd;
});

class Round {
  readonly #world: World;
  readonly #round: WorkersRound;
  readonly #gateway: WorkersGateway;
  readonly #person: WorkersPerson;
  readonly #struck: Struck = { at: Number.POSITIVE_INFINITY, backAt: 0 };
  /** The start of the person's answers, in milliseconds since the epoch. */
  #answersFrom = Number.POSITIVE_INFINITY;
  #isOver = false;
  /** The time at which each run was first seen ended, in milliseconds since the epoch. Holds at most one entry per client request. */
  readonly #endedAt = new Map<string, number>();
  #records: ReadonlyArray<RunRecord> = [];

  constructor(world: World, round: WorkersRound) {
    this.#world = world;
    this.#round = round;
    this.#gateway = world.gateway;
    this.#person = new WorkersPerson(round, world.gateway.url);
  }

  /** Polls the records and notes when each run has ended. */
  readonly watched: Effect.Effect<never> = Effect.forever(
    Effect.gen({ self: this }, function* () {
      const found = yield* Effect.result(this.#world.recorder.runs({ limit: 1_000 }));
      if (Result.isSuccess(found)) {
        this.#records = found.success;
        const now = Date.now();
        for (const { end, run_id } of this.#records) {
          if (end !== undefined && !this.#endedAt.has(run_id)) this.#endedAt.set(run_id, now);
        }
      }
      yield* Effect.sleep(lookEveryMs);
    }),
  );

  /** Answers open questions. An answer may wait for a stopped worker, so this runs separately from the polling. */
  readonly answering: Effect.Effect<never> = Effect.forever(
    Effect.gen({ self: this }, function* () {
      if (Date.now() >= this.#answersFrom) {
        yield* Effect.forEach(this.#records, (record) => this.#person.answer(record), { concurrency: "unbounded" });
      }
      yield* Effect.sleep(lookEveryMs);
    }),
  );

  /** Injects the fault into a gateway that has a stream in every state, and collects the evidence of the streams. */
  readonly streams = Effect.fnUntraced({ self: this }, function* (this: Round) {
    const streams = this.#round.streams.map((stream): Streamed => ({ stream, one: wantedOf(stream) }));
    const placed = yield* Effect.forEach(streams, (it) =>
      Effect.map(connected(this.#gateway, it.stream.worker ?? 1), ({ agent }) => ({ ...it, agent })),
    );
    const clients = Promise.all(
      placed.map(({ agent, one, stream }) =>
        StreamClient.requestUntilWhole(one, [this.#gateway.url], { ...manners[stream.client], agent }),
      ),
    );
    const load = Promise.all(this.#round.load.map((names) => this.#program(names)));
    yield* this.#reached(streams);
    yield* Effect.sleep(this.#round.pauseMs);
    const { answerMs } = this.#round;
    this.#answersFrom = Date.now() + answerMs;
    // Lets the first answers be in flight at the fault.
    if (answerMs === 0) yield* Effect.sleep(lookEveryMs);
    yield* strike(this.#round, this.#gateway, this.#struck);
    this.#isOver = true;
    yield* Effect.timeout(
      Effect.promise(() => clients),
      endedMsMax,
    );
    const all = [...streams, ...(yield* Effect.promise(() => load)).flat()];
    yield* this.#allEnded();
    return yield* Effect.forEach(all, (it) => this.#remainsOf(it));
  });

  /** Requests one stream after another until `loadBehindMs` after the last fault. */
  async #program(names: ReadonlyArray<string>): Promise<ReadonlyArray<Streamed>> {
    const asked: Array<Streamed> = [];
    for (const name of names) {
      const stream = { name, state: "shown", worker: undefined, client: "repeats", choice: "stop" } as const;
      const one = wantedOf(stream);
      asked.push({ stream, one });
      await StreamClient.requestUntilWhole(one, [this.#gateway.url], manners.repeats);
      if (this.#isOver && Date.now() > this.#struck.at + loadBehindMs) break;
    }
    return asked;
  }

  #recordsOf({ name }: StreamClient.Wanted): ReadonlyArray<RunRecord> {
    return this.#records.filter(({ provider }) => provider.model === name);
  }

  #asked({ name }: StreamClient.Wanted): Effect.Effect<ReadonlyArray<RequestLog>> {
    return Effect.map(this.#world.provider.log, (rows) => rows.filter(({ script }) => script === name));
  }

  readonly #reached = Effect.fnUntraced({ self: this }, function* (this: Round, streams: ReadonlyArray<Streamed>) {
    const until = performance.now() + reachedMsMax;
    for (;;) {
      const missing = yield* Effect.filter(streams, ({ one, stream }) =>
        Effect.map(
          this.#asked(one),
          (rows) =>
            one.tries.length === 0 &&
            !states[stream.state].isReached({
              asked: rows.length,
              text: one.reading.text,
              calls: one.reading.calls.length,
              record: this.#recordsOf(one)[0],
            }),
        ),
      );
      if (missing.length === 0) return;
      if (performance.now() > until) throw new Error(`not reached: ${missing.map(({ one }) => one.name).join()}`);
      yield* Effect.sleep(lookEveryMs);
    }
  });

  /** Waits for all runs to end. A run without an end is left to the judge. */
  readonly #allEnded = Effect.fnUntraced({ self: this }, function* (this: Round) {
    const until = performance.now() + endedMsMax;
    // A client receives the end slightly before it is on record.
    yield* Effect.sleep(4 * lookEveryMs);
    while (performance.now() < until && this.#records.some(({ end }) => end === undefined)) {
      yield* Effect.sleep(lookEveryMs);
    }
  });

  /** The moment at which a run is due to end, in milliseconds since the epoch. */
  #dueAt(record: RunRecord, rows: ReadonlyArray<RequestLog>): number {
    const { at, backAt } = this.#struck;
    const endedAt = this.#endedAt.get(record.run_id) ?? Number.POSITIVE_INFINITY;
    // Later requests of its client belong to another run.
    const own = isTaken(record) ? [] : rows.filter(({ started_ms }) => started_ms < endedAt);
    const said = Math.max(0, ...own.map(({ ended_ms }) => ended_ms ?? 0));
    // An answer cannot change a run that another process has already decided.
    const answered = isTaken(record) ? 0 : (this.#person.answeredAt.get(record.run_id) ?? 0);
    return Math.max(at, backAt, this.#gateway.succeeded.at(-1)?.at ?? 0, said, answered);
  }

  /** True if the process that served the stream's last request is still alive and keeps its response for a repeat. */
  #isKept({ one, stream }: Streamed): boolean {
    const last = one.tries.at(-1);
    if (!this.#world.plan.lingers || last?.outcome !== "whole" || Date.now() - last.at > keptMs) return false;
    const since = Math.max(this.#struck.at, this.#gateway.succeeded.at(-1)?.at ?? 0);
    return last.at > since || (!isStruck(this.#world.plan, this.#round, stream) && !faults[this.#round.fault].drains);
  }

  readonly #remainsOf = Effect.fnUntraced({ self: this }, function* (this: Round, it: Streamed) {
    const { one, stream } = it;
    const { awayMs, fault } = this.#round;
    const rows = yield* this.#asked(one);
    const again = this.#isKept(it)
      ? yield* Effect.promise(() => StreamClient.ask(one, 0, this.#gateway.url))
      : undefined;
    const { length: asked } = yield* this.#asked(one);
    const records = this.#recordsOf(one).map((record): WorkersDecided => {
      const endedAt = this.#endedAt.get(record.run_id);
      const lateMs = endedAt === undefined ? undefined : endedAt - this.#dueAt(record, rows);
      return { ...record, attempts: record.attempts.length, lateMs };
    });
    // The same key with a different request.
    const otherwise = { ...one, body: bodyOf(one.name, "shown").replace("Say", "Sing") };
    const other =
      stream.worker === undefined
        ? undefined
        : yield* Effect.promise(() => StreamClient.ask(otherwise, 0, this.#gateway.url));
    const answers = this.#person.answers
      .filter(({ run }) => records.some(({ run_id }) => run_id === run))
      .map(({ at, ...told }) => ({ ...told, isEarly: at <= this.#struck.at }));
    return {
      fault,
      stream,
      state: stream.state,
      isStruck: isStruck(this.#world.plan, this.#round, stream),
      isAway: awayMs > 0,
      tries: one.tries,
      again,
      other,
      asked,
      records,
      answers,
      slowness: this.#world.slowness.factor,
    } satisfies WorkersRemains;
  });
}

const wantedOf = ({ name, state }: PlannedStream): StreamClient.Wanted =>
  StreamClient.makeWanted(name, bodyOf(name, state));
