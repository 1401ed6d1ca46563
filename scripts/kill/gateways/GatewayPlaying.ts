/**
 * Plays faults on gateways over one PostgreSQL. Each fault hits its own gateway, which has a stream in every state. Two more gateways,
 * with wrong clocks, take over what it leaves, and a person answers the questions from then on.
 */
import { Context, Effect, Fiber, Layer, Result, type Scope } from "effect";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { openQuestion, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import type { Cluster } from "../../postgres/Cluster.ts";
import * as SocketProxy from "../../postgres/SocketProxy.ts";
import { type Child, startChild } from "../ChildProcess.ts";
import {
  type Fault,
  hasWrongClock,
  injectFault,
  type Outcome,
  repeatUntilMet,
  strikesAll,
  takesOver,
} from "../NodeFaults.ts";
import { Slowness, slownessMax } from "../Slowness.ts";
import * as StreamClient from "../streams/StreamClient.ts";
import type { Decided } from "../streams/StreamLaws.ts";
import { bodyOf, leaseMs, type StreamState, states, streamStates } from "../streams/StreamStates.ts";
import { type GatewayRemains, isKept, missed, problems } from "./GatewayJudge.ts";
import { nameOf, script } from "./GatewayPlan.ts";

/** The result of one fault or of several. */
export interface GatewaysPlayed extends Outcome {
  readonly remains: ReadonlyArray<GatewayRemains>;
}

/** Duration of a stop or a disconnection, in milliseconds. */
const awayMs = 2 * leaseMs;

/** Timeouts for reaching all states and for ending all streams, in milliseconds. They allow for a busy machine. */
const reachedMsMax = 60_000;
const endedMsMax = 90_000;
const lookEveryMs = 50;

/** States that a stream reaches only after its provider breaks. */
const breaking: ReadonlySet<StreamState> = new Set<StreamState>(["asking", "continued"]);

/** Number of gateways that start concurrently. */
const startsTogether = 2;

/** Offsets of the wall clocks, in milliseconds: of the two other gateways, and of the gateway whose clock is the fault. */
const aheadMs = { others: [7_200_000, -3_600_000], fault: 3_600_000 } as const;

/** Plays faults in one fresh schema. Faults that hit all gateways at once are played one by one, after the others. */
export const play = (
  faults: ReadonlyArray<Fault>,
  cluster: Cluster,
): Effect.Effect<GatewaysPlayed, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const schema = "g_gateways";
    cluster.psql("postgres", `DROP SCHEMA IF EXISTS ${schema} CASCADE; CREATE SCHEMA ${schema}`);
    const direct = `${cluster.address("postgres")}&schema=${schema}`;
    const provider = yield* FaultProvider.make({ script });
    const recorder = Context.get(
      yield* Layer.build(Layer.fresh(PostgresRunRecorder.layer({ address: direct, retention: false }))),
      RunRecorder,
    );
    const gateway = (store: string, ahead: number) =>
      startChild("scripts/kill/gateways/GatewayNode.ts", { upstream: provider.url, store, aheadMs: ahead });
    const others = Effect.forEach(aheadMs.others, (ahead) => gateway(direct, ahead), { concurrency: "unbounded" });
    const struckOf = Effect.fnUntraced(function* (fault: Fault) {
      const proxy = yield* SocketProxy.make(cluster.socket);
      const through = direct.replace(encodeURIComponent(cluster.socket), encodeURIComponent(proxy.socket));
      const first = yield* gateway(through, hasWrongClock(fault) ? aheadMs.fault : 0);
      return { fault, first, proxy };
    });
    const [beside, struck] = yield* Effect.all(
      [others, Effect.forEach(faults, struckOf, { concurrency: startsTogether })],
      { concurrency: 2 },
    );
    const play = new Play(cluster, provider, recorder, beside);
    yield* Effect.forkScoped(play.watched);
    yield* Effect.forkScoped(play.slowness.measured);
    const played = (it: Struck) =>
      repeatUntilMet((nth) =>
        Effect.flatMap(nth === 0 ? Effect.succeed(it) : struckOf(it.fault), (of) => play.strike(of, nth)),
      );
    const [last, together] = [
      struck.filter(({ fault }) => strikesAll.has(fault)),
      struck.filter(({ fault }) => !strikesAll.has(fault)),
    ];
    const all = [
      ...(yield* Effect.forEach(together, played, { concurrency: "unbounded" })),
      ...(yield* Effect.forEach(last, played)),
    ];
    return {
      remains: all.flatMap(({ remains }) => remains),
      problems: all.flatMap((it) => it.problems),
      missed: all.flatMap((it) => it.missed),
    };
  });

