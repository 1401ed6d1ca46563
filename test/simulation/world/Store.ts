/**
 * Plays the store of a scenario: a recorder in memory whose writes can be slow, fail, die, throw, hang or come late, and which is
 * away for a while.
 */
import { type Context, Effect, Exit, Option } from "effect";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RecorderError, type RunRecorder, withCommit } from "../../../src/recorder/RunRecorder.ts";
import type { Journal } from "../Journal.ts";
import type { Scenario, WriteFault } from "../Scenario.ts";
import { runId } from "./Tools.ts";
import { pause } from "./VirtualTime.ts";

type Recorder = RunRecorder["Service"];

/** Delay of a late write, longer than any limit on writes, in milliseconds. */
const lateMs = 8_000;

export class Store {
  readonly #scenario: Scenario;
  readonly #journal: Journal;
  readonly #memory: Recorder;
  readonly #isCalm: () => boolean;
  readonly #services: Context.Context<never>;
  #writes = 0;
  #away = 0;

  /** @param services services of the fibers that run commits */
  constructor(
    scenario: Scenario,
    journal: Journal,
    memory: Recorder,
    isCalm: () => boolean,
    services: Context.Context<never>,
  ) {
    this.#services = services;
    this.#scenario = scenario;
    this.#journal = journal;
    this.#memory = memory;
    this.#isCalm = isCalm;
  }

  /** Makes the store unavailable for a time. */
  leaves(ms: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#away += 1;
      return Effect.andThen(
        pause(ms),
        Effect.sync(() => {
          this.#away -= 1;
        }),
      );
    });
  }

  /** The recorder of a process. */
  get recorder(): Recorder {
    const memory = this.#memory;
    const here = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | RecorderError> =>
      Effect.suspend((): Effect.Effect<A, E | RecorderError> => (this.#isAway ? Effect.fail(gone()) : effect));
    return {
      ...memory,
      durable: this.#scenario.world.record !== "memory",
      write: this.#committing((id, entries) => this.#write(id, entries)),
      run: (id) => here(memory.run(id)),
      incidents: (id) => here(memory.incidents(id)),
      runs: (query) => here(memory.runs(query)),
      claim: (id) => here(memory.claim(id)),
      answer: (given) => here(memory.answer(given)),
      digest: (content) => this.#digest(content),
    };
  }

  get #isAway(): boolean {
    return this.#away > 0 && !this.#isCalm();
  }

  #digest(content: string): ReturnType<Recorder["digest"]> {
    // A real digest takes real time, which a virtual clock does not wait for.
    const digest = Effect.succeed(`digest of ${content}`);
    if (this.#isCalm()) return digest;
    switch (this.#scenario.world.digest) {
      case "fails":
        return Effect.fail(gone());
      case "hangs":
        return Effect.never;
      case "throws":
        throw new Error("the digest threw");
      default:
        return digest;
    }
  }

  /** Adds the fiberless commit. A store that must answer soon leaves a faulty write to the effect. */
  #committing(write: Recorder["write"]): Recorder["write"] {
    const { commit, faults } = this.#scenario.world;
    if (commit === "none") return write;
    return withCommit(write, commit, (id, entries, onDone) => {
      const fault = faults.find(({ at }) => at === this.#writes)?.how;
      if (commit === "soon" && fault !== undefined && !this.#isCalm()) return onDone("undecided");
      const written = Effect.andThen(Effect.yieldNow, write(id, entries));
      Effect.runForkWith(this.#services)(Effect.exit(written)).addObserver((exit) => {
        const outcome = Exit.isSuccess(exit) ? exit.value : undefined;
        if (outcome === undefined || Exit.isSuccess(outcome)) onDone(outcome === undefined ? "undecided" : "recorded");
        else onDone(Option.getOrElse(Exit.findErrorOption(outcome), () => "undecided" as const));
      });
    });
  }

  #write(id: string, given: ReadonlyArray<Entry>): Effect.Effect<void, RecorderError> {
    // The machine draws the id of the process that started the run, but a journal must be reproducible.
    const entries = given.map((it) => (it._tag === "RunStarted" ? { ...it, started_by: "simulated" } : it));
    const number = this.#writes++;
    const fault = this.#isCalm() ? undefined : this.#scenario.world.faults.find(({ at }) => at === number)?.how;
    this.#journal.add({ what: "writing", entries });
    if (fault === "throw") {
      this.#journal.add({ what: "written", entries, ok: false });
      throw new Error("the recorder threw");
    }
    const made = Effect.onExit(this.#made(id, given, number, fault), (exit) =>
      Effect.sync(() => this.#journal.add({ what: "written", entries, ok: Exit.isSuccess(exit) })),
    );
    // A commit without a fiber cannot be interrupted; its caller only stops waiting.
    const isGivenUp =
      fault === "deaf" || fault === "late" || (fault === "hang" && this.#scenario.world.commit === "late");
    if (!isGivenUp) return made;
    // If the write completes, it is too late for its caller.
    this.#journal.add({ what: "written", entries, ok: false });
    return Effect.uninterruptible(made);
  }

  #made(
    id: string,
    entries: ReadonlyArray<Entry>,
    number: number,
    fault: WriteFault["how"] | undefined,
  ): Effect.Effect<void, RecorderError> {
    const { delays, dies, fails } = this.#scenario.recorder;
    const commit = this.#memory.write(id, entries);
    if (this.#isCalm()) return commit;
    if (fault === "hang" || fault === "deaf") return Effect.never;
    if (fault === "late") return Effect.andThen(pause(lateMs), commit);
    if (dies.includes(number)) return Effect.die(new Error("the recorder died"));
    const made = Effect.suspend(() => (fails.includes(number) || this.#isAway ? Effect.fail(gone()) : commit));
    return Effect.andThen(pause(delays[number % delays.length] ?? 0), made);
  }
}

const gone = () => new RecorderError({ reason: "unavailable", run_id: runId, message: "simulated" });
