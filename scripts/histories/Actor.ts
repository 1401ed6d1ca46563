/**
 * One life of a process in a history: runs randomly drawn operations on a few runs and logs each before and after. It may be killed or
 * stopped (SIGSTOP) at any moment. It takes one JSON argument and exits with code 0 on SIGTERM.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect";
import type { Choice } from "../../src/domain/Decision.ts";
import { PostgresRunRecorder } from "../../src/recorder/postgres/PostgresRunRecorder.ts";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../../test/recorder/Entries.ts";
import { seeded } from "../../test/Seeded.ts";
import { ShiftedClock } from "../kill/ShiftedClock.ts";
import { HistoryLog, type Kind, now, storeAwayCode } from "./History.ts";

/** The argument that the parent passes. */
export const Life = Schema.fromJsonString(
  Schema.Struct({
    actor: Schema.String,
    seed: Schema.Natural,
    /** Ids of this life's operations are greater than this. */
    ids: Schema.Natural,
    log: Schema.String,
    /** Path of an SQLite file, or a PostgreSQL address. */
    store: Schema.String,
    leaseMs: Schema.Natural,
    /** Offset of its wall clock, in milliseconds; positive is ahead. */
    aheadMs: Schema.Finite,
    /** Earlier lives that the parent reports as ended. */
    ended: Schema.Array(Schema.String),
  }),
);
type Life = typeof Life.Type;

/** Number of concurrent runs, and of fibers that operate on them. */
const slots = 5;
const hands = 6;

/** Maximum notes of a run, below the maximum that a record keeps, and maximum questions. */
const notesMax = 40;
const questionsMax = 10;

/** This life's view of a run that it believes it owns. */
interface Driven {
  notes: number;
  revision: number;
}

const answersOf = ["retry", "accept", "stop"] as const satisfies ReadonlyArray<Choice>;

class Actor {
  readonly #life: Life;
  readonly #recorder: RunRecorder["Service"];
  readonly #log: HistoryLog;
  readonly #random: () => number;
  readonly #driven = new Map<string, Driven>();
  /** The last question this life asked in each run. Repeating a revision would count as a retry of the same write. */
  readonly #asked = new Map<string, number>();
  readonly #generations = Array.from({ length: slots }, () => 0);
  #n = 0;

  constructor(life: Life, recorder: RunRecorder["Service"]) {
    this.#life = life;
    this.#recorder = recorder;
    this.#log = new HistoryLog(life.log);
    this.#random = seeded(life.seed);
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Runs one operation after another. */
  readonly works: Effect.Effect<never> = Effect.forever(
    Effect.suspend(() => Effect.andThen(this.#next(), Effect.sleep(this.#below(15)))),
  );

  #next(): Effect.Effect<unknown> {
    const slot = this.#below(slots);
    const run = `h${slot}-${this.#generations[slot]}`;
    const dice = this.#random();
    const mine = this.#driven.get(run);
    if (mine === undefined) {
      if (dice < 0.3) return this.#claim(run, slot);
      if (dice < 0.6) return this.#start(run);
      return dice < 0.85 ? this.#answer(run) : this.#read(run, slot);
    }
    if (mine.notes >= notesMax || dice < 0.03) return this.#end(run);
    if (dice < 0.1 && mine.revision < questionsMax) return this.#ask(run, mine);
    if (dice < 0.15) return this.#park(run);
    if (dice < 0.2) return this.#release(run);
    if (dice < 0.3) return this.#answer(run);
    return dice < 0.4 ? this.#read(run, slot) : this.#note(run, mine);
  }

  #start(run: string) {
    const entries = () => [E.begun(run), E.attempt(1)];
    return this.#does(
      "start",
      run,
      () => this.#recorder.write(run, entries()),
      {},
      () => {
        this.#driven.set(run, { notes: 0, revision: 0 });
      },
    );
  }

