/**
 * A run with a whole response ends in the same step as its source, without a driver. With any store its end is recorded after everything
 * was handed over, and a response that only looks whole does not count.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, Stream } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { fromReader, type Polled } from "../../../src/runtime/attempt/AsyncSource.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { Presence } from "../../../src/stages/output/Presence.ts";
import { inGroups, take } from "../../recorder/Committing.ts";
import * as S from "../Scripted.ts";

const hello: S.ScriptedPart = { name: "hello", says: Observation.text(5) };
const done: S.ScriptedPart = { name: "done", says: Observation.terminal("stop") };
const calls: S.ScriptedPart = {
  name: "calls",
  says: Observation.calls([
    { choice: 0, ordinal: 0, id: "id0", tool: "bash", executor: "runtime", phase: "ready", input: "{}" },
  ]),
};

/** A source that is read directly: these parts, each in a separate step, and then its end. */
const source = (parts: ReadonlyArray<S.ScriptedPart>) => () => {
  const given = parts.flatMap((part): Array<Polled<S.ScriptedPart>> => [{ _tag: "chunk", chunk: [part] }, undefined]);
  const polled = [...given, { _tag: "end" } satisfies Polled<S.ScriptedPart>].values();
  return fromReader<S.ScriptedPart, S.ProviderBroke>(
    () => ({ poll: () => polled.next().value, wait: (wake) => void setImmediate(wake), close: () => undefined }),
    () => new S.ProviderBroke({ kind: "truncated" }),
  );
};

/** The reason why a write with an entry is refused, if it is. */
type Refuses = (entry: Entry) => RecorderError["reason"] | undefined;

/** Stores that commit in the same step, in a group in a later one, and in their own time. */
const stores = {
  "takes a write at once": (recorder: RunRecorder["Service"]) => recorder,
  "takes writes together": (recorder: RunRecorder["Service"]) =>
    inGroups(recorder, (runId, entries, told) => {
      setImmediate(() => take(recorder, runId, entries, told));
      return true;
    }),
  "takes its time": (recorder: RunRecorder["Service"]) => ({
    ...recorder,
    write: (runId: string, entries: ReadonlyArray<Entry>) =>
      Effect.andThen(Effect.yieldNow, recorder.write(runId, entries)),
  }),
} as const;

const layer = (store: keyof typeof stores, refuses?: Refuses) =>
  StreamProcessor.layer.pipe(
    Layer.provideMerge(
      Layer.effect(
        RunRecorder,
        Effect.map(Layer.build(RunRecorder.layerMemory()), (built) => {
          const recorder = stores[store](Context.get(built, RunRecorder));
          if (refuses === undefined) return recorder;
          const refused = (run_id: string, entries: ReadonlyArray<Entry>) =>
            entries
              .flatMap((entry) => refuses(entry) ?? [])
              .map((reason) => new RecorderError({ reason, run_id, message: reason }))[0];
          return {
            ...recorder,
            write: (runId: string, entries: ReadonlyArray<Entry>) => {
              const error = refused(runId, entries);
              return error === undefined ? recorder.write(runId, entries) : Effect.fail(error);
            },
          };
        }),
      ),
    ),
    Layer.provide(UserDecisions.layerHeadless()),
  );

/** Throws when a run releases what it holds. */
class Faulty extends Presence {
  override clearListener(): void {
    throw new Error("a defect");
  }
}

const budget = { max_auto_retries: 0, max_not_processed: 0 };

/** The events of a run with these parts, as words, and the end of its stream. */
const played = Effect.fnUntraced(function* (parts: ReadonlyArray<S.ScriptedPart>, more: S.More = {}) {
  const events: Array<string> = [];
  const processor = yield* StreamProcessor;
  const options = S.options({ attempt: source(parts) }, { runId: "r", budget, ...more });
  const exit = yield* Effect.exit(
    Stream.runForEach(processor.run(options), (event) =>
      Effect.sync(() => void events.push(event._tag === "Part" ? event.part.name : event._tag)),
    ),
  );
  const record = yield* Effect.flatMap(RunRecorder, (recorder) => recorder.run("r"));
  return { events, exit, record };
});