interface Struck {
  readonly fault: Fault;
  readonly first: Child;
  readonly proxy: SocketProxy.SocketProxy;
}

/** The moment of the fault, in milliseconds since the epoch, and its targets. */
interface Strike {
  readonly at: number;
  /** Runs that were on record at that moment. */
  readonly before: ReadonlySet<string>;
  readonly wasIn: boolean;
  readonly hasMet: boolean;
}

interface Streamed {
  readonly state: StreamState;
  readonly one: StreamClient.Wanted;
}

class Play {
  readonly slowness = new Slowness();
  readonly #cluster: Cluster;
  readonly #provider: FaultProvider["Service"];
  readonly #recorder: RunRecorder["Service"];
  readonly #others: ReadonlyArray<string>;
  /** Names of the streams that a fault has hit. Only their questions are answered. */
  readonly #struck = new Set<string>();
  /** The time at which each run was first seen ended, in milliseconds since the epoch. Holds at most one entry per client request. */
  readonly #endedAt = new Map<string, number>();
  #records: ReadonlyArray<RunRecord> = [];

  constructor(
    cluster: Cluster,
    provider: FaultProvider["Service"],
    recorder: RunRecorder["Service"],
    others: ReadonlyArray<Child>,
  ) {
    this.#cluster = cluster;
    this.#provider = provider;
    this.#recorder = recorder;
    this.#others = others.map(({ said }) => said);
  }

