/** Runs whose shown text broke, with seams that can be proven and seams that cannot. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import { none } from "../../../src/domain/Observation.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Seam from "../../../src/stages/seam/Seam.ts";
import * as S from "../Scripted.ts";
import { scriptedSeam } from "../ScriptedSeam.ts";

const { done, reset, start, text } = S;
type Options = S.More;
type Script = ReadonlyArray<S.Step>;

const runId = "seams";

/** Plays a run whose text may be continued, and returns its events, its record and its provider's requests. */
const played = (
  attempts: ReadonlyArray<Script>,
  more: Options | "without" = {},
  answers: Parameters<typeof S.processor>[0] = ["stop"],
) =>
  Effect.gen(function* () {
    const provider = S.scripted(...attempts);
    const { run } = yield* StreamProcessor;
    const heard: Array<string> = [];
    const options = S.options(provider, {
      runId,
      canContinue: true,
      continueText: "auto",
      ...(more === "without" ? {} : { seam: scriptedSeam({ heard }), ...more }),
    });
    const seen = yield* S.played(run(options));
    return { ...seen, provider, heard, record: yield* S.recordOf(runId) };
  }).pipe(Effect.provide(S.processor(answers)));

/** The continuation requests to the provider, by attempt. */
const asked = (provider: ReturnType<typeof S.scripted>) =>
  provider.attempts.map(({ request, seam }) =>
    seam === undefined ? request : `${request} ${seam.proof} ${seam.quote}`,
  );

const broken = [start, text("one "), text("two"), S.wait(1), reset];
const rest = [start, text("one two"), text(" three"), done];
const head = ["attempt 1 first", "start", "one ", "two", "retry continue continue_text", "attempt 2 continue"];

