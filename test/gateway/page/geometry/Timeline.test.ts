/**
 * Measures the picture: the positions of bars, gaps and ticks.
 */
import { assert, describe, it } from "@effect/vitest";
import { timelineOf } from "../../../../src/gateway/page/geometry/Timeline.ts";
import * as RunRecord from "../../../../src/recorder/RunRecord.ts";
import { runStory } from "../../../../src/story/RunStory.ts";
import { folded } from "../../../recorder/Entries.ts";
import * as Runs from "../PageRuns.ts";

const startedAt = 1_790_000_000_000;

describe("the timeline of a run", () => {
  it("has a bar per attempt, from its start to its break or the end, with the waits between them", () => {
    const { bars, gaps, total } = timelineOf(runStory(folded(Runs.recovered("run_a", startedAt)), startedAt + 99_000));
    assert.deepStrictEqual(
      bars.map(({ end, from, to }) => [from, to, end]),
      [
        [0, 6_400, "broke"],
        [6_800, 19_300, "broke"],
        [20_100, 32_610, "completed"],
      ],
    );
    assert.deepStrictEqual(
      gaps.map(({ from, shortened, to, what }) => [from, to, what, shortened]),
      [
        [6_400, 6_800, "wait", false],
        [19_300, 20_100, "wait", false],
      ],
    );
    assert.strictEqual(total, 32_610);
  });

  it("lets a pending attempt last until now, and an ended run no longer than it did", () => {
    const record = folded(Runs.running("run_a", startedAt));
    for (const ms of [5_000, 60_000]) {
      const [bar] = timelineOf(runStory(record, startedAt + ms)).bars;
      assert.deepStrictEqual([bar?.from, bar?.to, bar?.end], [0, ms, "running"]);
    }
    const calm = folded(Runs.calm("run_b", startedAt));
    assert.deepStrictEqual(
      timelineOf(runStory(calm, startedAt + 9e9)).total,
      timelineOf(runStory(calm, startedAt + 7_000)).total,
    );
  });

  it("draws a question that has been open for days shorter than the attempt before it", () => {
    const day = 24 * 3_600_000;
    const { gaps, place, ticks } = timelineOf(runStory(folded(Runs.asking("run_a", startedAt)), startedAt + 3 * day));
    assert.deepStrictEqual(gaps, [{ from: 8_200, to: 3 * day, what: "question", open: true, shortened: true }]);
    assert.closeTo(place(8_200), 100 / 1.3, 0.01);
    assert.isTrue(
      ticks.every((ms) => ms <= 8_200),
      ticks.join(),
    );
  });

  it("keeps order and stays on the paper, at every moment and for every record", () => {
    const records = [...Runs.album(), Runs.begun("run_a", Runs.claude, startedAt)].map((it) =>
      folded(Array.isArray(it) ? it : [it as RunRecord.Entry]),
    );
    for (const record of records) {
      for (const now of [
        record.started_at - 5_000,
        record.started_at,
        record.started_at + 1,
        record.started_at + 1e10,
      ]) {
        const { bars, place, ticks, total } = timelineOf(runStory(record, now));
        const moments = Array.from({ length: 51 }, (_, n) => (total * n) / 50);
        const places = moments.map(place);
        assert.isTrue(
          places.every((it, n) => it >= (places[n - 1] ?? 0) && it <= 100),
          record.run_id,
        );
        assert.isTrue(bars.every(({ from, to }) => to >= from && Number.isFinite(place(to))));
        assert.isAtMost(ticks.length, 7);
      }
    }
  });

  it("continues after a gap of hours, with ticks on both sides", () => {
    const hour = 3_600_000;
    const record = folded([
      ...Runs.asking("run_a", startedAt),
      { _tag: "QuestionAnswered", revision: 1, answer: "retry", by: "person" },
      Runs.attempted(2, Runs.facts({ terminal_seen: true }), 5 * hour),
      { _tag: "RunEnded", end: { state: "completed", reason: "stop", attempts: 2, at: startedAt + 5 * hour + 9_000 } },
    ]);
    const { bars, gaps, place, ticks } = timelineOf(runStory(record, startedAt + 9 * hour));
    assert.deepStrictEqual(
      bars.map(({ end }) => end),
      ["broke", "completed"],
    );
    assert.deepStrictEqual(
      gaps.map(({ open, shortened, what }) => [what, open, shortened]),
      [["question", false, true]],
    );
    const [first, second] = bars.map(({ from, to }) => place(to) - place(from));
    assert.closeTo((first ?? 0) / (second ?? 1), 8_200 / 9_000, 0.001);
    assert.isTrue(ticks.some((ms) => ms > 5 * hour) && ticks.some((ms) => ms > 0 && ms < 8_200), ticks.join());
  });

  it("shows a run of the most attempts and calls that are kept", () => {
    const attempts = Array.from({ length: RunRecord.attemptsMax + 5 }, (_, n) =>
      Runs.attempted(n + 1, Runs.facts(), n * 100),
    );
    const record = folded([Runs.begun("run_a", Runs.claude, startedAt), ...attempts]);
    assert.lengthOf(timelineOf(runStory(record, startedAt + 10_000)).bars, RunRecord.attemptsMax);
  });
});
