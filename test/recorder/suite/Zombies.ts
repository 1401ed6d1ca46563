/**
 * Lets two processes meet over one store, and holds one of them at each point at which its store can be stopped. The result must
 * be that of one order of the two, and at most one of them drives the run afterwards.
 *
 * A store provides two recorders and its points; the meetings are the same for all stores.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, type Scope } from "effect";
import * as E from "../Entries.ts";
import { type Recorder, record } from "./Bench.ts";

/** An operation that is held. */
export interface Held {
  /** Waits until the operation has reached its point. */
  readonly reached: Effect.Effect<void>;
  /** Continues the operation. */
  readonly release: Effect.Effect<void>;
}

/** Two processes over one store. */
export interface Two {
  readonly slow: Recorder;
  readonly quick: Recorder;
  /** Holds the next operation of the slow process at a point, once. */
  readonly hold: (point: string) => Held;
}

/**
 * The side at which an operation is held: `before` its store has decided anything, so that the other goes first; `after` it was
 * accepted and before its process knows; or `during`, when the other may have to wait for it, and either may go first.
 */
export type Side = "before" | "during" | "after";

/** A store whose processes can meet. */
export interface Meeting<E> {
  readonly two: Effect.Effect<Two, E, Scope.Scope>;
  readonly points: Readonly<Record<string, Side>>;
  /** True if both are one process, so that neither can be fenced. */
  readonly oneProcess?: boolean;
}

/** The outcome of an operation: `ok`, or the reason of its refusal. */
type Outcome = string;

type Operation = (it: Recorder, both: Two) => Effect.Effect<unknown, { readonly reason: string }>;

/** Two operations that meet. */
interface Interleaving {
  readonly given: (both: Two) => Effect.Effect<unknown, { readonly reason: string }>;
  readonly slow: Operation;
  readonly quick: Operation;
  /** The outcomes of both if the slow one goes first. */
  readonly slowFirst: readonly [slow: Outcome, quick: Outcome];
  readonly quickFirst: readonly [slow: Outcome, quick: Outcome];
  /** True if the meeting only applies to two processes, not to two callers in one. */
  readonly apart?: true;
  /** Checks the store after both. */
  readonly behind?: (
    both: Two,
    outcomes: readonly [Outcome, Outcome],
  ) => Effect.Effect<unknown, { readonly reason: string }>;
}

const write = (...entries: Parameters<Recorder["write"]>[1]): Operation => {
  return (it) => it.write("r", entries);
};
const claim: Operation = (it) => it.claim("r");
const answer =
  (choice: "retry" | "stop"): Operation =>
  (it) =>
    it.answer({ run_id: "r", revision: 1, choice, by: "person" });

/** Declares the slow process dead and takes its run. */
const taken: Operation = (it) => Effect.andThen(fenced(it), it.claim("r"));
const fenced = (it: Recorder) => it.processEnded?.("slow") ?? Effect.die(new Error("the store fences no process"));

const live = [E.begun("r"), E.attempt(1)];
const asking = [...live, E.opened("r", 1), E.asked("r", 1)];
const grown = E.raised(1, { progress: "output", shown: "text", text_through: 9 });

const notes = (it: Recorder) => Effect.map(record(it, "r"), ({ evidence }) => evidence.first.length);
const answered = (it: Recorder) => Effect.map(record(it, "r"), ({ questions }) => questions[0]?.answer);

/** Checks that the next write of the old owner finds out if it has lost the run. */
const isLostOrDriven = (both: Two) =>
  Effect.gen(function* () {
    const orphans = (yield* both.quick.orphans(10, { waits: false })).map(({ run_id }) => run_id);
    const written = yield* outcomeOf(both.slow.write("r", [E.attempt(9)]));
    assert.deepStrictEqual([orphans.includes("r"), written], orphans.includes("r") ? [true, "fenced"] : [false, "ok"]);
  });