describe("A run whose response is whole", () => {
  for (const store of Object.keys(stores) as ReadonlyArray<keyof typeof stores>) {
    it.live(`has its end on record before its caller learns of it, if the store ${store}`, () =>
      Effect.gen(function* () {
        const { events, exit, record } = yield* played([hello, done]);
        assert.isTrue(Exit.isSuccess(exit));
        assert.deepStrictEqual(events, ["AttemptStarted", "hello", "done", "RunCompleted"]);
        assert.deepStrictEqual(
          [record?.state, record?.end?.state, record?.end?.reason],
          ["ended", "completed", "stop"],
        );
        assert.deepStrictEqual(
          record?.evidence.first.map(({ event }) => event),
          ["shown", "terminal_candidate", "source_ended", "end"],
        );
        assert.strictEqual(record?.attempts[0]?.facts.terminal_seen, true);
      }).pipe(Effect.provide(layer(store))),
    );

    it.live(`hands over everything held before it reports its completion, if the store ${store}`, () =>
      Effect.gen(function* () {
        const { events, record } = yield* played([hello, done], { reveal: "on_complete" });
        assert.deepStrictEqual(events, ["AttemptStarted", "hello", "done", "RunCompleted"]);
        assert.strictEqual(record?.end?.state, "completed");
      }).pipe(Effect.provide(layer(store))),
    );

    it.live(`hands over what has waited for its reader before it reports its completion, if the store ${store}`, () =>
      Effect.gen(function* () {
        const presence = new Presence();
        presence.markAway();
        const { events, record } = yield* played([hello, done], { taps: { presence } });
        assert.deepStrictEqual(events, ["AttemptStarted", "hello", "done", "RunCompleted"]);
        assert.deepStrictEqual([record?.end?.state, record?.attempts[0]?.facts.shown], ["completed", "text"]);
      }).pipe(Effect.provide(layer(store))),
    );

    it.live(`does not count as whole without its marker, if the store ${store}`, () =>
      Effect.gen(function* () {
        const { events, exit, record } = yield* played([hello]);
        assert.strictEqual(S.errorOf(exit)?.failure.kind, "truncated");
        assert.notInclude(events, "RunCompleted");
        assert.strictEqual(record?.end?.state, "stopped");
      }).pipe(Effect.provide(layer(store))),
    );

    it.live(`is forgotten by its processor, which closes, if the store ${store}`, () =>
      Effect.gen(function* () {
        yield* played([hello, done]);
        const processor = yield* StreamProcessor;
        assert.isFalse(yield* processor.cancel("r"));
        yield* processor.close("the test is over");
      }).pipe(Effect.provide(layer(store))),
    );
  }

  it.live("is not reported as whole if another process owns it by its end", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* played([hello, done]);
      assert.notInclude(events, "RunCompleted");
      assert.strictEqual(S.errorOf(exit)?.reason, "taken_over");
    }).pipe(Effect.provide(layer("takes its time", (entry) => (entry._tag === "RunEnded" ? "fenced" : undefined)))),
  );

  it.live("is not reported as whole if it was lost before its end, and its call is not handed over", () =>
    Effect.gen(function* () {
      const { events, exit } = yield* played([calls, done]);
      assert.deepStrictEqual(events, ["AttemptStarted"]);
      assert.strictEqual(S.errorOf(exit)?.reason, "taken_over");
    }).pipe(
      Effect.provide(layer("takes its time", (entry) => (entry._tag === "CallHandedOver" ? "fenced" : undefined))),
    ),
  );

  it.live("whose end meets a defect ends its stream with it", () =>
    Effect.gen(function* () {
      const { exit } = yield* played([hello, done], { taps: { presence: new Faulty() } });
      assert.isTrue(Exit.hasDies(exit));
      yield* (yield* StreamProcessor).close("the test is over");
    }).pipe(Effect.timeout("10 seconds"), Effect.provide(layer("takes a write at once"))),
  );

  it.live("that broke and whose end meets a defect ends its stream with it", () =>
    Effect.gen(function* () {
      const { exit } = yield* played([hello], { taps: { presence: new Faulty() } });
      assert.isTrue(Exit.hasDies(exit));
      yield* (yield* StreamProcessor).close("the test is over");
    }).pipe(Effect.timeout("10 seconds"), Effect.provide(layer("takes a write at once"))),
  );

  for (const [how, parts, state] of [
    ["whole", [hello, done], "completed"],
    ["broken", [hello], "stopped"],
  ] as const)
    it.live(`has its end although its signal throws: a ${how} one`, () =>
      Effect.gen(function* () {
        const { signal } = new AbortController();
        signal.removeEventListener = () => {
          throw new Error("deaf");
        };
        const { exit, record } = yield* played(parts, { signal });
        assert.strictEqual(Exit.isSuccess(exit), how === "whole");
        assert.isFalse(Exit.hasDies(exit));
        assert.strictEqual(record?.end?.state, state);
      }).pipe(Effect.timeout("10 seconds"), Effect.provide(layer("takes a write at once"))),
    );
});
