/**
 * A reader that leaves at every event of a run: what all readers got together is what one would have got, nothing twice and nothing
 * missing, and the provider was asked as often as for one (L2, L4, L7).
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Stream } from "effect";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
import * as S from "../../runtime/Scripted.ts";
import { leavesAnywhere, names } from "./LeaveCases.ts";
import * as R from "./Readers.ts";

const lingerMs = 30_000;
const bash = { name: "bash", executor: "runtime", effect: "read_only" } as const;
const answer = [
  S.start,
  S.reasoning("hm"),
  S.wait(500),
  S.text("a"),
  S.text("b"),
  S.wait(500),
  S.together(S.text("c"), S.text("d")),
];

/** The attempts of a run, each as its steps. The last one is whole. */
const scripts: Readonly<Record<string, ReadonlyArray<ReadonlyArray<S.Step>>>> = {
  "text and reasoning": [[...answer, S.wait(500), S.done]],
  "a call": [[...answer, S.callStarts("bash"), S.wait(500), S.callReady("bash"), S.wait(500), S.done]],
  "a break before content": [
    [S.start, S.wait(500), S.reset],
    [...answer, S.done],
  ],
  "two breaks in a row": [
    [...answer, S.wait(500), S.reset],
    [S.start, S.text("x"), S.wait(500), S.reset],
    [...answer, S.done],
  ],
  "an error event": [
    [...answer, S.errorEvent({ kind: "overloaded" })],
    [...answer, S.wait(500), S.done],
  ],
};

const starts = (script: ReadonlyArray<ReadonlyArray<S.Step>>) => {
  const provider = S.scripted(...script);
  const options = S.options(provider, { runId: "r", linger: Linger.of(lingerMs), tools: [bash] });
  return { provider, run: Stream.unwrap(Effect.map(StreamProcessor, (it) => it.run(options))) };
};

/** How many events one reader gets, at most. */
const eventsMax = 24;

/** Plays each script with a reader that leaves at each of its events. */
const atEveryEvent = (
  name: string,
  back: (
    first: R.Reading,
    script: ReadonlyArray<ReadonlyArray<S.Step>>,
    requests: () => number,
  ) => Effect.Effect<unknown, never, StreamProcessor>,
) =>
  describe(name, () => {
    for (const [kind, script] of Object.entries(scripts))
      it.effect(kind, () =>
        Effect.forEach(
          Array.from({ length: eventsMax }, (_, at) => at + 1),
          (at) =>
            Effect.gen(function* () {
              const { provider, run } = starts(script);
              const first = yield* R.reads(run, at);
              for (let step = 0; step < 400 && first.end() === undefined; step += 1) yield* R.passed(100);
              if (first.end() !== "left") return;
              yield* back(first, script, () => provider.attempts.length);
            }).pipe(Effect.provide(S.processor(["retry"]))),
        ),
      );
  });

/** What a caller has kept is the whole last response, once each. */
const whole = (events: R.Reading["events"], script: ReadonlyArray<ReadonlyArray<S.Step>>): void => {
  assert.deepStrictEqual(R.kept(events), names(script.at(-1) ?? []));
  const ordinals = R.parts(events);
  assert.strictEqual(new Set(ordinals).size, ordinals.length, "no part twice");
};

atEveryEvent("comes back at once", (first, script, requests) =>
  Effect.gen(function* () {
    const second = yield* R.reads(R.attached(R.after(first.events)));
    yield* R.passed(lingerMs - 200);
    assert.strictEqual(second.end(), "done");
    whole([...first.events, ...second.events], script);
    assert.strictEqual(requests(), script.length);
  }),
);

atEveryEvent("comes back late", (first, script, requests) =>
  Effect.gen(function* () {
    yield* R.passed(lingerMs - 200);
    const second = yield* R.reads(R.attached(R.after(first.events)));
    yield* R.settled;
    assert.strictEqual(second.end(), "done");
    whole([...first.events, ...second.events], script);
    assert.strictEqual(requests(), script.length);
  }),
);

atEveryEvent("comes back from its first event, and again, and once more", (first, script) =>
  Effect.gen(function* () {
    yield* R.passed(300);
    const second = yield* R.reads(R.attached(), Math.max(1, first.events.length - 1));
    yield* R.passed(300);
    const third = yield* R.reads(R.attached(R.after(second.events)), 2);
    yield* R.passed(300);
    const before = [...second.events, ...third.events];
    const last = yield* R.reads(R.attached(R.after(before)));
    yield* R.passed(20_000);
    whole([...before, ...last.events], script);
  }),
);

atEveryEvent("comes back twice in parallel: the later one reads", (first, script, requests) =>
  Effect.gen(function* () {
    const [one, two] = yield* Effect.all([
      R.reads(R.attached(R.after(first.events))),
      R.reads(R.attached(R.after(first.events))),
    ]);
    yield* R.passed(20_000);
    assert.include(["RunInterrupted attached_elsewhere", "done"], one.end());
    whole([...first.events, ...two.events], script);
    assert.strictEqual(requests(), script.length);
  }),
);

atEveryEvent(
  "comes back too late",
  () =>
    Effect.gen(function* () {
      yield* R.passed(lingerMs);
      yield* R.passed(lingerMs);
      assert.strictEqual((yield* R.reads(R.attached())).end(), "AttachRefused unknown");
      const { end } = yield* S.recordOf("r");
      assert.include(["completed stop", "stopped user_cancelled"], `${end?.state} ${end?.reason}`);
    }) as Effect.Effect<unknown, never, StreamProcessor>,
);

describe("any schedule of leaving, attaching and breaking", () => {
  const seeds = 100;
  it.effect(`${seeds} seeds: nothing twice, nothing missing, and no fact that says less than was shown`, () =>
    leavesAnywhere(0, seeds),
  );
});

describe("a reader in a fiber of its own", () => {
  it.effect("that is interrupted while it waits loses nothing", () =>
    Effect.gen(function* () {
      const { run } = starts([[S.start, S.wait(1_000), S.text("a"), S.wait(1_000), S.text("b"), S.done]]);
      const fiber = yield* Effect.forkDetach(Stream.runDrain(run), { startImmediately: true });
      yield* R.passed(1_000);
      yield* Fiber.interrupt(fiber);
      const second = yield* R.reads(R.attached());
      yield* R.passed(2_000);
      assert.deepStrictEqual(R.kept(second.events), ["start", "a", "b", "done"]);
    }).pipe(Effect.provide(S.processor(["retry"]))),
  );
});
