/** The judge of outages finds each thing that it is there to find, and nothing in a world where all is well. */
import { assert, describe, it } from "@effect/vitest";
import {
  type AskedQuestion,
  Diary,
  type RunEntry,
  type SentRequest,
  type Spendable,
  spendable,
} from "../../scripts/outage/Diary.ts";
import { areMet, judge } from "../../scripts/outage/Judge.ts";

const asker = { path: 0, key: 0, model: 0 };

const sent = (at: number, more: Partial<SentRequest> = {}): SentRequest => ({
  ...{ ...asker, at, from: at, run: "r", reached: true, answered: true, refused: false, cut: "no" },
  ...more,
});

const question = (at: number, more: Partial<AskedQuestion> = {}): AskedQuestion => ({
  ...{ at, rule: "text_shown", shown: false, reasoned: false, answer: "stop" },
  ...more,
});

/** A diary with one whole run, and what is changed in it. */
const diaryOf = (change: (run: RunEntry, diary: Diary) => void, may?: Spendable): Diary => {
  const diary = new Diary();
  const run = diary.begin("r", asker, "terminal", 0, may);
  run.requests.push(sent(0));
  run.end = "whole";
  run.to = 5_000;
  // Some trouble, on a path that no run goes by: a world without any proves nothing.
  diary.departures.push({ path: 9, at: 0 });
  change(run, diary);
  return diary;
};

const broken = (change: (run: RunEntry, diary: Diary) => void, may?: Spendable): ReadonlyArray<string> =>
  judge(diaryOf(change, may))
    .filter(({ found, most }) => found > most)
    .map(({ name }) => name.replace(/ of up to \d+/, ""));

const back = (waiting: ReadonlyArray<RunEntry>) => ({ path: 0, at: 30_000, awayMs: 20_000, kind: "refused", waiting });

