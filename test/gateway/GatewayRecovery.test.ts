import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Choice } from "../../src/domain/Decision.ts";
import { endAbandoned } from "../../src/gateway/GatewayRecovery.ts";
import type * as RunRecord from "../../src/recorder/RunRecord.ts";
import { RecorderError, RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { attempt, begun, incident, raised } from "../recorder/Entries.ts";

const parked = (reason: RunRecord.Parked): RunRecord.Entry => ({ _tag: "RunParked", reason });

/** A run that broke after text was shown, and how it stands now. */
const broken = (id: string, ...then: ReadonlyArray<RunRecord.Entry>): ReadonlyArray<RunRecord.Entry> => [
  begun(id),
  attempt(1),
  raised(1, { progress: "output", shown: "text", text_through: 1 }),
  { _tag: "IncidentOpened", incident: incident(id, 1) },
  ...then,
];

const asked = (id: string): RunRecord.Entry => ({
  _tag: "QuestionAsked",
  question: {
    ...{ revision: 1, incident: incident(id, 1).id, rule: "text_shown" },
    choices: ["retry", "accept", "stop"] satisfies ReadonlyArray<Choice>,
  },
});

const standing = (headless: boolean) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    const write = (id: string, entries: ReadonlyArray<RunRecord.Entry>) => recorder.write(id, entries);
    yield* write("gw_offered", broken("gw_offered", parked("recovered")));
    yield* write("gw_answered", broken("gw_answered", parked("answered")));
    yield* write("gw_asked", broken("gw_asked", asked("gw_asked"), parked("question")));
    yield* write("run_offered", broken("run_offered", parked("recovered")));
    yield* write("run_asked", broken("run_asked", asked("run_asked"), parked("question")));
    yield* write("gw_live", [begun("gw_live"), attempt(1)]);
    yield* endAbandoned(headless);
    const runs = yield* recorder.runs();
    return Object.fromEntries(runs.map((run) => [run.run_id, run.end?.reason ?? run.parked ?? run.state]));
  }).pipe(Effect.provide(RunRecorder.layerMemory()));

describe("GatewayRecovery", () => {
  it.effect("ends runs that cannot go on, leaves questions, and leaves the runs of other programs", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* standing(false), {
        gw_offered: "client_gone",
        gw_answered: "client_gone",
        gw_asked: "question",
        run_offered: "recovered",
        run_asked: "question",
        gw_live: "live",
      });
    }),
  );

  it.effect("releases a run whose end the store does not accept, and the next sweep ends it", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* recorder.write("gw_offered", broken("gw_offered", parked("recovered")));
      const away = new RecorderError({ reason: "unavailable", run_id: "gw_offered", message: "away" });
      const store = { ...recorder, write: () => Effect.fail(away) };
      yield* Effect.ignore(Effect.provideService(endAbandoned(false), RunRecorder, store));
      assert.strictEqual((yield* recorder.run("gw_offered"))?.state, "parked");
      yield* endAbandoned(false);
      assert.strictEqual((yield* recorder.run("gw_offered"))?.end?.reason, "client_gone");
    }).pipe(Effect.provide(RunRecorder.layerMemory())),
  );

  it.effect("stops the questions of gateways that take no answers", () =>
    Effect.gen(function* () {
      const ends = yield* standing(true);
      assert.strictEqual(ends.gw_asked, "text_shown");
      assert.strictEqual(ends.run_asked, "question");
    }),
  );
});