describe("Text that was shown before a break", () => {
  it.effect("is continued if the new text begins with the end of the old one", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, rest]);
      assert.deepStrictEqual(it.lines, [...head, "continued 2 at 7 by anchor", " three", "done", "completed"]);
      assert.deepStrictEqual(asked(it.provider), ["first", "continue anchor one two"]);
      assert.deepStrictEqual(
        it.record.attempts.map(({ seam }) => seam),
        [undefined, { at: 7, proof: "anchor", proven: true }],
      );
    }),
  );

  it.effect(
    "is continued in a single part that contains the end of the old text and the beginning of the new one",
    () =>
      Effect.gen(function* () {
        const it = yield* played([broken, [start, text("one two three"), done]]);
        assert.deepStrictEqual(it.lines.slice(-3), [" three", "done", "completed"]);
      }),
  );

  it.effect("L4: reaches a caller of plain parts with no character twice or missing", () =>
    Effect.gen(function* () {
      const provider = S.scripted(broken, rest);
      const { parts } = yield* StreamProcessor;
      const stream = parts(
        S.options(provider, { runId, canContinue: true, continueText: "auto", seam: scriptedSeam() }),
      );
      const fiber = yield* Effect.forkChild(Stream.runCollect(stream));
      yield* TestClock.adjust("10 minutes");
      const got = yield* Fiber.join(fiber);
      assert.strictEqual(got.map(({ name }) => name).join("|"), "start|one |two| three|done");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("reports each part that leaves to the seam, once and in order", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, rest]);
      assert.deepStrictEqual(it.heard, ["start", "one ", "two", " three", "done"]);
    }),
  );

  it.effect("is repeated by the ordinary rows if the continuation breaks before its seam", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one "), S.wait(1), reset], rest]);
      assert.deepStrictEqual(it.lines, [
        ...head,
        "retry replay nothing_shown",
        "attempt 3 replay",
        "continued 3 at 7 by anchor",
        " three",
        "done",
        "completed",
      ]);
      assert.deepStrictEqual(asked(it.provider).slice(1), ["continue anchor one two", "continue anchor one two"]);
    }),
  );

  it.effect("is repeated in the same way if the continuation ends without its marker", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one ")], rest]);
      assert.deepStrictEqual(it.lines.slice(6, 9), [
        "retry replay nothing_shown",
        "attempt 3 replay",
        "continued 3 at 7 by anchor",
      ]);
    }),
  );

  const early: Script = [start, text("one "), S.wait(1), reset];

  for (const [caller, discardable] of [
    ["can discard", true],
    ["cannot discard", false],
  ] as const)
    it.effect(`is reported after two continuations that broke before their seam, to a caller that ${caller}`, () =>
      Effect.gen(function* () {
        const it = yield* played([broken, early, early, rest], { discardable });
        assert.strictEqual(it.provider.attempts.length, 3);
        assert.deepStrictEqual(it.lines.slice(-3), ["ask text_shown", "answer stop", "end stopped text_shown"]);
        assert.deepInclude(S.errorOf(it.exit)?.failure, { kind: "transport", code: "ECONNRESET" });
      }),
    );

  it.effect("is reported after a continuation that joined and one that did not", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one two"), text(" three"), S.wait(1), reset], early, rest]);
      assert.strictEqual(it.provider.attempts.length, 3);
      assert.strictEqual(it.lines.at(-1), "end stopped text_shown");
    }),
  );

  it.effect("counts a continuation that was refused after its first words", () =>
    Effect.gen(function* () {
      const refusal = S.errorEvent({ kind: "overloaded", status: 529 });
      const late = (words: string, next: string) => [start, text(words), text(next), refusal];
      const more = { budget: { max_auto_retries: 9, max_not_processed: 9 } };
      const it = yield* played([broken, late("one two", " three"), late("one two three", " four"), rest], more);
      assert.strictEqual(it.provider.attempts.length, 3);
      assert.strictEqual(it.lines.at(-1), "end stopped text_shown");
    }),
  );

  it.effect("counts no continuation that was refused before it was processed", () =>
    Effect.gen(function* () {
      const busy = [S.fail({ kind: "overloaded", status: 529, not_processed: true })];
      const it = yield* played([broken, busy, busy, early, rest]);
      assert.strictEqual(it.lines.at(-1), "completed");
      assert.strictEqual(it.provider.attempts.length, 5);
    }),
  );

  it.effect("shows no held text if the continuation ends without its marker, because it may become a repetition", () =>
    Effect.gen(function* () {
      const it = yield* played([
        broken,
        [start, text("one two"), text(" three"), text("maybe")],
        [start, text("one two three four"), done],
      ]);
      assert.deepStrictEqual(it.heard, ["start", "one ", "two", " three", " four", "done"]);
      const last = S.part("end", { ...none, terminal_at_end: true, finish: "stop" });
      const whole = yield* played([broken, [start, text("one two"), text(" three"), text("maybe"), last]]);
      assert.deepStrictEqual(whole.heard, ["start", "one ", "two", " three", "end", "maybe"]);
    }),
  );

  it.effect("L5: is whole with a finish that was held until the clean end, which is the client's marker", () =>
    Effect.gen(function* () {
      const finish = S.part("finish", { ...none, terminal_at_end: true, finish: "stop" });
      const it = yield* played([broken, [start, text("one two"), text(" three"), finish]]);
      assert.deepStrictEqual(it.lines, [...head, "continued 2 at 7 by anchor", " three", "finish", "completed"]);
    }),
  );

  it.effect("is continued a second time after its own seam, and asks the third time", () =>
    Effect.gen(function* () {
      const again = (words: string, next: string) => [start, text(words), text(next), S.wait(1), reset];
      const it = yield* played([broken, again("one two", " three"), again("one two three", " four")]);
      assert.deepStrictEqual(it.lines.slice(6), [
        "continued 2 at 7 by anchor",
        " three",
        "retry continue continue_text",
        "attempt 3 continue",
        "continued 3 at 13 by anchor",
        " four",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
      const why = [...it.record.evidence.first, ...it.record.evidence.last].filter(
        ({ event }) => event === "seam_refused",
      );
      assert.deepStrictEqual(
        why.map(({ detail }) => detail),
        ["seams_spent"],
      );
    }),
  );

  it.effect("raises a question at once if the run may have no seam", () =>
    Effect.gen(function* () {
      const it = yield* played([broken], { seam: scriptedSeam({ max: 0 }) });
      assert.strictEqual(it.lines.at(-1), "end stopped text_shown");
    }),
  );

  for (const [why, more] of [
    ["the caller has given nothing that joins texts", "without"],
    ["the seam refuses it", { seam: scriptedSeam({ refusal: "structured_output" }) }],
    [
      "the seam throws",
      {
        seam: Seam.of<S.ScriptedPart>(() => {
          throw new Error("no seam");
        }),
      },
    ],
  ] as const) {
    it.effect(`raises a question if ${why}, and the record says so`, () =>
      Effect.gen(function* () {
        const it = yield* played([broken], more);
        assert.deepStrictEqual(it.lines.slice(-3), ["ask text_shown", "answer stop", "end stopped text_shown"]);
        const noted = [...it.record.evidence.first, ...it.record.evidence.last].filter(
          ({ event }) => event === "seam_refused",
        );
        assert.lengthOf(noted, 1);
      }),
    );
  }
});

