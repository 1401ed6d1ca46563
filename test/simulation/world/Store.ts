/**
 * Plays the store of a scenario: a recorder in memory whose writes take time, fail, die, throw, hang or come late, and which
 * is gone for a while.
 */
import { Effect, Exit } from "effect";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RecorderError, type RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { Journal } from "../Journal.ts";
import type { Scenario, WriteFault } from "../Scenario.ts";
import { runId } from "./Tools.ts";
import { pause } from "./VirtualTime.ts";

type Recorder = RunRecorder["Service"];

/** When a write that comes late comes: behind every limit on a write, in milliseconds. */
const lateMs = 8_000;

/** The store of one scenario. */
export class Store {
  readonly #scenario: Scenario;
  readonly #journal: Journal;
  readonly #memory: Recorder;
  readonly #isCalm: () => boolean;
  #writes = 0;
  #away = 0;

  constructor(scenario: Scenario, journal: Journal, memory: Recorder, isCalm: () => boolean) {
    this.#scenario = scenario;
    this.#journal = journal;
    this.#memory = memory;
    this.#isCalm = isCalm;
  }

  /** The store is gone for so long. */
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

  /** The recorder that a process is given. */
  get recorder(): Recorder {
    const memory = this.#memory;
    const here = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | RecorderError> =>
      Effect.suspend((): Effect.Effect<A, E | RecorderError> => (this.#isAway ? Effect.fail(gone()) : effect));
    return {
      ...memory,
      write: (id, entries) => this.#write(id, entries),
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

  #write(id: string, given: ReadonlyArray<Entry>): Effect.Effect<void, RecorderError> {
    // Which process started the run is drawn by the machine; a journal must come out the same again.
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
    if (fault !== "deaf" && fault !== "late") return made;
    // It comes too late for its caller, if it comes.
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
