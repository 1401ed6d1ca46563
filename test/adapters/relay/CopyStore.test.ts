/**
 * A response that is copied while its store fails at each write in each way that a store can. The run is volatile: its text and its calls
 * leave as over a store without a fault, and everything is on record once the store takes writes (L8).
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Exit, Layer, References, Scope } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import type { RelayEvent } from "../../../src/adapters/relay/RelayReader.ts";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry, RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { type Fault, faults, faulty } from "../../runtime/run/FaultyStore.ts";
import { failing, has } from "../../runtime/run/StoreBench.ts";
import { polled, Socket } from "./CopyCases.ts";
import { call, head, pass, planOf, role, type Step, scripted, shown, stop, text } from "./RelayCases.ts";

/** Bytes that left, with their virtual time in milliseconds. */
interface Left {
  readonly bytes: string;
  readonly at: number;
}

interface Copied {
  readonly writes: ReadonlyArray<Left>;
  readonly events: ReadonlyArray<RelayEvent>;
  readonly text: string;
  readonly end: string | undefined;
  readonly records: ReadonlyArray<RunRecord>;
}

/** Which writes go wrong, and how. */
type Faults = (write: number, entries: ReadonlyArray<Entry>) => Fault | undefined;

/**
 * Copies a response over a store with faults.
 *
 * @param lostAt when another process has the run, in virtual milliseconds
 */
const copied = (
  steps: ReadonlyArray<Step>,
  fault: Faults,
  { lostAt, retries = 0 }: { readonly lostAt?: number; readonly retries?: number } = {},
): Effect.Effect<Copied, RecorderError> =>
  Effect.gen(function* () {
    const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
    const store = faulty(memory, (write, _now, entries) => fault(write, entries));
    const scope = Scope.makeUnsafe();
    const services = yield* Layer.buildWithScope(
      StreamProcessor.layer.pipe(
        Layer.provide(Layer.merge(Layer.succeed(RunRecorder, store.recorder), UserDecisions.layerHeadless())),
        Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
      ),
      scope,
    );
    const clock = yield* Clock.Clock;
    const begun = clock.currentTimeMillisUnsafe();
    const socket = new Socket();
    const writes: Array<Left> = [];
    const sink: Relay.RelaySink = {
      ...{ drained: socket.drained, isReady: socket.isReady, head: socket.head },
      write: (bytes) => {
        writes.push({ bytes: shown(bytes), at: clock.currentTimeMillisUnsafe() - begun });
        socket.write(bytes);
      },
    };
    const transport = polled(yield* scripted(steps).timed);
    const events: Array<RelayEvent> = [];
    const options = {
      transport,
      budget: { max_auto_retries: retries },
      onEvent: (it: RelayEvent) => void events.push(it),
    };
    const ended = Effect.match(Relay.copy(planOf(), options, sink), {
      onSuccess: () => "end",
      onFailure: ({ rule }) => rule,
    });
    const fiber = yield* Effect.forkScoped(Effect.provideContext(ended, services), { startImmediately: true });
    if (lostAt !== undefined) {
      yield* pass(lostAt / 1_000);
      for (const { run_id } of yield* memory.runs()) store.loses(run_id);
    }
    // A write that hangs is given up, and the next one is tried.
    for (let minute = 0; minute < 8; minute += 1) yield* pass(60);
    const exit = fiber.pollUnsafe();
    const end = exit?._tag === "Success" ? exit.value : undefined;
    yield* Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true });
    return { writes, events, text: socket.text, end, records: yield* memory.runs() };
  }).pipe(Effect.scoped);

const none: Faults = () => undefined;

/** Writes of a run, and one more. */
const places = [1, 2, 3, 4];

const responses: Readonly<Record<string, ReadonlyArray<Step>>> = {
  text: [head, role, text("a"), 1_000, text("b"), 1_000, stop, "end"],
  "a call": [head, role, text("a"), 1_000, call, stop, "end"],
};

/** What a record says of a run; the times and ids differ from play to play. */
const toldBy = ({ attempts, calls, end, incidents }: RunRecord) => ({
  attempts: attempts.map(({ facts, mode }) => ({ facts, mode })),
  calls: calls.map(({ tool }) => tool),
  end: end && { state: end.state, reason: end.reason },
  rules: incidents.map(({ decision }) => decision.rule),
});

describe("a response that is copied over a store with faults", () => {
  for (const [what, steps] of Object.entries(responses)) {
    for (const [name, fault] of Object.entries(faults)) {
      it.effect(`leaves as without a fault where a write of ${what} ${name}, and is on record whole (L8)`, () =>
        Effect.gen(function* () {
          const without = yield* copied(steps, none);
          assert.strictEqual(without.end, "end");
          for (const at of places) {
            const it = yield* copied(steps, (write) => (write === at ? fault : undefined));
            assert.deepStrictEqual(it.writes, without.writes, `write ${at}`);
            assert.deepStrictEqual([it.text, it.end], [without.text, "end"], `write ${at}`);
            assert.deepStrictEqual(it.records.map(toldBy), without.records.map(toldBy), `write ${at}`);
          }
        }),
      );
    }
  }

  it.effect("is asked for again as without a fault, although the store takes nothing (L8)", () =>
    Effect.gen(function* () {
      const steps = [head, role, "end"] as const;
      const play = (fault: Faults) => copied(steps, fault, { retries: 2 });
      const [without, away] = [yield* play(none), yield* play(() => failing("unavailable"))];
      const tags = ({ events }: Copied) => events.map(({ _tag }) => _tag);
      assert.deepStrictEqual(tags(away), tags(without));
      assert.include(tags(away), "RetryScheduled");
      assert.lengthOf(away.records, 0);
    }),
  );
});

describe("a response whose run another process takes for dead while it is copied", () => {
  for (const [what, steps] of Object.entries(responses)) {
    it.effect(`goes on to its end, ${what} included: a fence stops durable runs only (L8)`, () =>
      Effect.gen(function* () {
        const without = yield* copied(steps, none);
        for (const lostAt of [500, 1_500]) {
          const it = yield* copied(steps, none, { lostAt });
          assert.deepStrictEqual([it.text, it.end], [without.text, "end"], `at ${lostAt}`);
        }
        const fenced = yield* copied(steps, (_write, all) => (has(all, "RunStarted") ? undefined : failing("fenced")));
        assert.deepStrictEqual([fenced.text, fenced.end], [without.text, "end"]);
      }),
    );
  }
});
