/**
 * Lets a person answer a dead process's question while a sweep replaces the question or ends its run, over each store: an accepted
 * answer is carried out, and one that came too late is refused.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber } from "effect";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as L from "../../runtime/crash/Lives.ts";
import { type Recorder, record } from "./Bench.ts";
import type { Held, Meeting, Side, Two } from "./Zombies.ts";

/** A question that was open when its process died. */
interface Asked {
  readonly life: L.Life;
  readonly choice: Choice;
  /** The run's end by that answer. */
  readonly end: string;
  /** The reason why the answer is refused if the sweep comes first. */
  readonly tooLate: string;
}

const questions: Readonly<Record<string, Asked>> = {
  "that is put anew: a word on a call": {
    life: L.questioned(L.dispatched),
    choice: "it_ran",
    end: "not_resumable",
    tooLate: "stale_revision",
  },
  "that is put anew: stop": {
    life: L.questioned(L.dispatched),
    choice: "stop",
    end: "tool_outcome_unknown",
    tooLate: "stale_revision",
  },
  "that ends with its run: accept": {
    life: L.questioned(L.facts(L.text)),
    choice: "accept",
    end: "accepted_partial",
    tooLate: "run_ended",
  },
};

/** Lets the answer come at each point of a store at which the sweep's write can be held. */
export const sweptQuestions = <E>(name: string, { points, two }: Meeting<E>): void => {
  describe.each(Object.entries(points))(
    `${name}, with a sweep frozen %s and a person who answers a question`,
    (point, side) => {
      for (const [title, asked] of Object.entries(questions)) {
        it.live(title, () => Effect.scoped(Effect.flatMap(two, (both) => met(both, asked, point, side))));
      }
    },
  );
};

const met = (both: Two, { choice, end, life, tooLate }: Asked, point: string, side: Side) =>
  Effect.gen(function* () {
    const { quick } = both;
    for (const entries of life) yield* quick.write(L.runId, entries.map(L.withoutTranscript));
    yield* quick.release(L.runId);
    const reached = Deferred.makeUnsafe<Held>();
    const sweep = yield* Effect.forkChild(recovered(armed(both, point, reached)));
    const gate = yield* Deferred.await(reached);
    yield* gate.reached;
    const answer = CrashRecovery.answer({ run_id: L.runId, revision: 1, choice, by: "person" }).pipe(
      Effect.provideService(RunRecorder, quick),
      Effect.match({ onFailure: ({ reason }) => reason, onSuccess: () => "taken" }),
    );
    const answering = yield* Effect.forkChild(answer, { startImmediately: true });
    // During a commit the answer may have to wait for it.
    if (side !== "during") yield* Fiber.await(answering);
    yield* gate.release;
    yield* Fiber.join(sweep);
    const outcome = yield* Fiber.join(answering);
    const orders = { before: ["taken"], after: [tooLate], during: ["taken", tooLate] }[side];
    assert.include(orders, outcome);
    yield* recovered(quick);
    const run = yield* record(quick, L.runId);
    const [first, ...anew] = run.questions;
    if (outcome !== "taken") {
      assert.deepStrictEqual([first?.answer, anew.length], [undefined, tooLate === "run_ended" ? 0 : 1]);
      return;
    }
    assert.deepStrictEqual([first?.answer, anew, run.end?.reason], [choice, [], end]);
    assert.strictEqual(run.calls[0]?.verdict, choice === "it_ran" ? choice : undefined);
  });

const recovered = (recorder: Recorder) => Effect.provideService(CrashRecovery.recover(), RunRecorder, recorder);

/** The slow process's recorder, which is held at the point by the first write of its sweep to the run. */
const armed = ({ hold, slow }: Two, point: string, reached: Deferred.Deferred<Held>): Recorder => ({
  ...slow,
  write: (id: string, entries: ReadonlyArray<Entry>) =>
    Effect.suspend(() => {
      if (!Deferred.isDoneUnsafe(reached)) Deferred.doneUnsafe(reached, Effect.succeed(hold(point)));
      return slow.write(id, entries);
    }),
});