/** All meetings of two processes over a run. */
export const interleavings: Readonly<Record<string, Interleaving>> = {
  "claim against claim: one gets the run": {
    given: ({ slow }) => slow.write("r", [E.begun("r"), E.parked("interrupted")]),
    slow: claim,
    quick: claim,
    slowFirst: ["ok", "owned"],
    quickFirst: ["owned", "ok"],
  },
  "start against start: one begins the run": {
    given: () => Effect.void,
    slow: write(E.begun("r")),
    quick: write(E.begun("r")),
    slowFirst: ["ok", "fenced"],
    quickFirst: ["fenced", "ok"],
    apart: true,
  },
  "answer against answer: the first counts": {
    given: ({ quick }) => quick.write("r", asking),
    slow: answer("retry"),
    quick: answer("stop"),
    slowFirst: ["ok", "already_answered"],
    quickFirst: ["already_answered", "ok"],
    behind: ({ quick }, [slow]) =>
      Effect.map(answered(quick), (it) => assert.strictEqual(it, slow === "ok" ? "retry" : "stop")),
  },
  "answer against write: an answer to what has grown meanwhile is refused": {
    given: ({ quick }) => quick.write("r", asking),
    slow: answer("retry"),
    quick: write(grown),
    slowFirst: ["ok", "ok"],
    quickFirst: ["facts_grown", "ok"],
    behind: ({ quick }, [slow]) =>
      Effect.map(answered(quick), (it) => assert.strictEqual(it, slow === "ok" ? "retry" : undefined)),
  },
  "write against answer: the write is taken, and the answer stays": {
    given: ({ slow }) => slow.write("r", asking),
    slow: write(E.noted(1)),
    quick: answer("retry"),
    slowFirst: ["ok", "ok"],
    quickFirst: ["ok", "ok"],
    behind: ({ quick }) =>
      Effect.gen(function* () {
        assert.deepStrictEqual([yield* notes(quick), yield* answered(quick)], [1, "retry"]);
      }),
  },
  "a write that rests on an open question against its answer: the answer stays, or finds the run ended": {
    given: ({ slow }) => slow.write("r", asking),
    slow: write(E.stillOpen(1), E.ended()),
    quick: answer("retry"),
    slowFirst: ["ok", "run_ended"],
    quickFirst: ["answered", "ok"],
    behind: ({ quick }, [slow]) =>
      Effect.gen(function* () {
        const { state } = yield* record(quick, "r");
        const left = [state, yield* answered(quick)];
        assert.deepStrictEqual(left, slow === "ok" ? ["ended", undefined] : ["live", "retry"]);
      }),
  },
  "a run is given back while another process claims it": {
    given: ({ slow }) => Effect.andThen(slow.write("r", [E.begun("r"), E.parked("interrupted")]), slow.claim("r")),
    slow: (it) => it.release("r"),
    quick: claim,
    slowFirst: ["ok", "ok"],
    quickFirst: ["ok", "owned"],
  },
  "write against fence: it is on record for the one that claims, or refused": {
    given: ({ slow }) => slow.write("r", live),
    slow: write(E.noted(1)),
    quick: taken,
    slowFirst: ["ok", "ok"],
    quickFirst: ["fenced", "ok"],
    apart: true,
    behind: ({ quick }, [slow]) => Effect.map(notes(quick), (it) => assert.strictEqual(it, slow === "ok" ? 1 : 0)),
  },
  "end against fence: a run has one end": {
    given: ({ slow }) => slow.write("r", live),
    slow: write(E.ended()),
    quick: taken,
    slowFirst: ["ok", "run_ended"],
    quickFirst: ["fenced", "ok"],
    apart: true,
    behind: ({ quick }, [slow]) =>
      Effect.gen(function* () {
        const stopped = { state: "stopped", reason: "text_shown" } as const;
        if (slow !== "ok") yield* quick.write("r", [E.ended(stopped)]);
        assert.strictEqual((yield* record(quick, "r")).end?.state, slow === "ok" ? "completed" : "stopped");
      }),
  },
  "answer against fence: the one that claims has the answer, or it comes behind the claim": {
    given: ({ slow }) => slow.write("r", asking),
    slow: answer("retry"),
    quick: taken,
    slowFirst: ["ok", "ok"],
    quickFirst: ["ok", "ok"],
    apart: true,
    behind: ({ quick }) => Effect.map(answered(quick), (it) => assert.strictEqual(it, "retry")),
  },
  "a run is given back while its process is fenced": {
    given: ({ slow }) => slow.write("r", live),
    slow: (it) => it.release("r"),
    quick: taken,
    slowFirst: ["ok", "ok"],
    quickFirst: ["ok", "ok"],
    apart: true,
  },
  "start against fence: the run belongs to a new lease, or is lost with the others": {
    given: ({ slow }) => slow.write("old", [E.begun("old")]),
    slow: write(...live),
    quick: fenced,
    slowFirst: ["ok", "ok"],
    quickFirst: ["ok", "ok"],
    apart: true,
    behind: isLostOrDriven,
  },
  "claim against fence: the run belongs to a new lease, or is lost with the others": {
    given: ({ quick, slow }) =>
      Effect.andThen(slow.write("old", [E.begun("old")]), quick.write("r", [E.begun("r"), E.parked("interrupted")])),
    slow: claim,
    quick: fenced,
    slowFirst: ["ok", "ok"],
    quickFirst: ["ok", "ok"],
    apart: true,
    behind: isLostOrDriven,
  },
};

/** Lets each pair meet at each point of a store. */
export const zombies = <E>(name: string, meeting: Meeting<E>): void => {
  const points = Object.entries(meeting.points);
  const found = Object.entries(interleavings).filter(([, it]) => !(meeting.oneProcess && it.apart));
  describe.each(points)(`${name}, with a process frozen %s`, (point, side) => {
    for (const [title, interleaving] of found) {
      it.live(title, () => Effect.scoped(met(meeting, interleaving, point, side)));
    }
  });
};

const met = <E>(meeting: Meeting<E>, it: Interleaving, point: string, side: Side) =>
  Effect.gen(function* () {
    const both = yield* meeting.two;
    yield* it.given(both);
    const gate = both.hold(point);
    const slow = yield* Effect.forkChild(outcomeOf(it.slow(both.slow, both)));
    yield* gate.reached;
    const quick = yield* Effect.forkChild(outcomeOf(it.quick(both.quick, both)), { startImmediately: true });
    // During a commit the other may wait for it.
    if (side !== "during") yield* Fiber.await(quick);
    yield* gate.release;
    const outcomes = [yield* Fiber.join(slow), yield* Fiber.join(quick)] as const;
    const orders = { before: [it.quickFirst], after: [it.slowFirst], during: [it.slowFirst, it.quickFirst] }[side];
    assert.deepInclude(orders, outcomes);
    if (it.behind !== undefined) yield* it.behind(both, outcomes);
    if (meeting.oneProcess !== true) yield* oneDrives(both);
  });

/** Checks that at most one process writes the run from here on. */
const oneDrives = ({ quick, slow }: Two) =>
  Effect.gen(function* () {
    const wrote = [
      yield* outcomeOf(slow.write("r", [E.attempt(20)])),
      yield* outcomeOf(quick.write("r", [E.attempt(21)])),
    ];
    assert.isAtMost(wrote.filter((it) => it === "ok").length, 1, wrote.join());
  });

const outcomeOf = (made: Effect.Effect<unknown, { readonly reason: string }>): Effect.Effect<Outcome> =>
  Effect.match(made, { onFailure: ({ reason }) => reason, onSuccess: () => "ok" });
