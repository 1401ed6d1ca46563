/**
 * Continued text, combined with other features of a run: cursors, routes, credentials, budgets, holds, tools, an absent reader, an absent
 * store, and a seam that throws. The grammar of events holds in all cases.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Layer } from "effect";
import { none } from "../../../src/domain/Observation.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as PlainSeam from "../../../src/seam/PlainSeam.ts";
import type { TextSeam } from "../../../src/seam/TextSeam.ts";
import * as Routes from "../../../src/stages/routes/Routes.ts";
import * as Seam from "../../../src/stages/seam/Seam.ts";
import { GrammarCheck } from "../../../src/testing/GrammarCheck.ts";
import * as S from "../Scripted.ts";
import { scriptedSeam } from "../ScriptedSeam.ts";
import { runs } from "./RuleBench.ts";

const { done, reset, start, text } = S;
type Options = S.More;
type Script = ReadonlyArray<S.Step>;

const runId = "mixed";

const grammarOf = ({ events, exit }: S.Seen): ReadonlyArray<string> => {
  const grammar = new GrammarCheck();
  for (const event of events) grammar.next(event);
  grammar.end(Exit.isSuccess(exit));
  return grammar.violations;
};

const played = (
  attempts: ReadonlyArray<Script>,
  more: Options = {},
  answers: Parameters<typeof S.processor>[0] = ["stop"],
) =>
  Effect.gen(function* () {
    const provider = S.scripted(...attempts);
    const { run } = yield* StreamProcessor;
    const base: Options = { runId, canContinue: true, continueText: "auto", seam: scriptedSeam() };
    const seen = yield* S.played(run(S.options(provider, { ...base, ...more })));
    assert.deepStrictEqual(grammarOf(seen), []);
    return { ...seen, provider, record: yield* S.recordOf(runId) };
  }).pipe(Effect.provide(S.processor(answers)));

const plain = Seam.of(
  PlainSeam.make<S.ScriptedPart>({
    text: ({ name, says }) => (says.shows === "text" ? name : undefined),
    withText: (part, name) => ({ ...part, name }),
  }),
);

/** The text that the caller has in the end. */
const textOf = ({ events }: Pick<S.Seen, "events">): string =>
  events
    .flatMap((event) => (event._tag === "Part" && event.part.says.shows === "text" ? [event.part.name] : []))
    .join("");

const broken = [start, text("one "), text("two"), S.wait(1), reset];
const rest = [start, text("one two"), text(" three"), done];

describe("A continuation with a cursor", () => {
  it.effect("that breaks while text after its seam is held loses none of it, and repeats none", () =>
    Effect.gen(function* () {
      const before = "The lock is taken in open(). It is given back in close(). Then";
      const cut = `${before} all is well. The lock is taken`;
      const whole = `${cut} once more by the second caller, and given back.`;
      const provider = [
        [start, text(before), S.wait(1), S.fail({ kind: "truncated" })],
        [text(cut), S.wait(1), reset],
        // The rest after the cursor, or all of it again, depending on the request.
        [text(whole), done],
      ] satisfies ReadonlyArray<Script>;
      const it = yield* played(provider, {
        seam: plain,
        discardable: false,
        cursor: (part) => (part.name.includes("all is well") ? "behind the cut" : undefined),
      });
      assert.deepStrictEqual(
        it.provider.attempts.map(({ request }) => request),
        ["first", "continue", "continue"],
      );
      assert.strictEqual(textOf(it), whole);
    }),
  );
});

const boom = (): never => {
  throw new Error("a seam of the caller's throws");
};

/** A seam whose every join throws in one of its methods. */
const inJoin = (method: "end" | "take"): TextSeam<S.ScriptedPart> => {
  const seam = scriptedSeam().make();
  return { ...seam, joins: (plan) => ({ ...seam.joins(plan), [method]: boom }) };
};

/** A finish that only counts together with the clean end. */
const atEnd = { ...none, terminal_at_end: true };

const asked = (rule: string) => [`ask ${rule}`, "answer stop", `end stopped ${rule}`];
const retried = ["retry continue continue_text", "attempt 2 continue"];
const joined = [...retried, "continued 2 at 7 by anchor", " three"];
const refusal = S.fail({ kind: "rejected", reason: "invalid_request", status: 400 });

