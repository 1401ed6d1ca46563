/**
 * Searches runs: the meaning of each parameter, the field that a refusal names, and the maximum cost of a search.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Result } from "effect";
import * as RunSearch from "../../../src/gateway/api/RunSearch.ts";
import { isListed } from "../../../src/recorder/RunFilter.ts";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Runs from "../page/PageRuns.ts";
import { put } from "../page/Server.ts";

const memory = RunRecorder.layerMemory();

const { now } = Runs;
const limits = { byDefault: 100, max: 500 };

const parsed = (sent: RunSearch.SearchSent) => RunSearch.parse(sent, limits, now);

const found = (sent: RunSearch.SearchSent) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    return yield* RunSearch.find(recorder, yield* Effect.fromResult(parsed(sent)));
  });

const ids = (runs: ReadonlyArray<RunRecord>) => runs.map(({ run_id }) => run_id);

describe("the parameters of a search", () => {
  it("are all parsed, and an empty one filters nothing", () => {
    assert.deepStrictEqual(parsed({}), Result.succeed({ limit: 100 }));
    const empty = Object.fromEntries(RunSearch.searchFields.map((field) => [field, " "]));
    assert.deepStrictEqual(parsed(empty), Result.succeed({ limit: 100 }));
    const all = {
      q: " a ",
      model: "m",
      provider: "p",
      since: "1h",
      until: "2026-11-22T09:00",
      state: "ended",
      broken: "true",
      rule: "nothing_shown",
      end: "stopped",
      before: "r",
      limit: "7",
    };
    assert.deepStrictEqual(
      parsed(all),
      Result.succeed({
        limit: 7,
        text: "a",
        model: "m",
        provider: "p",
        end: "stopped",
        before: "r",
        state: "ended",
        broken: true,
        rule: "nothing_shown",
        startedFrom: now - 3_600_000,
        startedBefore: now - 1_800_000,
      } as const),
    );
    assert.deepStrictEqual(parsed({ broken: "false" }), Result.succeed({ limit: 100 }));
  });

  it("accept a time in every format that a person or a program uses", () => {
    const moments: ReadonlyArray<readonly [string, number]> = [
      ["30m", now - 1_800_000],
      ["7d", now - 7 * 86_400_000],
      [String(now), now],
      ["2026-11-22", Date.UTC(2026, 10, 22)],
      ["2026-11-22T09:30", now],
      ["2026-11-22 09:30:00", now],
      ["2026-11-22T09:30:00.000Z", now],
      ["2026-11-22T10:30+01:00", now],
    ];
    for (const [since, startedFrom] of moments) {
      assert.deepStrictEqual([since, parsed({ since })], [since, Result.succeed({ limit: 100, startedFrom })]);
    }
  });

  it("are refused by name if they are invalid", () => {
    const bad: ReadonlyArray<readonly [RunSearch.SearchField, string]> = [
      ...["yesterday", "1y", "2026-13-01", "2026-11-22T25:00", "-1h", "1e9", "2026-11-22T09:30 CET"].flatMap(
        (moment) => [["since", moment] as const, ["until", moment] as const],
      ),
      ["state", "gone"],
      ["broken", "yes"],
      ["rule", "no_such_rule"],
      ["limit", "0"],
      ["limit", "501"],
      ["limit", "x"],
      ["limit", "1.5"],
      ["q", "x".repeat(129)],
      ["model", "x".repeat(129)],
      ["provider", "x".repeat(129)],
      ["end", "x".repeat(129)],
      ["before", "x".repeat(129)],
    ];
    for (const [field, value] of bad) {
      const result = parsed({ [field]: value });
      const error = Result.isFailure(result) ? result.failure : undefined;
      assert.deepStrictEqual([field, value, error?.field], [field, value, field]);
      assert.isTrue(error?.message.startsWith(`${field}: `));
      if (value.length > 4) assert.notInclude(error?.message, value, "what was sent is not said back");
    }
  });
});

describe("a search", () => {
  it.effect("finds runs by rule and by end", () =>
    Effect.gen(function* () {
      yield* put([Runs.calm("calm", now), Runs.recovered("healed"), Runs.stopped("stopped", now), Runs.asking("asks")]);
      assert.deepStrictEqual(ids((yield* found({ rule: "tool_outcome_unknown" })).runs), ["asks"]);
      assert.deepStrictEqual(ids((yield* found({ rule: "not_retryable" })).runs), ["stopped"]);
      assert.deepStrictEqual(ids((yield* found({ end: "completed" })).runs), ["healed", "calm"]);
      assert.deepStrictEqual(ids((yield* found({ end: "stopped" })).runs), ["stopped"]);
      assert.deepStrictEqual(ids((yield* found({ end: "end_turn" })).runs), ["healed"]);
      assert.deepStrictEqual(ids((yield* found({ end: "completed", model: "sonnet", broken: "true" })).runs), [
        "healed",
      ]);
      assert.deepStrictEqual((yield* found({ end: "completed", state: "live" })).runs, []);
    }).pipe(Effect.provide(memory)),
  );

  it.effect("returns every run once over its pages, for any page size", () =>
    Effect.gen(function* () {
      yield* put(
        Array.from({ length: 23 }, (_, n) =>
          n % 3 === 0 ? Runs.recovered(`r${n}`, now) : Runs.calm(`r${n}`, now, n % 2 === 0 ? Runs.claude : Runs.gpt),
        ),
      );
      const recorder = yield* RunRecorder;
      for (const sent of [{}, { end: "stop" }, { rule: "nothing_shown" }, { q: "gpt" }, { end: "end_turn", q: "1" }]) {
        const whole = ids((yield* found(sent)).runs);
        for (const limit of ["1", "2", "7", "23"]) {
          const pages: Array<string> = [];
          let before: string | undefined;
          do {
            const { next, runs }: RunSearch.Found = yield* found({ ...sent, limit, before });
            pages.push(...ids(runs));
            before = next;
          } while (before !== undefined);
          assert.deepStrictEqual(pages, whole);
        }
      }
      assert.lengthOf((yield* found({})).runs, (yield* recorder.runs()).length);
    }).pipe(Effect.provide(memory)),
  );

  it.effect("reads a bounded number of runs, and says where to continue", () =>
    Effect.gen(function* () {
      yield* put([Runs.stopped("oldest", now)]);
      yield* put(Array.from({ length: RunSearch.scannedRunsMax + 50 }, (_, n) => Runs.calm(`r${n}`, now)));
      const recorder = yield* RunRecorder;
      let read = 0;
      const counting: RunRecorder["Service"] = {
        ...recorder,
        runs: (query) =>
          Effect.map(recorder.runs(query), (page) => {
            read += page.length;
            return page;
          }),
      };
      const first = yield* Effect.provideService(found({ end: "stopped" }), RunRecorder, counting);
      assert.deepStrictEqual([ids(first.runs), first.cut, read], [[], true, RunSearch.scannedRunsMax]);
      const second = yield* found({ end: "stopped", before: first.next });
      assert.deepStrictEqual(second, { runs: second.runs, next: undefined, cut: false });
      assert.deepStrictEqual(ids(second.runs), ["oldest"]);
      read = 0;
      yield* Effect.provideService(found({ q: "r1" }), RunRecorder, counting);
      assert.strictEqual(read, 101, "what stands in columns is not read through");
    }).pipe(Effect.provide(memory)),
  );

  it.effect("returns no wrong run with a recorder that only knows the old fields of a query", () =>
    Effect.gen(function* () {
      yield* put([Runs.calm("a", now), Runs.calm("b", now - 1, Runs.gpt), Runs.calm("c", now)]);
      const recorder = yield* RunRecorder;
      const old: RunRecorder["Service"] = {
        ...recorder,
        runs: ({ before, limit, state } = {}) =>
          recorder.runs({
            ...(limit === undefined ? {} : { limit }),
            ...(before === undefined ? {} : { before }),
            ...(state === undefined ? {} : { state }),
          }),
      };
      const get = (sent: RunSearch.SearchSent) => Effect.provideService(found(sent), RunRecorder, old);
      assert.deepStrictEqual(ids((yield* get({ model: "gpt" })).runs), ["b"]);
      assert.deepStrictEqual(ids((yield* get({ model: "claude", limit: "1" })).runs), ["c"]);
      assert.isTrue((yield* recorder.runs()).some((record) => isListed(record, { text: "GPT" })));
    }).pipe(Effect.provide(memory)),
  );
});
