/**
 * The process that is killed. It recovers the runs that its predecessor left, answers their questions as a careful person would,
 * continues them, and starts the runs that have not started. Its one JSON argument names the provider, the files and the runs.
 */
import { Effect, Layer, Schema, Stream } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import type { Part } from "../../src/provider/Protocols.ts";
import { protocols } from "../../src/provider/Protocols.ts";
import { openQuestion, type RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import type { RunEvent } from "../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext, RunOptions } from "../../src/runtime/contract/RunOptions.ts";
import * as CrashRecovery from "../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import { samples } from "../../test/samples/index.ts";
import * as Diary from "./Diary.ts";
import { Plan } from "./Plan.ts";

/** The argument that the parent passes. */
export const Work = Schema.fromJsonString(
  Schema.Struct({ url: Schema.String, folder: Schema.String, db: Schema.String, plans: Schema.Array(Plan) }),
);
type Work = typeof Work.Type;

/** Lease of the process, in milliseconds. It is short, so that a batch ends soon. */
const leaseMs = 300;

/** Interval at which the next process checks for the end of its predecessor's lease, in milliseconds. */
const lookEveryMs = 50;

const main = (work: Work) =>
  Effect.gen(function* () {
    process.stdout.write("ready\n");
    yield* Effect.forEach(work.plans, (plan) => completeRun(work, plan), { concurrency: "unbounded", discard: true });
    process.stdout.write("done\n");
  });

/** Continues a run until it has ended. The process may die at any point, and the next one starts here again. */
const completeRun = (work: Work, plan: Plan) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    const processor = yield* StreamProcessor;
    const request = yield* requestOf(work, plan);
    const take = handleEvents(work, plan, request.run);
    for (;;) {
      const record = yield* recorder.run(plan.run);
      if (record?.state === "ended") return;
      if (record === undefined) {
        yield* noteFinish(work, plan, take(processor.run({ ...request.options, runId: plan.run })));
        continue;
      }
      yield* CrashRecovery.recover();
      const now = (yield* recorder.run(plan.run)) ?? record;
      const question = openQuestion(now);
      if (question !== undefined && now.state === "asking") yield* answerQuestion(work, plan, now);
      else if (now.state === "parked") {
        const resume = processor.takeUp(plan.run, { request: request.options, transcript: plan.run });
        yield* noteFinish(work, plan, take(resume));
      } else if (now.state !== "ended") yield* Effect.sleep(lookEveryMs);
    }
  });

const noteFinish = <E, R>(work: Work, plan: Plan, run: Effect.Effect<void, E, R>) =>
  Effect.flatMap(Effect.exit(run), (exit) => Effect.sync(() => Diary.note(work.folder, plan.run, { end: exit._tag })));

/** Answers as a careful person: checks the tool's marks, and never repeats a call that may have run. */
const answerQuestion = (work: Work, plan: Plan, record: RunRecord) =>
  Effect.gen(function* () {
    const question = openQuestion(record);
    const incident = record.incidents.find(({ id }) => id === question?.incident);
    if (question === undefined || incident === undefined) return;
    const happened = Diary.marks(work.folder, plan.run).length > 0 ? "it_ran" : "it_did_not_run";
    const wanted: ReadonlyArray<Choice> =
      question.rule === "tool_outcome_unknown"
        ? [happened]
        : incident.decision.may_repeat === undefined
          ? ["retry", "accept"]
          : ["continue", "accept"];
    const choice = wanted.find((it) => question.choices.includes(it)) ?? "stop";
    const { revision } = question;
    yield* CrashRecovery.answer({ run_id: plan.run, revision, choice, by: "person" }).pipe(
      Effect.catchTag("AnswerRefused", () => Effect.void),
    );
  });

/** Handles the events as a runtime does: first records what was seen, then runs the tools. */
const handleEvents =
  (work: Work, plan: Plan, append: (event: RunEvent<Part>) => Effect.Effect<void>) =>
  <E, R>(events: Stream.Stream<RunEvent<Part>, E, R>) =>
    Stream.runForEach(events, (event) =>
      Effect.suspend(() => {
        const note = (line: Diary.Line) => Diary.note(work.folder, plan.run, line);
        if (event._tag === "AttemptStarted") note({ saw: "attempt", attempt: event.attempt });
        if (event._tag === "AttemptDiscarded") note({ discard: event.attempt, keep: event.keep_through });
        if (event._tag !== "Part") return Effect.void;
        const { attempt, calls, part } = event;
        if (part.observation.shows === "text") note({ saw: "text", attempt });
        if (calls === undefined) return Effect.void;
        note({ saw: "call", attempt });
        return append(event);
      }),
    );

const requestOf = (work: Work, plan: Plan) =>
  Effect.gen(function* () {
    const client = yield* ProviderClient;
    const guard = yield* ToolGuard;
    const made = () => Diary.marks(work.folder, plan.run).length > 0;
    const append = guard.mutating(
      "append",
      () =>
        Effect.gen(function* () {
          Diary.mark(work.folder, plan.run, "start");
          yield* Effect.sleep(plan.toolMs);
          Diary.mark(work.folder, plan.run, "done");
        }),
      plan.verifies ? { verify: () => Effect.sync(() => (made() ? "it_ran" : "it_did_not_run")) } : {},
    );
    const attempt = ({ bytes, calls, delivery, request }: AttemptContext) =>
      client.stream({
        protocol: protocols.get(plan.protocol),
        url: `${work.url}/s/${plan.run}${request === "continue" ? "-on" : ""}${samples[plan.protocol].path}`,
        body: { model: "fault-model", stream: true, settled: calls },
        bytes,
        delivery,
      });
    const options: RunOptions<Part, unknown, never> = {
      provider: { id: plan.protocol, model: "fault-model", reasoning: false },
      tools: [append],
      transcript: plan.run,
      ...(plan.canContinue ? { canContinue: attempt } : {}),
      reveal: plan.reveal,
      attempt,
      observe: (part) => part.observation,
    };
    const run = (event: RunEvent<Part>) =>
      event._tag !== "Part"
        ? Effect.void
        : Effect.forEach(
            event.calls ?? [],
            (call) => Effect.catchTag(append.run(call, undefined), "ToolRefused", () => Effect.void),
            { discard: true },
          );
    return { options, run };
  });

const layers = (work: Work) =>
  Layer.merge(
    StreamProcessor.layer.pipe(
      // This process may be killed, so it parks every question at once: the question stays on record until it is answered.
      Layer.provideMerge(UserDecisions.layerDurable({ parkAfterMs: 0 })),
      Layer.provideMerge(SqlRunRecorder.layerFile({ file: work.db, leaseMs })),
    ),
    ProviderClient.layer(),
  );

const work = Schema.decodeSync(Work)(process.argv[2] ?? "{}");
await Effect.runPromise(Effect.provide(main(work), layers(work)));