  #note(run: string, mine: Driven) {
    mine.notes += 1;
    return this.#does("note", run, (id) => this.#recorder.write(run, [E.noted(id)]));
  }

  #ask(run: string, mine: Driven) {
    const revision = Math.max(mine.revision, this.#asked.get(run) ?? 0) + 1;
    mine.revision = revision;
    this.#asked.set(run, revision);
    const asked = (id: number) => {
      const entry = E.asked(run, revision);
      return entry._tag === "QuestionAsked" ? [{ ...entry, question: { ...entry.question, asked_at: id } }] : [];
    };
    return this.#does("ask", run, (id) => this.#recorder.write(run, asked(id)), { revision });
  }

  #park(run: string) {
    const parked = this.#recorder.write(run, [E.parked("interrupted")]);
    return this.#does(
      "park",
      run,
      () => parked,
      {},
      () => void this.#driven.delete(run),
    );
  }

  #end(run: string) {
    return this.#does(
      "end",
      run,
      (id) => this.#recorder.write(run, [E.ended({ at: id })]),
      {},
      () => this.#markLost(run),
    );
  }

  #release(run: string) {
    return this.#does(
      "release",
      run,
      () => this.#recorder.release(run),
      {},
      () => void this.#driven.delete(run),
    );
  }

  #answer(run: string) {
    const given = { revision: 1 + this.#below(4), choice: answersOf[this.#below(3)] ?? "stop" };
    return this.#does("answer", run, () => this.#recorder.answer({ run_id: run, ...given, by: "person" }), given);
  }

  #read(run: string, slot: number) {
    return this.#does(
      "read",
      run,
      () => this.#recorder.run(run),
      {},
      (found) => {
        if (found?.state === "ended") this.#passes(slot, run);
      },
    );
  }

  #claim(run: string, slot: number) {
    const claimed = Effect.tapError(this.#recorder.claim(run), ({ reason }) =>
      Effect.sync(() => {
        if (reason === "run_ended") this.#passes(slot, run);
      }),
    );
    return this.#does(
      "claim",
      run,
      () => claimed,
      {},
      (record) => {
        const revision = Math.max(0, ...record.questions.map((it) => it.revision));
        this.#driven.set(run, { notes: notesOf(record).length, revision });
      },
    );
  }

  #passes(slot: number, run: string): void {
    if (run === `h${slot}-${this.#generations[slot]}`) this.#generations[slot] = (this.#generations[slot] ?? 0) + 1;
  }

  #markLost(run: string): void {
    this.#driven.delete(run);
  }

  /** Logs an operation, runs it, and logs its outcome. */
  #does<A>(
    kind: Kind,
    run: string,
    operation: (id: number) => Effect.Effect<A, { readonly reason: string; readonly message: string }>,
    more: { readonly revision?: number; readonly choice?: string } = {},
    taken: (value: A) => void = () => undefined,
  ): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#n += 1;
      const n = this.#n;
      const id = this.#life.ids + n;
      this.#log.write({ n, kind, run, id, ...more, from: now() });
      return Effect.match(operation(id), {
        onSuccess: (value) => {
          const record = isRecord(value) ? { saw: notesOf(value), asked: questionsOf(value) } : {};
          this.#log.write({ n, to: now(), outcome: kind === "release" ? "unknown" : "ok", ...record });
          taken(value);
        },
        onFailure: ({ message, reason }) => {
          const outcome = message.includes("we cannot tell") && reason === "unavailable" ? "unknown" : "refused";
          this.#log.write({ n, to: now(), outcome, reason });
          if (["fenced", "owned", "run_ended"].includes(reason)) this.#markLost(run);
        },
      });
    });
  }
}

const isRecord = (value: unknown): value is RunRecord =>
  typeof value === "object" && value !== null && "evidence" in value;

const notesOf = ({ evidence }: RunRecord): ReadonlyArray<number> =>
  [...evidence.first, ...evidence.last].map(({ at_ms }) => at_ms);

const questionsOf = ({ questions }: RunRecord): ReadonlyArray<number> =>
  questions.flatMap(({ asked_at }) => (asked_at === undefined ? [] : [asked_at]));

const layerOf = ({ actor, leaseMs, store }: Life) => {
  const options = { process: actor, leaseMs, retention: false } as const;
  return store.startsWith("postgres:")
    ? PostgresRunRecorder.layer({ ...options, address: store })
    : SqlRunRecorder.layerFile({ ...options, file: store, synchronous: "normal" });
};

const live = (life: Life) =>
  Effect.gen(function* () {
    const clock = new ShiftedClock(yield* Clock.Clock, life.aheadMs);
    const services = yield* Effect.provideService(Layer.build(layerOf(life)), Clock.Clock, clock).pipe(
      Effect.tapError(({ reason }) =>
        reason === "unavailable" ? Effect.sync(() => process.exit(storeAwayCode)) : Effect.void,
      ),
    );
    const recorder = Context.get(services, RunRecorder);
    const actor = new Actor(life, recorder);
    process.stdout.write("ready\n");
    for (const it of life.ended) yield* Effect.ignore(recorder.processEnded?.(it) ?? Effect.void);
    const asked = Effect.callback<void>((resume) => void process.once("SIGTERM", () => resume(Effect.void)));
    const works = Effect.all(
      Array.from({ length: hands }, () => actor.works),
      { concurrency: "unbounded" },
    );
    yield* Effect.provideService(Effect.raceFirst(works, asked), Clock.Clock, clock);
  });

await Effect.runPromise(Effect.scoped(live(Schema.decodeSync(Life)(process.argv[2] ?? "{}"))));
process.exit(0);
