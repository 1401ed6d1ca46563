/**
 * One of three nodes over one PostgreSQL. It recovers and continues what others left, and one of the nodes starts the runs. It takes
 * one JSON argument and runs until it is killed. It may be killed, stopped or disconnected at any moment.
 */
import { mkdirSync } from "node:fs";
import { Clock, Context, Effect, Layer, Schema, Stream } from "effect";
import { ProviderClient } from "../../../src/client/index.ts";
import { type Part, protocols } from "../../../src/provider/Protocols.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../../src/runtime/contract/RunOptions.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as Diary from "../Diary.ts";
import { ShiftedClock } from "../ShiftedClock.ts";
import { leaseMs, NodeRun } from "./NodePlan.ts";

/** The argument that the parent passes. */
const Work = Schema.fromJsonString(
  Schema.Struct({
    node: Schema.String,
    url: Schema.String,
    /** Folder of the tools' marks. */
    folder: Schema.String,
    /** Folder of the diaries of this node's readers. */
    diary: Schema.String,
    store: Schema.String,
    begins: Schema.Boolean,
    aheadMs: Schema.Finite,
    runs: Schema.Array(NodeRun),
  }),
);
type Work = typeof Work.Type;

/** Interval at which a node looks for runs to continue, in milliseconds. */
const lookEveryMs = 150;

/** Parking delay of a question whose stream waits, in milliseconds. The question is answered sooner. */
const waitsMs = 600_000;

const main = (work: Work) =>
  Effect.gen(function* () {
    const recorder = Context.get(
      yield* Layer.build(
        PostgresRunRecorder.layer({ address: work.store, leaseMs, process: work.node, retention: false }),
      ),
      RunRecorder,
    );
    const recording = Layer.succeed(RunRecorder, recorder);
    const processor = (parkAfterMs: number) =>
      Layer.build(
        Layer.merge(
          StreamProcessor.layer.pipe(
            Layer.provide(UserDecisions.layerDurable({ parkAfterMs })),
            Layer.provideMerge(recording),
          ),
          ProviderClient.layer(),
        ),
      );
    const [waiting, parking] = [yield* processor(waitsMs), yield* processor(0)];
    process.stdout.write("ready\n");
    const swept = Effect.andThen(Effect.ignore(CrashRecovery.recover()), Effect.sleep(lookEveryMs));
    yield* Effect.forkScoped(Effect.provideService(Effect.forever(swept), RunRecorder, recorder));
    yield* Effect.forEach(
      work.runs,
      (run) => Effect.provideContext(completeRun(work, run, recorder), run.waits ? waiting : parking),
      { concurrency: "unbounded", discard: true },
    );
    return yield* Effect.never;
  });

/** Continues a run whenever it is free, until it has ended. */
const completeRun = (work: Work, run: NodeRun, recorder: RunRecorder["Service"]) =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    let begins = work.begins;
    for (;;) {
      const { options, run: act } = yield* requestOf(work, run);
      const take = handleEvents(work, run, act);
      if (begins) {
        begins = false;
        yield* noteFinish(work, run, take(processor.run({ ...options, runId: run.run })));
      }
      const record = yield* Effect.catch(recorder.run(run.run), () => Effect.undefined);
      if (record?.state === "ended") return;
      // A run with an open question cannot be continued.
      const isFree = record?.parked !== undefined && record.state !== "asking";
      if (isFree) {
        yield* noteFinish(work, run, take(processor.takeUp(run.run, { request: options, transcript: run.run })));
      }
      yield* Effect.sleep(lookEveryMs);
    }
  });

const noteFinish = <E, R>(work: Work, { run }: NodeRun, made: Effect.Effect<void, E, R>) =>
  Effect.flatMap(Effect.exit(made), (exit) => Effect.sync(() => Diary.note(work.diary, run, { end: exit._tag })));

/** Handles the events as a runtime does: first records what was seen, then runs the tools. */
const handleEvents =
  (work: Work, { run }: NodeRun, act: (event: RunEvent<Part>) => Effect.Effect<void>) =>
  <E, R>(events: Stream.Stream<RunEvent<Part>, E, R>) =>
    Stream.runForEach(events, (event) =>
      Effect.suspend(() => {
        const note = (line: Diary.Line) => Diary.note(work.diary, run, line);
        if (event._tag === "AttemptDiscarded") note({ discard: event.attempt, keep: event.keep_through });
        if (event._tag !== "Part") return Effect.void;
        if (event.part.observation.shows === "text") note({ saw: "text", attempt: event.attempt });
        if (event.calls !== undefined) note({ saw: "call", attempt: event.attempt });
        return act(event);
      }),
    );

const requestOf = (work: Work, { reveal, run, toolMs }: NodeRun) =>
  Effect.gen(function* () {
    const client = yield* ProviderClient;
    const guard = yield* ToolGuard;
    const append = guard.mutating("append", () =>
      Effect.gen(function* () {
        Diary.mark(work.folder, run, "start");
        yield* Effect.sleep(toolMs);
        Diary.mark(work.folder, run, "done");
      }),
    );
    const attempt = ({ bytes, calls, delivery, request }: AttemptContext) =>
      client.stream({
        protocol: protocols.get("anthropic-messages"),
        url: `${work.url}/s/${run}${request === "continue" ? "-on" : ""}/v1/messages`,
        body: { model: "fault-model", stream: true, settled: calls },
        bytes,
        delivery,
      });
    const options: RunOptions<Part, unknown, never> = {
      provider: { id: "anthropic-messages", model: "fault-model", reasoning: false },
      tools: [append],
      transcript: run,
      canContinue: attempt,
      reveal,
      attempt,
      observe: (part) => part.observation,
    };
    const act = (event: RunEvent<Part>) =>
      Effect.forEach(
        event._tag === "Part" ? (event.calls ?? []) : [],
        (call) => Effect.catchTag(append.run(call, undefined), "ToolRefused", () => Effect.void),
        { discard: true },
      );
    return { options, run: act };
  });

const work = Schema.decodeSync(Work)(process.argv[2] ?? "{}");
mkdirSync(work.diary, { recursive: true });
await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const clock = new ShiftedClock(yield* Clock.Clock, work.aheadMs);
      return yield* Effect.provideService(main(work), Clock.Clock, clock);
    }),
  ),
);
