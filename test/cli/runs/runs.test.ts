import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer, Option } from "effect";
import { TestClock } from "effect/testing";
import { answer } from "../../../src/cli/runs/answer.ts";
import { exportOne } from "../../../src/cli/runs/export.ts";
import { list } from "../../../src/cli/runs/list.ts";
import { prune } from "../../../src/cli/runs/prune.ts";
import { show } from "../../../src/cli/runs/show.ts";
import { watchOne } from "../../../src/cli/runs/watch.ts";
import { plainScreen } from "../../../src/cli/terminal/Screen.ts";
import * as Json from "../../../src/domain/Json.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Seams from "../../gateway/page/SeamRuns.ts";
import { failure, printed } from "../Printed.ts";
import * as S from "../Stored.ts";

const hour = 3_600_000;
const screen = plainScreen(S.startedAt + 3 * hour);
const narrow = { ...plainScreen(S.startedAt + 3 * hour, 80, true) };

const every = {
  state: Option.none(),
  broken: false,
  limit: 20,
  before: Option.none(),
  config: Option.none(),
  json: false,
} as const;
const noAnswer = { choice: Option.none(), revision: Option.none(), yes: false, json: false } as const;
const say = (choice: string) => ({ ...noAnswer, choice: Option.some(choice) });

const layer = Layer.merge(RunRecorder.layerMemory(), NodeServices.layer);

const mixed = {
  "run-a-recovered": S.recovered("run-a-recovered"),
  "run-b-asking": S.asking("run-b-asking", S.startedAt + hour),
  "run-c-stopped": S.stopped("run-c-stopped", S.startedAt + 2 * hour),
};