describe("The judge of outages", () => {
  it("reports nothing if all is well", () => {
    const diary = diaryOf((run) => {
      run.requests.splice(0, 1, sent(0, { cut: "broke" }), sent(100));
    });
    assert.isTrue(areMet(judge(diary)));
  });

  it("finds that a world without requests, or without trouble, proves nothing", () => {
    const name = "requirements of a world";
    assert.deepStrictEqual(
      broken((run) => void run.requests.splice(0)),
      [name],
    );
    assert.deepStrictEqual(
      broken((_, diary) => void diary.departures.splice(0)),
      [name],
    );
    assert.isFalse(areMet(judge(new Diary())));
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
    assert.deepStrictEqual(twice, ["repeated effects"]);
  });

  it("finds text that was kept twice, and text that is missing", () => {
    assert.deepStrictEqual(
      broken((run) => {
        run.twice = ["a#1"];
        run.missing = ["a#2"];
      }),
      ["repeated text", "missing text"],
    );
  });

  it("reports a needless question, but none after shown text or after too many cuts", () => {
    const asks = (more: Partial<AskedQuestion>, requests: ReadonlyArray<SentRequest>) =>
      broken((run) => {
        run.requests.splice(0, 1, ...requests);
        run.questions.push(question(1_000, more));
      });
    const cut = sent(0, { cut: "broke" });
    assert.deepStrictEqual(asks({}, [cut]), ["needless questions"]);
    assert.deepStrictEqual(asks({}, [cut, cut, cut]), ["needless questions"]);
    assert.deepStrictEqual(asks({ shown: true }, [cut]), []);
    assert.deepStrictEqual(asks({ reasoned: true }, [cut, cut]), []);
    assert.deepStrictEqual(asks({}, [cut, cut, cut, cut]), []);
    const silent = sent(0, { cut: "silent" });
    assert.deepStrictEqual(asks({}, [silent, silent]), []);
    const spent = { rule: "budget_exhausted" };
    assert.deepStrictEqual(asks(spent, [silent]), ["needless questions"]);
    assert.deepStrictEqual(asks(spent, [cut, silent]), [], "its time is over");
    assert.deepStrictEqual(asks({}, [cut, silent]), ["needless questions"]);
  });

  it("treats a request during an unnoticed outage as a stall", () => {
    const asks = (backAt: number) =>
      broken((run, diary) => {
        const unanswered = { reached: false, answered: false };
        run.requests.splice(0, 1, sent(0, unanswered), sent(200, unanswered));
        run.questions.push(question(1_000));
        diary.departures.push({ path: 0, at: 300 });
        diary.returns.push({ path: 0, at: backAt, awayMs: backAt - 300, kind: "black_hole", waiting: [] });
      });
    assert.deepStrictEqual(asks(9_000), []);
    assert.deepStrictEqual(asks(11_000), ["needless questions"]);
  });

  describe("of a question because the budget is spent", () => {
    const refused = (at: number) => sent(at, { answered: false, refused: true });
    const cut = (at: number) => sent(at, { cut: "broke" });
    const asks = (
      may: Partial<Spendable>,
      requests: ReadonlyArray<SentRequest>,
      more: Partial<AskedQuestion> = {},
      change: (diary: Diary) => void = () => undefined,
    ) =>
      broken(
        (run, diary) => {
          run.requests.splice(0, 1, ...requests);
          run.questions.push(question(1_000, { rule: "budget_exhausted", ...more }));
          change(diary);
        },
        { ...spendable, ...may },
      );
    const needless = ["needless questions"];

    it("reports a question that came before the run's retries were used up", () => {
      assert.deepStrictEqual(asks({}, [refused(1), refused(2), refused(3)]), needless);
      assert.deepStrictEqual(asks({}, [refused(1), refused(2), refused(3), refused(4)]), []);
      assert.deepStrictEqual(asks({ refusals: 0 }, [refused(1)]), []);
      assert.deepStrictEqual(asks({ refusals: 0 }, [cut(1)]), needless, "a break is no refusal");
      assert.deepStrictEqual(asks({ breaks: 0 }, [cut(1)]), []);
      assert.deepStrictEqual(asks({ breaks: 0 }, [refused(1)]), needless, "a refusal is no break");
      assert.deepStrictEqual(asks({ breaks: 1 }, [sent(1, { reached: false, answered: false }), cut(2)]), []);
    });

    it("reports a question about a request that was never sent", () => {
      assert.deepStrictEqual(asks({ refusals: 0, breaks: 0 }, []), ["requirements of a world", ...needless]);
    });

    it("reports a question whose only reason is shown output", () => {
      assert.deepStrictEqual(asks({}, [cut(1)], { shown: true }), needless);
    });

    it("reports a question that counts spending before a person's last retry; a continue starts no new budget", () => {
      const again = (since: number, answer: "retry" | "continue" = "retry") =>
        asks({ refusals: 0 }, [refused(1), refused(since)], { answer: "retry" }, (diary) => {
          diary.runs.get("r")?.questions.unshift(question(500, { rule: "budget_exhausted", answer }));
        });
      assert.deepStrictEqual(again(600), []);
      assert.deepStrictEqual(again(400), needless);
      assert.deepStrictEqual(again(400, "continue"), []);
    });

    it("reports a question that came before the group's budget was used up by any of its runs", () => {
      const grouped = (retries: number, id = "g") =>
        asks({ group: { id: "g", retries } }, [cut(1)], {}, (diary) => {
          const other = diary.begin("o", asker, "terminal", 0, { ...spendable, group: { id, retries } });
          other.requests.push(refused(2), sent(3));
          other.end = "whole";
        });
      assert.deepStrictEqual(grouped(1), []);
      assert.deepStrictEqual(grouped(2), needless);
      assert.deepStrictEqual(grouped(1, "another"), needless);
    });

    it("reports a run that was lost by a budget that it had not spent", () => {
      const ends = (requests: ReadonlyArray<SentRequest>) =>
        broken((run) => {
          run.requests.splice(0, 1, ...requests);
          run.end = "lost";
          run.rule = "budget_exhausted";
        });
      assert.deepStrictEqual(ends([refused(1)]), ["lost"]);
      assert.deepStrictEqual(ends([refused(1), refused(2), refused(3), refused(4)]), []);
    });
  });

  it("reports decisions without an effect", () => {
    const decided = (decisions: number) =>
      broken((run) => {
        run.decisions = decisions;
        run.connects = 2;
        run.waits = 3;
      });
    assert.deepStrictEqual(decided(10), []);
    assert.deepStrictEqual(decided(11), ["decisions without effect"]);
  });

  it("finds requests that nothing explains", () => {
    assert.deepStrictEqual(
      broken((run) => run.requests.push(sent(100))),
      ["requests beyond those cut or refused"],
    );
    assert.deepStrictEqual(
      broken((run) => run.requests.push(sent(100, { reached: false }))),
      [],
      "what never came to the provider is none",
    );
    assert.deepStrictEqual(
      broken((run) => run.requests.splice(0, 1, sent(0, { answered: false, refused: true }), sent(100))),
      [],
      "one behind a refusal is explained",
    );
  });

  it("finds a path's return that is noticed too late", () => {
    const noticed = (at: number) =>
      broken((run, diary) => {
        run.requests.splice(0, 1, sent(at));
        diary.returns.push(back([run]));
      });
    assert.deepStrictEqual(noticed(31_999), []);
    assert.deepStrictEqual(noticed(32_001), ["worst delay of a first request beyond its limit"]);
  });

  it("reports a path's return that is noticed too late if no probe is possible", () => {
    const noticed = (first: number, last = first) =>
      broken((run, diary) => {
        diary.unprobed.add(0);
        run.requests.splice(0, 1, sent(first));
        const other = diary.begin("o", asker, "terminal", 0);
        other.end = "whole";
        other.requests.push(sent(last));
        diary.returns.push(back([run, other]));
      });
    assert.deepStrictEqual(noticed(52_999), []);
    assert.deepStrictEqual(noticed(53_001), ["worst delay of a first request beyond its limit without probes"]);
    assert.deepStrictEqual(noticed(52_999, 62_999), []);
    assert.deepStrictEqual(noticed(52_999, 63_001), [
      "time until the last waiting runs sent its request without probes",
    ]);
  });

  it("reports one of many requests that waits too long after the return, or forever", () => {
    const last = (at: number | undefined) =>
      broken((run, diary) => {
        run.requests.splice(0, 1, sent(30_100));
        const other = diary.begin("o", asker, "terminal", 0);
        other.end = at === undefined ? "lost" : "whole";
        if (at !== undefined) other.requests.push(sent(at));
        diary.returns.push(back([run, other]));
      });
    assert.deepStrictEqual(last(39_999), []);
    assert.deepStrictEqual(last(40_001), ["time until the last waiting runs sent its request"]);
    assert.deepStrictEqual(last(undefined), ["lost", "time until the last waiting runs sent its request"]);
  });

  it("reports a request during an announced wait of its scope, and none of another scope", () => {
    const inside = (more: Partial<SentRequest>, kind: "rate_limited" | "overloaded" = "rate_limited") =>
      broken((run, diary) => {
        diary.refusals.push({ ...asker, kind, at: 10_000, until: 30_000 });
        run.requests.splice(0, 1, sent(20_000, more));
      });
    const found = ["requests during an announced wait"];
    assert.deepStrictEqual(inside({}), found);
    assert.deepStrictEqual(inside({ from: 9_999 }), [], "it was on its way when the refusal came");
    assert.deepStrictEqual(inside({ from: 30_000 }), []);
    for (const other of [{ key: 1 }, { model: 1 }, { path: 1 }]) assert.deepStrictEqual(inside(other), []);
    assert.deepStrictEqual(inside({ key: 1, from: 14_999 }, "overloaded"), found, "an overload holds others for 5 s");
    assert.deepStrictEqual(inside({ key: 1, from: 15_001 }, "overloaded"), []);
  });
});
