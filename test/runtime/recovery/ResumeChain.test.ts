import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as S from "../Scripted.ts";
import { bash, type Play, plain, playedOut, type Scenario, starts } from "./RuleBench.ts";

const { done, fail, reset, text } = S;
const refused = fail({ kind: "rejected", reason: "not_found" });
const byName: Play = { options: { cursor: (part) => part.name } };

const played = (scenario: Scenario) =>
  Effect.gen(function* () {
    const it = yield* playedOut({ play: () => byName, ...scenario }, {}, Number.POSITIVE_INFINITY);
    const requests = it.provider.attempts.map(({ mode, cursor }) =>
      cursor === undefined ? mode : `${mode} at ${cursor}`,
    );
    return { ...it, requests };
  });

describe("A resumed response is one response", () => {
  it.effect("resumes after the last part of each attempt", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [
          [text("a"), S.wait(1), reset],
          [text("b"), S.wait(1), reset],
          [text("c"), done],
        ],
      });
      assert.deepStrictEqual(it.requests, ["first", "resume at a", "resume at b"]);
      assert.deepStrictEqual(
        it.lines.filter((line) => line.startsWith("discard")),
        [],
      );
      assert.strictEqual(it.lines.at(-1), "completed");
    }),
  );

  it.effect("a refused cursor after a resume without content is decided on the earlier shown content", () =>
    Effect.gen(function* () {
      const it = yield* played({ attempts: [[text("a"), S.wait(1), reset], [reset], [refused]] });
      assert.deepStrictEqual(it.lines, [
        "attempt 1 first",
        "a",
        "retry resume resume_cursor",
        "attempt 2 resume",
        "retry resume resume_cursor",
        "attempt 3 resume",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
    }),
  );

  it.effect("a refused cursor is decided on everything that the resumed attempts did", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [[S.reasoning("hm"), S.wait(1), reset], [text("a"), S.wait(1), reset], [refused]],
      });
      assert.deepStrictEqual(it.lines.slice(-3), ["ask text_shown", "answer stop", "end stopped text_shown"]);
    }),
  );

  it.effect("a refused cursor is decided on the calls of the resumed attempts, too", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [[S.reasoning("hm"), S.wait(1), reset], [S.callReady("bash"), S.wait(1), reset], [refused]],
        play: () => ({ options: { ...byName.options, tools: [plain] } }),
      });
      assert.deepStrictEqual(it.lines.slice(-3, -1), ["ask tool_call_handed_over", "answer stop"]);
    }),
  );

  it.effect("a refused cursor withdraws shown reasoning before the replay", () =>
    Effect.gen(function* () {
      const it = yield* played({ attempts: [[S.reasoning("hm"), S.wait(1), reset], [refused], [text("a"), done]] });
      assert.deepStrictEqual(it.requests, ["first", "resume at (hm)", "replay"]);
      assert.deepStrictEqual(it.lines.slice(4), [
        "retry replay only_reasoning_shown",
        "discard 1 after 0",
        "attempt 3 replay",
        "a",
        "done",
        "completed",
      ]);
    }),
  );

  it.effect("a postponed resume repeats its own request: the same cursor, never the first request (L3)", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [[text("a"), S.wait(1), reset], [fail({ kind: "overloaded" })], [text("b"), done]],
      });
      assert.deepStrictEqual([it.requests[0], it.requests[1]], ["first", "resume at a"]);
      assert.match(it.requests[2] ?? "", / at a$/, "the third request goes on behind `a`");
      assert.deepStrictEqual(it.lines.slice(-3), ["b", "done", "completed"]);
    }),
  );

  it.effect("a person's retry withdraws the whole response with all of its attempts", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [
          [text("a"), S.wait(1), reset],
          [text("b"), S.wait(1), fail({ kind: "unknown" })],
          [text("a"), done],
        ],
        answers: ["retry"],
      });
      assert.deepStrictEqual(it.requests, ["first", "resume at a", "replay"]);
      assert.sameMembers(
        it.lines.filter((line) => line.startsWith("discard")),
        ["discard 1 after 0", "discard 2 after 0"],
      );
      assert.deepStrictEqual(it.lines.slice(-3), ["a", "done", "completed"]);
    }),
  );

  it.effect("a refused cursor waits for the handlers of the attempt that it should resume", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [
          [S.callReady("bash"), S.wait(1), fail({ kind: "protocol", reason: "damaged_frame" })],
          [refused],
          [done],
        ],
        play: (its) => {
          const tool = bash(its, Effect.as(Effect.sleep("1 hour"), "ran"));
          return { options: { ...byName.options, tools: [tool], canContinue: true }, onEvent: starts(tool) };
        },
      });
      assert.strictEqual(it.lines.at(-1), "completed");
      assert.deepStrictEqual(
        it.lines.filter((line) => line.startsWith("ask")),
        [],
      );
    }),
  );
});