describe("An unproven seam", () => {
  const wrong: ReadonlyArray<readonly [string, Script]> = [
    ["other words", [start, text("Sure, one two three"), done]],
    ["a stop inside the anchor", [start, text("one "), done]],
    ["a call before the anchor is whole", [start, text("one "), S.callReady("bash"), done]],
  ];

  for (const [name, script] of wrong) {
    it.effect(`${name}: the interrupted response is decided again, and a retry withdraws all of it`, () =>
      Effect.gen(function* () {
        const it = yield* played([broken, script, S.hello], {}, ["retry"]);
        assert.deepStrictEqual(it.lines, [
          ...head,
          "ask text_shown",
          "answer retry",
          "discard 1 after 0",
          "attempt 3 replay",
          "start",
          "hello",
          "done",
          "completed",
        ]);
        assert.strictEqual(it.record.incidents.at(-1)?.failure.code, "ECONNRESET");
      }),
    );

    it.effect(`${name}: a caller that cannot discard is asked, and hears why the response broke (L12)`, () =>
      Effect.gen(function* () {
        const it = yield* played([broken, script], { discardable: false });
        assert.deepStrictEqual(it.lines.slice(-3), [
          "ask recovery_refused",
          "answer stop",
          "end stopped recovery_refused",
        ]);
        const error = S.errorOf(it.exit);
        assert.instanceOf(error?.cause, S.ProviderBroke);
        assert.deepInclude(error?.failure, { kind: "protocol", reason: "seam_unproven" });
      }),
    );
  }

  it.effect("raises a question, too, in a repeat of a broken continuation", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one "), S.wait(1), reset], [start, text("No."), done]], {
        discardable: false,
      });
      assert.strictEqual(it.lines.at(-1), "end stopped recovery_refused");
    }),
  );

  it.effect(
    "offers no second retry to a caller that cannot discard, because the same would be paid for without end",
    () =>
      Effect.gen(function* () {
        const it = yield* played([broken, [start, text("No."), done]], { discardable: false }, ["retry"]);
        assert.strictEqual(it.lines.at(-1), "end stopped recovery_refused");
        assert.deepStrictEqual(it.record.questions.at(-1)?.choices, ["accept", "stop"]);
      }),
  );

  it.effect("is not searched for after the end marker of the provider, because that text was not cut", () =>
    Effect.gen(function* () {
      const malformed = S.errorEvent({ kind: "invalid_tool_input" });
      const it = yield* played([[start, text("one"), done, malformed]]);
      assert.deepStrictEqual(asked(it.provider), ["first"]);
      assert.strictEqual(it.lines.at(-1), "completed");
    }),
  );

  it.effect("after a joined seam has handed over the text before the repetition, and raises a question", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one two"), text(" three"), text("again"), done]]);
      assert.deepStrictEqual(it.lines.slice(6), [
        "continued 2 at 7 by anchor",
        " three",
        "ask recovery_refused",
        "answer stop",
        "end stopped recovery_refused",
      ]);
    }),
  );

  it.effect("is tried once: after a person's continue the text is continued in the caller's own way", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("No."), done], [start, text("three"), done]], {}, ["continue"]);
      assert.deepStrictEqual(it.lines.slice(6), [
        "ask text_shown",
        "answer continue",
        "attempt 3 continue",
        "start",
        "three",
        "done",
        "completed",
      ]);
      assert.deepStrictEqual(asked(it.provider), ["first", "continue anchor one two", "continue"]);
    }),
  );

  it.effect("does not make a response whole by its marker (L5)", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text("one "), done]]);
      assert.isFalse(it.lines.includes("completed"));
    }),
  );
});

describe("A prefill", () => {
  const refused = [S.fail({ kind: "rejected", reason: "invalid_request", status: 400 })];
  const prefilled = { seam: scriptedSeam({ proof: "prefill" }) };

  it.effect("is continued directly after the shown text", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, [start, text(" three"), done]], prefilled);
      assert.deepStrictEqual(it.lines.slice(6), [
        "continued 2 at 7 by prefill",
        "start",
        " three",
        "done",
        "completed",
      ]);
    }),
  );

  it.effect("that the provider does not accept falls back to the anchor, and costs no retry", () =>
    Effect.gen(function* () {
      const it = yield* played([broken, refused, rest], { ...prefilled, budget: { max_auto_retries: 1 } });
      assert.deepStrictEqual(it.lines.slice(6), [
        "retry continue continue_text",
        "attempt 3 continue",
        "continued 3 at 7 by anchor",
        " three",
        "done",
        "completed",
      ]);
    }),
  );

  it.effect("refused for another reason than its form does not rule out prefills", () =>
    Effect.gen(function* () {
      const auth = [S.fail({ kind: "rejected", reason: "permission", status: 403 })];
      const it = yield* played([broken, auth], prefilled);
      assert.strictEqual(it.lines.at(-1), "end stopped recovery_refused");
    }),
  );
});