  /** Polls the records: notes when each run has ended, and answers open questions. */
  readonly watched: Effect.Effect<never> = Effect.forever(
    Effect.gen({ self: this }, function* () {
      // The server itself may be down.
      const found = yield* Effect.result(this.#recorder.runs({ limit: 1_000 }));
      if (Result.isSuccess(found)) {
        this.#records = found.success;
        for (const record of this.#records) {
          if (record.end !== undefined && !this.#endedAt.has(record.run_id))
            this.#endedAt.set(record.run_id, Date.now());
          yield* Effect.ignore(this.#answered(record));
        }
      }
      yield* Effect.sleep(lookEveryMs);
    }),
  );

  #recordsOf({ name }: StreamClient.Wanted): ReadonlyArray<RunRecord> {
    return this.#records.filter(({ provider }) => provider.model === name);
  }

  #asked({ name }: StreamClient.Wanted) {
    return Effect.map(this.#provider.log, (rows) => rows.filter(({ script: of }) => of === name));
  }

  /** Answers as a person who wants the response and accepts that the provider's tool may run again. */
  #answered(record: RunRecord) {
    const question = openQuestion(record);
    if (question === undefined || record.state !== "asking" || !this.#struck.has(record.provider.model ?? ""))
      return Effect.void;
    const choice = question.choices.includes("retry") ? "retry" : "stop";
    return this.#recorder.answer({ run_id: record.run_id, revision: question.revision, choice, by: "person" });
  }

  /** Injects a fault for the `nth` time into a gateway that has a stream in every state. */
  strike(it: Struck, nth: number): Effect.Effect<GatewaysPlayed, unknown, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const streams = streamStates.map((state): Streamed => {
        const name = nameOf(it.fault, state, nth);
        return { state, one: StreamClient.makeWanted(name, bodyOf(name, state)) };
      });
      const urls = [it.first.said, ...this.#others] as const;
      const asked: Array<Promise<void>> = [];
      // Streams that break first take long to reach their states on a busy machine. If all started at once, the others would be over.
      for (const breaks of [true, false]) {
        const begun = streams.filter(({ state }) => breaking.has(state) === breaks);
        asked.push(...begun.map(({ one }) => StreamClient.requestUntilWhole(one, urls)));
        yield* this.#until(
          reachedMsMax,
          () => Effect.filter(begun, (stream) => Effect.map(this.#isReached(stream), (reached) => !reached)),
          "not reached",
        );
      }
      const clients = Promise.all(asked);
      const wasIn = yield* Effect.filter(streams, (stream) =>
        Effect.map(this.#isReached(stream), (isIn) => isIn && stream.one.tries.length === 0),
      );
      const struckAt = Date.now();
      const before = new Set(streams.flatMap(({ one }) => this.#recordsOf(one).map(({ run_id }) => run_id)));
      for (const { one } of streams) this.#struck.add(one.name);
      const happening = yield* Effect.forkScoped(injectFault({ ...it, cluster: this.#cluster, awayMs }, it.fault));
      yield* Effect.timeout(
        Effect.promise(() => clients),
        endedMsMax,
      );
      // A client receives the end slightly before it is on record.
      yield* this.#until(
        endedMsMax,
        () => Effect.succeed(streams.filter(({ one }) => this.#recordsOf(one).some(({ end }) => end === undefined))),
        "no end",
      );
      const hasMet = yield* Fiber.join(happening);
      const remains = yield* Effect.forEach(streams, (stream) =>
        this.#remainsOf(it.fault, stream, { at: struckAt, before, hasMet, wasIn: wasIn.includes(stream) }),
      );
      return { remains, problems: remains.flatMap(problems), missed: remains.flatMap((one) => missed(one) ?? []) };
    });
  }

  /** Waits until no stream is left. Dies if states are not reached in time; missing ends are left to the judge. */
  #until(ms: number, left: () => Effect.Effect<ReadonlyArray<Streamed>>, what: "not reached" | "no end") {
    const until = performance.now() + ms;
    return Effect.gen(function* () {
      for (;;) {
        const streams = yield* left();
        if (streams.length === 0) return;
        const isOver = performance.now() > until;
        if (isOver && what === "no end") return;
        if (isOver) return yield* Effect.die(new Error(`${what}: ${streams.map(({ one }) => one.name).join()}`));
        yield* Effect.sleep(lookEveryMs);
      }
    });
  }

  /** A stream whose first request has ended counts as reached, so a starved gateway does not block the play. It is judged as missed. */
  #isReached({ one, state }: Streamed): Effect.Effect<boolean> {
    if (one.tries.length > 0) return Effect.succeed(true);
    return Effect.map(this.#asked(one), (rows) =>
      states[state].isReached({
        asked: rows.length,
        text: one.reading.text,
        calls: one.reading.calls.length,
        record: this.#recordsOf(one)[0],
      }),
    );
  }

  #remainsOf(fault: Fault, { one, state }: Streamed, { at, before, hasMet, wasIn }: Strike) {
    return Effect.gen({ self: this }, function* () {
      const isWhole = one.tries.at(-1)?.outcome === "whole";
      // The responses of a gateway that was killed are gone with it, and one that does not reply in time counts as dead.
      const isThere = isKept.has(fault) && (one.tries.length > 1 || !takesOver.has(fault));
      const isQuick = this.slowness.factor < slownessMax;
      const rows = yield* this.#asked(one);
      const said = Math.max(at, ...rows.map(({ ended_ms }) => ended_ms ?? 0));
      const again =
        isWhole && isThere && isQuick
          ? yield* Effect.promise(() => StreamClient.ask(one, 2, this.#others[1] ?? ""))
          : undefined;
      const all = this.#recordsOf(one);
      const isAhead = all.some(({ run_id, started_at }) => before.has(run_id) && started_at - at > aheadMs.fault / 2);
      const records = all.map((record): Decided => {
        const from = takesOver.has(fault) && before.has(record.run_id) ? at : said;
        const endedAt = this.#endedAt.get(record.run_id);
        return { ...record, lateMs: endedAt === undefined ? undefined : endedAt - from };
      });
      const { length } = yield* this.#asked(one);
      return {
        fault,
        state,
        tries: one.tries,
        again,
        asked: length,
        records,
        slowness: this.slowness.factor,
        wasIn,
        hasMet: hasMet && (!hasWrongClock(fault) || isAhead),
      } satisfies GatewayRemains;
    });
  }
}