describe("A seam that throws", () => {
  for (const [where, throwing, second, expected, unable] of [
    ["its making", boom, rest, asked("text_shown")],
    ["left", () => ({ ...scriptedSeam().make(), left: boom }), rest, asked("text_shown")],
    ["plan", () => ({ ...scriptedSeam().make(), plan: boom }), rest, asked("text_shown")],
    [
      "joins",
      () => ({ ...scriptedSeam().make(), joins: boom }),
      rest,
      [...retried, ...asked("text_shown")],
      [...retried, ...asked("recovery_refused")],
    ],
    ["take", () => inJoin("take"), rest, [...retried, ...asked("recovery_refused")]],
    [
      "end",
      () => inJoin("end"),
      [text("one two"), text(" three"), S.part("finish", atEnd)],
      [...joined, ...asked("recovery_refused")],
    ],
    [
      "refused",
      () => ({ ...scriptedSeam({ proof: "prefill" }).make(), refused: boom }),
      [refusal],
      [...retried, ...asked("text_shown")],
    ],
    [
      "begins, which nothing calls here",
      () => ({ ...scriptedSeam().make(), begins: boom }),
      rest,
      [...joined, "done", "completed"],
    ],
  ] as const) {
    for (const discardable of [true, false]) {
      it.effect(
        `in ${where}, of a caller that can${discardable ? "" : "not"} discard, shows nothing twice and asks`,
        () =>
          Effect.gen(function* () {
            const it = yield* played([broken, second], { seam: Seam.of(throwing), discardable });
            assert.deepStrictEqual(it.lines.slice(4), discardable ? expected : (unable ?? expected));
          }),
      );
    }
  }

  it.effect("in begins, called if a run restarts, joins nothing further", () =>
    Effect.gen(function* () {
      const seam = () => ({ ...scriptedSeam().make(), begins: boom });
      const it = yield* played([[start, S.wait(1), reset], broken], { seam: Seam.of(seam) });
      assert.deepStrictEqual(it.lines.slice(-3), asked("text_shown"));
    }),
  );
});

describe("Continued text, combined with other features of a run", () => {
  it.effect("has a thousand parts before its seam, and each is shown once", () =>
    Effect.gen(function* () {
      const parts = Array.from({ length: 1_000 }, (_, at) => text(`w${at} `));
      const it = yield* played([
        [start, ...parts, S.wait(1), reset],
        [start, ...parts, text("and the end"), done],
      ]);
      assert.strictEqual(textOf(it), `${Array.from({ length: 1_000 }, (_, at) => `w${at} `).join("")}and the end`);
      assert.strictEqual(it.lines.at(-1), "completed");
    }),
  );

  it.effect("with on_complete shows nothing, so that it is replayed", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one two three"), done]], { reveal: "on_complete" });
      assert.deepStrictEqual(it.lines.slice(1, 3), ["retry replay nothing_shown", "attempt 2 replay"]);
      assert.strictEqual(textOf(it), "one two three");
    }),
  );

  it.effect("with on_complete and an ended hold continues like live text", () =>
    Effect.gen(function* () {
      const it = yield* played(
        [
          [start, text("one "), S.wait(2_000), text("two"), S.wait(1), reset],
          [start, text("one two"), text(" three"), S.wait(5_000), reset],
          [start, text("one two three"), text(" four"), done],
        ],
        { reveal: "on_complete", holdMaxMs: 1_000 },
      );
      assert.deepStrictEqual(it.lines.slice(6, 8), ["continued 2 at 7 by anchor", " three"]);
      assert.strictEqual(textOf(it), "one two three four");
    }),
  );

  for (const [status, expected] of [
    [500, "end stopped text_shown"],
    [402, "end stopped recovery_refused"],
    [404, "end stopped recovery_refused"],
  ] as const) {
    it.effect(`moves to no other route for a ${status} of its continuation`, () =>
      Effect.gen(function* () {
        const other = S.scripted([start, text("something else"), done]);
        const route = { id: "b", provider: { id: "b", reasoning: false }, attempt: other.attempt };
        const failed =
          status === 500
            ? S.fail({ kind: "server_error", status })
            : S.fail({ kind: "rejected", status, reason: status === 402 ? "quota" : "not_found" });
        const it = yield* played([broken, [failed], [failed], [failed]], {
          routes: Routes.of([{ ...route, observe: (part) => part.says }], { own: true }),
        });
        assert.strictEqual(other.attempts.length, 0);
        assert.strictEqual(textOf(it), "one two");
        assert.strictEqual(it.lines.at(-1), expected);
      }),
    );
  }

  it.effect("renews the credentials at a 401 of its continuation, and requests the same seam again", () =>
    Effect.gen(function* () {
      let renewed = 0;
      const it = yield* played([broken, [S.fail({ kind: "rejected", reason: "auth", status: 401 })], rest], {
        refreshCredentials: Effect.sync(() => (renewed += 1)),
      });
      assert.strictEqual(renewed, 1);
      assert.deepStrictEqual(
        it.provider.attempts.map(({ seam }) => seam?.quote),
        [undefined, "one two", "one two"],
      );
      assert.strictEqual(textOf(it), "one two three");
    }),
  );

  for (const max_auto_retries of [0, 1]) {
    it.effect(`uses a budget of ${max_auto_retries} retries like any other, and asks about its shown text`, () =>
      Effect.gen(function* () {
        const second = [start, text("one two"), text(" three"), S.wait(1), reset];
        const it = yield* played([broken, second], { budget: { max_auto_retries } });
        assert.strictEqual(it.provider.attempts.length, max_auto_retries + 1);
        assert.deepStrictEqual(it.lines.slice(-3), asked("budget_exhausted"));
      }),
    );
  }

  it.effect("asks a person if the continuation would waste more tokens than the run may spend", () =>
    Effect.gen(function* () {
      const it = yield* played([broken], { requestTokens: 500, budget: { max_wasted_tokens: 100 } });
      assert.deepStrictEqual(it.lines.slice(-3), asked("token_budget"));
    }),
  );
});

