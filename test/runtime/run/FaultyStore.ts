/**
 * Plays a store that fails at one write in each possible way, and then accepts writes again.
 */
import { Clock, Duration, Effect } from "effect";
import { TestClock } from "effect/testing";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import type { RunRecorder } from "../../../src/recorder/RunRecorder.ts";

type Recorder = RunRecorder["Service"];
type Write = ReturnType<Recorder["write"]>;

/** A fault of a write; `made` is the write without it. */
export type Fault = (made: Write) => Write;

const away = Effect.fail(new RecorderError({ reason: "unavailable", run_id: "", message: "the store is away" }));

/** The write after some time of the test's clock. */
const late = (after: Duration.Input, made: Write): Write =>
  Effect.andThen(
    TestClock.testClockWith((clock) => clock.sleep(Duration.fromInputUnsafe(after))),
    made,
  );

/** All faults of a write. */
export const faults: Readonly<Record<string, Fault>> = {
  fails: () => away,
  "fails behind its commit": (made) => Effect.andThen(made, away),
  "is slow": (made) => late("3 seconds", made),
  "is slower than its limit": (made) => late("20 seconds", made),
  hangs: () => Effect.never,
  "hangs and cannot be interrupted": () => Effect.uninterruptible(Effect.never),
  "hangs behind its commit": (made) => Effect.andThen(made, Effect.never),
  "lands long after it was given up": (made) => Effect.uninterruptible(late("1 minute", made)),
  throws: () => {
    throw new Error("the driver threw");
  },
  dies: () => Effect.die(new Error("the driver died")),
  "interrupts itself": () => Effect.interrupt,
  // A recorder in plain JavaScript may return this.
  "gives no effect": () => undefined as unknown as Write,
};

/** A store with its attempts and its accepted entries. */
export interface Store {
  readonly recorder: Recorder;
  readonly tried: () => number;
  /** Accepted entries, in order. */
  readonly taken: ReadonlyArray<Entry>;
  /** Lets another process take a run over, and reports that to this process. */
  readonly loses: (runId: string) => void;
}

/**
 * A durable store over one in memory.
 *
 * @param fault returns the fault of the n-th write, from 1, at its virtual time, if it has one
 */
export const faulty = (
  memory: Recorder,
  fault: (write: number, now: number, entries: ReadonlyArray<Entry>) => Fault | undefined,
): Store => {
  const taken: Array<Entry> = [];
  const listeners = new Set<(runId: string) => boolean>();
  const onLost: NonNullable<Recorder["onLost"]> = (listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  let tried = 0;
  const made = (runId: string, entries: ReadonlyArray<Entry>): Write =>
    Effect.tap(memory.write(runId, entries), () => Effect.sync(() => void taken.push(...entries)));
  const write: Recorder["write"] = (runId, entries) => {
    tried += 1;
    const number = tried;
    const found = fault(number, Number.NaN, entries);
    if (found !== undefined) return found(made(runId, entries));
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      (fault(number, now, entries) ?? same)(made(runId, entries)),
    );
  };
  return {
    recorder: { ...memory, durable: true, digest: (content) => Effect.succeed(`digest of ${content}`), write, onLost },
    loses: (runId) => {
      for (const listener of listeners) listener(runId);
    },
    tried: () => tried,
    taken,
  };
};

const same: Fault = (made) => made;

/** A store that refuses writes for some time, from its n-th write on. */
export const awayFor = (from: number, ms: number) => {
  let since = Number.NaN;
  return (write: number, now: number): Fault | undefined => {
    if (write < from || Number.isNaN(now)) return undefined;
    if (Number.isNaN(since)) since = now;
    return now < since + ms ? faults.fails : undefined;
  };
};