describe("stream-recovery runs list", () => {
  it.effect("shows runs that wait for an answer first, with the command to type", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const { exit, stdout } = yield* printed(list(every, screen));
      assert.strictEqual(exit._tag, "Success");
      const lines = stdout.split("\n");
      assert.deepStrictEqual(
        lines.slice(0, 4).map((line) => line.split(/ {2,}/)),
        [
          ["RUN", "STARTED", "PROVIDER/MODEL", "STATE", "TRY", "OUTCOME"],
          ["run-b-asking", "2 h ago", "anthropic/claude-sonnet-4-5", "? asks you", "1", "tool_outcome_unknown"],
          ["run-c-stopped", "1 h ago", "anthropic/claude-sonnet-4-5", "■ stopped", "1", "text_shown"],
          ["run-a-recovered", "3 h ago", "anthropic/claude-sonnet-4-5", "✓ recovered", "2", "tool_calls_fenced"],
        ],
      );
      assert.include(stdout, "npx stream-recovery runs answer run-b-asking");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("fits eighty columns, and shortens ids to a prefix that can be typed", () =>
    Effect.gen(function* () {
      const ids = ["5f0c6d1e-0000-4000-8000-000000000001", "5f0c6d1e-1111-4000-8000-000000000002"];
      yield* S.writing(Object.fromEntries(ids.map((id) => [id, S.recovered(id)])));
      const { stdout } = yield* printed(list(every, narrow));
      for (const line of stdout.split("\n")) assert.isAtMost([...line].length, 80, line);
      assert.deepStrictEqual(
        stdout
          .split("\n")
          .slice(1, 3)
          .map((line) => line.split(" ")[0]),
        ["5f0c6d1e-1", "5f0c6d1e-0"],
      );
    }).pipe(Effect.provide(layer)),
  );

  it.effect("pages with --before, filters, and prints JSON for machines", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const first = yield* printed(list({ ...every, state: Option.some("ended"), limit: 1 }, screen));
      assert.include(first.stdout, "run-c-stopped");
      assert.include(first.stdout, "Older ones: npx stream-recovery runs list --before run-c-stopped");
      const second = yield* printed(list({ ...every, before: Option.some("run-c-stopped"), json: true }, screen));
      const runs = Json.list(Json.record(Json.parse(second.stdout)?.json)?.runs).map((run) => Json.record(run) ?? {});
      assert.deepStrictEqual(
        runs.map((run) => [run.run_id, run.standing, run.attempts, run.incidents]),
        [
          ["run-b-asking", "asking", 1, 1],
          ["run-a-recovered", "completed", 2, 1],
        ],
      );
      assert.deepStrictEqual(Json.record(runs[0]?.question)?.choices, [
        "retry",
        "continue",
        "it_ran",
        "it_did_not_run",
        "accept",
        "stop",
      ]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("reports an empty list with exit code 1", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(failure(yield* printed(list(every, screen))), [
        "negative",
        "runs list: no run is on record",
      ]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("marks a run whose process is gone", () =>
    Effect.gen(function* () {
      yield* S.writing({ lost: S.halfway("lost") });
      const live = yield* printed(list(every, screen));
      assert.include(live.stdout, "▸ running");
      yield* (yield* RunRecorder).release("lost");
      const { stdout } = yield* printed(list(every, screen));
      assert.include(stdout, "! orphan");
      assert.include(stdout, "npx stream-recovery recover");
    }).pipe(Effect.provide(layer)),
  );
});

describe("stream-recovery runs show", () => {
  it.effect("tells the story in order: the decision with its reason, the calls, and the end", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const { stdout } = yield* printed(show("run-a", false, screen));
      const order = [
        "run-a-recovered  anthropic/claude-sonnet-4-5  ✓ recovered",
        "Attempt 1: the first request.",
        "was handed over and had not been started",
        "It broke: The connection to the model provider was lost.",
        "auto_retry_once by rule tool_calls_fenced, the same request again after 375 ms",
        "failure=transport, guarded=true, dispatched=none, shown=nothing",
        "Attempt 2: the same request again.",
        "Delivered calls",
        "Completed (end_turn) after 2 attempts and 4.2 s.",
      ].map((words) => [stdout.replace(/\n {10,}/g, " ").indexOf(words), words] as const);
      for (const [at, words] of order) assert.isAtLeast(at, 0, words);
      assert.deepStrictEqual(
        order.map(([at]) => at),
        order.map(([at]) => at).toSorted((a, b) => a - b),
      );
    }).pipe(Effect.provide(layer)),
  );

  it.effect("says where shown text was continued, in the story and in the list", () =>
    Effect.gen(function* () {
      yield* S.writing({ sewn: Seams.joined("sewn") });
      const shown = (yield* printed(show("sewn", false, screen))).stdout.replace(/\n {10,}/g, " ");
      assert.match(shown, /Attempt 2: a request that continues the text where it was cut\./);
      assert.match(
        shown,
        /Seam +It continues after 412 characters: the new text began with the end of the shown text\./,
      );
      const listed = (yield* printed(list(every, screen))).stdout;
      assert.include(listed, "continue_text, continued 2 times");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("says why shown text was not continued, in the story and in the question", () =>
    Effect.gen(function* () {
      yield* S.writing({ plain: Seams.refused("structured_output", "plain") });
      const { stdout } = yield* printed(show("plain", false, narrow));
      for (const line of stdout.split("\n")) assert.isAtMost([...line].length, 80, line);
      const shown = stdout.replace(/\s+/g, " ");
      assert.include(shown, "Not joined The answer must be one whole JSON document");
      assert.include(shown, "It does not continue automatically. The answer must be one whole JSON document");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("prints an open question with the effect of each answer, and the calls that may run again", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const { stdout } = yield* printed(show("run-b-asking", false, narrow));
      for (const line of stdout.split("\n")) assert.isAtMost([...line].length, 80, line);
      assert.match(
        stdout,
        /retry +ask again from the start; shown output is withdrawn. May run\n +again: bash \(0\.0\)/,
      );
      assert.match(stdout, /it_did_not_run +the tool did nothing/);
      assert.include(stdout, "npx stream-recovery runs answer run-b-asking CHOICE");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("accepts an unambiguous prefix of an id, and refuses a shared one with the runs that have it", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      assert.deepStrictEqual(failure(yield* printed(show("run-", true, screen))), [
        "refused",
        'runs show: 3 runs begin with "run-": run-c-stopped, run-b-asking, run-a-recovered',
      ]);
      assert.deepStrictEqual(failure(yield* printed(show("x", true, screen))), [
        "negative",
        'runs show: no run has the id or prefix "x"',
      ]);
      // A whole id denotes that run, even if other ids begin with it.
      yield* S.writing({ "run-b": S.stopped("run-b") });
      const { stdout } = yield* printed(show("run-b", true, screen));
      assert.strictEqual(Json.record(Json.parse(stdout)?.json)?.run_id, "run-b");
    }).pipe(Effect.provide(layer)),
  );
});

describe("stream-recovery runs answer", () => {
  it.effect("ends by stop a run that waits for a program, but not one with a live owner", () =>
    Effect.gen(function* () {
      yield* S.writing({
        "run-offered": S.offered("run-offered"),
        "run-interrupted": S.interrupted("run-interrupted"),
        "run-living": S.halfway("run-living"),
      });
      for (const id of ["run-offered", "run-interrupted"]) {
        assert.strictEqual(
          (yield* printed(answer(id, say("stop"), screen))).stdout,
          `✓ ${id}: stop. The run has ended: stopped (given_up).`,
        );
        const again = yield* printed(answer(id, say("stop"), screen));
        assert.deepStrictEqual(failure(again), ["refused", `runs answer: ${id}: the run has ended (given_up)`]);
      }
      const living = failure(yield* printed(answer("run-living", say("stop"), screen)));
      assert.match(living.join(" "), /^refused runs answer: run-living: a live process owns the run/);
      assert.isUndefined((yield* (yield* RunRecorder).run("run-living"))?.end);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("ends by stop a run whose retry was answered and that no program took up", () =>
    Effect.gen(function* () {
      yield* S.writing({ "run-b-asking": S.asking("run-b-asking") });
      yield* printed(answer("run-b-asking", { ...say("retry"), yes: true }, screen));
      const { stdout } = yield* printed(answer("run-b-asking", say("stop"), screen));
      assert.strictEqual(stdout, "✓ run-b-asking: stop. The run has ended: stopped (given_up).");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("prints the question, takes one answer, and refuses a second in one line", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const question = yield* printed(answer("run-b", noAnswer, screen));
      assert.include(question.stdout, "it_ran          the tool did its work: continue from there");
      const taken = yield* printed(answer("run-b", say("accept"), screen));
      assert.strictEqual(taken.stdout, "✓ run-b-asking: accept. The run has ended: stopped (accepted_partial).");
      const again = yield* printed(answer("run-b", say("stop"), screen));
      assert.deepStrictEqual(failure(again), [
        "refused",
        "runs answer: run-b-asking: the run has ended (accepted_partial)",
      ]);
      assert.deepStrictEqual(failure(yield* printed(answer("run-b", noAnswer, screen))), [
        "negative",
        "runs answer: run-b-asking has no open question",
      ]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("refuses an answer that is not offered, and a revision that is not the newest", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      assert.deepStrictEqual(failure(yield* printed(answer("run-b", say("yes"), screen))), [
        "refused",
        'runs answer: "yes" is not an answer: expected one of retry, continue, it_ran, it_did_not_run, accept, stop',
      ]);
      const stale = { ...say("stop"), revision: Option.some(7) };
      assert.deepStrictEqual(failure(yield* printed(answer("run-b", stale, screen))), [
        "refused",
        "runs answer: run-b-asking: a newer question has replaced this one (the current revision is 1)",
      ]);
      assert.strictEqual((yield* (yield* RunRecorder).run("run-b-asking"))?.questions[0]?.answer, undefined);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("requires --yes if a retry may run a tool again and no person can be asked", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      assert.deepStrictEqual(failure(yield* printed(answer("run-b", say("retry"), screen))), [
        "refused",
        "runs answer: retry may run again: bash (0.0). Add --yes to confirm",
      ]);
      const sure = yield* printed(answer("run-b", { ...say("retry"), yes: true }, screen));
      assert.include(sure.stdout, "✓ run-b-asking: retry. Your program takes it up with StreamProcessor.takeUp");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("requires --yes if the provider may have run tools unseen", () =>
    Effect.gen(function* () {
      yield* S.writing({ "run-u": S.unprovable("run-u") });
      assert.deepStrictEqual(failure(yield* printed(answer("run-u", say("retry"), screen))), [
        "refused",
        "runs answer: retry may run again: tools that the provider runs. Add --yes to confirm",
      ]);
      const told = yield* printed(answer("run-u", { ...noAnswer, json: true }, screen));
      assert.deepStrictEqual(Json.record(Json.parse(told.stdout)?.json)?.may_repeat, ["tools that the provider runs"]);
      const sure = yield* printed(answer("run-u", { ...say("retry"), yes: true }, screen));
      assert.include(sure.stdout, "✓ run-u: retry.");
    }).pipe(Effect.provide(layer)),
  );
});

describe("stream-recovery runs watch, export and prune", () => {
  it.effect("follows one run until it ends, with each step once", () =>
    Effect.gen(function* () {
      const entries = S.recovered("w");
      yield* S.writing({ w: entries.slice(0, 3) });
      const watching = yield* Effect.forkChild(printed(watchOne("w", { everyMs: 500, json: true, screen })));
      yield* TestClock.adjust(600);
      yield* (yield* RunRecorder).write("w", entries.slice(3, 5));
      yield* TestClock.adjust(600);
      yield* (yield* RunRecorder).write("w", entries.slice(5));
      yield* TestClock.adjust(600);
      const { exit, stdout } = yield* Fiber.join(watching);
      assert.strictEqual(exit._tag, "Success");
      assert.deepStrictEqual(
        stdout.split("\n").map((line) => Json.record(Json.parse(line)?.json)?.step),
        ["started", "attempt 1", "call 1 0.0 handed_over", "incident w.1", "attempt 2", "end"],
      );
    }).pipe(Effect.provide(layer)),
  );

  it.effect("exits with code 1 if the run was stopped", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const watched = yield* printed(watchOne("run-c", { everyMs: 500, json: false, screen }));
      assert.deepStrictEqual(failure(watched), ["negative", "runs watch: run-c-stopped was stopped by text_shown"]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("exports a run without its ids", () =>
    Effect.gen(function* () {
      yield* S.writing(mixed);
      const { stdout } = yield* printed(exportOne("run-b", [], Option.none()));
      assert.strictEqual(Json.record(Json.parse(stdout)?.json)?.export, "run");
      assert.notInclude(stdout, "run-b");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("counts in a dry run what it would delete by age, by count, and by both", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(S.startedAt + 10 * hour);
      const ended = Array.from({ length: 6 }, (_, n) => `ended-${n}`);
      yield* S.writing({
        ...mixed,
        ...Object.fromEntries(ended.map((id, n) => [id, S.stopped(id, S.startedAt + n * hour)])),
      });
      const recorder = yield* RunRecorder;
      const queries = [
        { olderThan: Option.some("9h"), keep: Option.none(), giveUp: Option.none() },
        { olderThan: Option.none(), keep: Option.some(5), giveUp: Option.none() },
        { olderThan: Option.some("7h"), keep: Option.some(3), giveUp: Option.none() },
      ] as const;
      for (const query of queries) {
        const before = (yield* recorder.runs()).length;
        const dry = yield* printed(prune({ ...query, dryRun: true, json: true }));
        assert.strictEqual((yield* recorder.runs()).length, before);
        const wet = yield* printed(prune({ ...query, dryRun: false, json: true }));
        const forgotten = before - (yield* recorder.runs()).length;
        assert.isAtLeast(forgotten, 1);
        assert.deepStrictEqual(
          [dry.stdout, wet.stdout],
          [`{"dry_run":true,"runs":${forgotten}}`, `{"dry_run":false,"runs":${forgotten}}`],
        );
      }
      assert.strictEqual((yield* recorder.run("run-b-asking"))?.state, "asking", "a run that has not ended stays");
      const none = { dryRun: false, json: false, olderThan: Option.none(), keep: Option.none(), giveUp: Option.none() };
      assert.deepStrictEqual(failure(yield* printed(prune(none)))[0], "refused");
      assert.deepStrictEqual(failure(yield* printed(prune({ ...none, olderThan: Option.some("30") })))[0], "refused");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("ends abandoned runs before the deletion, if their minimum age is given", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(S.startedAt + 10 * hour);
      yield* S.writing({
        "old-asking": S.asking("old-asking"),
        "old-offered": S.offered("old-offered"),
        "old-interrupted": S.interrupted("old-interrupted"),
        "new-offered": S.offered("new-offered", S.startedAt + 9 * hour),
        "old-living": S.halfway("old-living"),
      });
      const options = { keep: Option.none(), olderThan: Option.none(), giveUp: Option.some("2h"), json: false };
      const dry = yield* printed(prune({ ...options, dryRun: true }));
      assert.strictEqual(dry.stdout, "3 waiting runs would be ended");
      const wet = yield* printed(prune({ ...options, dryRun: false }));
      assert.strictEqual(wet.stdout, "ended 3 waiting runs");
      const recorder = yield* RunRecorder;
      const ends = yield* Effect.forEach(["old-asking", "old-offered", "old-interrupted"], (id) =>
        Effect.map(recorder.run(id), (record) => `${record?.end?.state} ${record?.end?.reason}`),
      );
      assert.deepStrictEqual(ends, ["stopped tool_outcome_unknown", "stopped given_up", "stopped given_up"]);
      for (const id of ["new-offered", "old-living"]) assert.isUndefined((yield* recorder.run(id))?.end, id);
      const all = { ...options, keep: Option.some(0), json: true, dryRun: false };
      assert.strictEqual((yield* printed(prune(all))).stdout, '{"dry_run":false,"runs":3,"given_up":0}');
    }).pipe(Effect.provide(layer)),
  );
});