describe("Text after a call that has run", () => {
  const called = [start, text("one "), S.callReady("bash"), S.wait(1_000), text("two"), S.wait(1), reset];
  for (const [what, seam, expected] of [
    ["goes on where its seam tells the call, which is not run again", scriptedSeam(), ["completed"]],
    ["is asked about where its seam knows text alone", plain, asked("tool_ran")],
  ] as const) {
    it.effect(what, () =>
      Effect.gen(function* () {
        let ran = 0;
        const tool = (yield* ToolGuard).mutating("bash", () =>
          Effect.sync(() => {
            ran += 1;
            return "ran";
          }),
        );
        const provider = S.scripted(called, [start, text("one two"), text(" three"), done]);
        const options = { runId, canContinue: true, continueText: "auto", seam, tools: [tool] } as const;
        const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, options)), runs(tool));
        assert.deepStrictEqual(grammarOf(seen), []);
        assert.deepStrictEqual(seen.lines.slice(-expected.length), [...expected]);
        assert.strictEqual(ran, 1);
        if (seam !== plain) assert.strictEqual(textOf(seen), "one two three");
      }).pipe(Effect.provide(ToolGuard.layer.pipe(Layer.provideMerge(S.processor(["stop"]))))),
    );
  }
});

describe("A person's Stop at any step of a continuation", () => {
  const second = [start, text("one "), S.wait(1), text("two"), text(" three"), S.wait(1), reset];
  const third = [start, text("one two three"), S.wait(1), text(" four"), done];
  for (const way of ["cancel", "close"] as const) {
    it.effect(`${way}: nothing more is requested, and nothing was shown twice`, () =>
      Effect.gen(function* () {
        for (let at = 1; at <= 16; at += 1) {
          const one = Effect.gen(function* () {
            const processor = yield* StreamProcessor;
            const provider = S.scripted(broken, second, third);
            const options = S.options(provider, {
              runId,
              canContinue: true,
              continueText: "auto",
              seam: scriptedSeam(),
            });
            let seenSoFar = 0;
            let requests = Number.NaN;
            const seen = yield* S.played(processor.run(options), () => {
              seenSoFar += 1;
              if (seenSoFar !== at) return Effect.void;
              requests = provider.attempts.length;
              return way === "cancel" ? processor.cancel(runId) : processor.close("shutdown");
            });
            assert.deepStrictEqual(grammarOf(seen), []);
            assert.isTrue("one two three four".startsWith(textOf(seen)), `${at}: ${textOf(seen)}`);
            if (!seen.lines.includes("completed")) {
              assert.strictEqual(provider.attempts.length, requests, `stopped at event ${at}`);
              assert.match(seen.lines.at(-1) ?? "", /user_cancelled|lifecycle_closed/);
            }
          });
          yield* Effect.provide(one, S.processor());
        }
      }),
    );
  }
});
