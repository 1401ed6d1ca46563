/** The judge of outages finds each thing that it is there to find, and nothing in a world where all is well. */
import { assert, describe, it } from "@effect/vitest";
import { type AskedQuestion, Diary, type RunEntry, type SentRequest } from "../../scripts/outage/Diary.ts";
import { holds, judged } from "../../scripts/outage/Judge.ts";

const asker = { path: 0, key: 0, model: 0 };

const sent = (at: number, more: Partial<SentRequest> = {}): SentRequest => ({
  ...{ ...asker, at, from: at, run: "r", reached: true, answered: true, cut: "no" },
  ...more,
});

const question = (at: number, more: Partial<AskedQuestion> = {}): AskedQuestion => ({
  ...{ at, rule: "text_shown", shown: false, reasoned: false, answer: "stop" },
  ...more,
});

/** A diary with one whole run, and what is changed in it. */
const diaryOf = (change: (run: RunEntry, diary: Diary) => void): Diary => {
  const diary = new Diary();
  const run = diary.begin("r", asker, "terminal", 0);
  run.requests.push(sent(0));
  run.end = "whole";
  run.to = 5_000;
  change(run, diary);
  return diary;
};

const broken = (change: (run: RunEntry, diary: Diary) => void): ReadonlyArray<string> =>
  judged(diaryOf(change))
    .filter(({ found, most }) => found > most)
    .map(({ name }) => name.replace(/ of up to \d+/, ""));

const back = (waiting: ReadonlyArray<RunEntry>) => ({ path: 0, at: 30_000, awayMs: 20_000, kind: "refused", waiting });

describe("The judge of outages", () => {
  it("finds nothing where all is well", () => {
    const diary = diaryOf((run) => {
      run.requests.splice(0, 1, sent(0, { cut: "broke" }), sent(100));
    });
    assert.isTrue(holds(judged(diary)));
  });

  it("finds a run that was lost, or never ended", () => {
    for (const end of ["lost", "open"] as const)
      assert.deepStrictEqual(
        broken((run) => {
          run.end = end;
        }),
        ["lost"],
      );
  });

  it("finds an effect that happened twice", () => {
    const twice = broken((_, diary) => {
      diary.effect("pay");
      diary.effect("pay");
    });
    assert.deepStrictEqual(twice, ["effects twice"]);
  });

  it("finds text that was kept twice, and text that is missing", () => {
    assert.deepStrictEqual(
      broken((run) => {
        run.twice = ["a#1"];
        run.missing = ["a#2"];
      }),
      ["text twice", "text missing"],
    );
  });

  it("finds a question without need, and none where text was shown or a stream was cut too often", () => {
    const asks = (more: Partial<AskedQuestion>, requests: ReadonlyArray<SentRequest>) =>
      broken((run) => {
        run.requests.splice(0, 1, ...requests);
        run.questions.push(question(1_000, more));
      });
    const cut = sent(0, { cut: "broke" });
    assert.deepStrictEqual(asks({}, [cut]), ["asked without need"]);
    assert.deepStrictEqual(asks({}, [cut, cut, cut]), ["asked without need"]);
    assert.deepStrictEqual(asks({ shown: true }, [cut]), []);
    assert.deepStrictEqual(asks({ reasoned: true }, [cut, cut]), []);
    assert.deepStrictEqual(asks({}, [cut, cut, cut, cut]), []);
    const silent = sent(0, { cut: "silent" });
    assert.deepStrictEqual(asks({}, [silent, silent]), []);
  });

  it("finds requests that nothing explains", () => {
    assert.deepStrictEqual(
      broken((run) => run.requests.push(sent(100))),
      ["requests beyond what was cut"],
    );
    assert.deepStrictEqual(
      broken((run) => run.requests.push(sent(100, { reached: false }))),
      [],
      "what never came to the provider is none",
    );
  });

  it("finds a path's return that is noticed too late", () => {
    const noticed = (at: number) =>
      broken((run, diary) => {
        run.requests.splice(0, 1, sent(at));
        diary.returns.push(back([run]));
      });
    assert.deepStrictEqual(noticed(31_999), []);
    assert.deepStrictEqual(noticed(32_001), ["first request behind what is allowed, at worst"]);
  });

  it("finds one of many that waits for too long behind it, or for ever", () => {
    const last = (at: number | undefined) =>
      broken((run, diary) => {
        run.requests.splice(0, 1, sent(30_100));
        const other = diary.begin("o", asker, "terminal", 0);
        other.end = at === undefined ? "lost" : "whole";
        if (at !== undefined) other.requests.push(sent(at));
        diary.returns.push(back([run, other]));
      });
    assert.deepStrictEqual(last(39_999), []);
    assert.deepStrictEqual(last(40_001), ["last waiting runs on the wire"]);
    assert.deepStrictEqual(last(undefined), ["lost", "last waiting runs on the wire"]);
  });

  it("finds a request inside of an announced wait of its scope, and none of another one", () => {
    const inside = (more: Partial<SentRequest>, kind: "rate_limited" | "overloaded" = "rate_limited") =>
      broken((run, diary) => {
        diary.refusals.push({ ...asker, kind, at: 10_000, until: 30_000 });
        run.requests.splice(0, 1, sent(20_000, more));
      });
    const found = ["requests inside of an announced wait"];
    assert.deepStrictEqual(inside({}), found);
    assert.deepStrictEqual(inside({ from: 9_999 }), [], "it was on its way when the refusal came");
    assert.deepStrictEqual(inside({ from: 30_000 }), []);
    for (const other of [{ key: 1 }, { model: 1 }, { path: 1 }]) assert.deepStrictEqual(inside(other), []);
    assert.deepStrictEqual(inside({ key: 1, from: 14_999 }, "overloaded"), found, "an overload holds others for 5 s");
    assert.deepStrictEqual(inside({ key: 1, from: 15_001 }, "overloaded"), []);
  });
});
