/** A reader that is away while its text breaks and goes on: whoever attaches has one whole text, of which nothing comes twice. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit } from "effect";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
import { GrammarCheck } from "../../../src/testing/GrammarCheck.ts";
import * as S from "../../runtime/Scripted.ts";
import { scriptedSeam } from "../../runtime/ScriptedSeam.ts";
import * as R from "./Readers.ts";

const attempts = [
  [S.start, S.text("one "), S.wait(500), S.text("two"), S.wait(500), S.text(" or"), S.wait(500), S.reset],
  [S.start, S.text("one two or"), S.wait(500), S.text(" three"), S.wait(500), S.text(" and"), S.wait(500), S.reset],
  [S.start, S.text("one two or three and"), S.wait(500), S.text(" four"), S.wait(500), S.done],
];
// What is held while nobody reads was not shown: a continuation goes on behind what was, however much that is.
const honest = () => {
  const provider = S.scripted(...attempts);
  const whole = "one two or three and four";
  const attempt: typeof provider.attempt = (context) => {
    if (context.attempt < 3) return provider.attempt(context);
    const at = context.seam?.at ?? 0;
    return S.scripted([S.start, S.text(whole.slice(0, at)), S.text(whole.slice(at)), S.done]).attempt(context);
  };
  return { attempt };
};

const texts = (readings: ReadonlyArray<R.Reading>): string =>
  R.kept(readings.flatMap(({ events }) => events))
    .filter((name) => name !== "start" && name !== "done")
    .join("");

describe("A reader that is away where its text breaks", () => {
  for (const back of [300, 1_200, 3_000, 20_000]) {
    it.effect(`and comes back ${back} ms later has one whole text, wherever it had left`, () =>
      Effect.gen(function* () {
        for (let take = 1; take <= 11; take += 1) {
          for (const discardable of [true, false]) {
            const one = Effect.gen(function* () {
              const processor = yield* StreamProcessor;
              const options = S.options(honest(), {
                runId: "r",
                linger: Linger.of(60_000),
                canContinue: true,
                continueText: "auto",
                seam: scriptedSeam(),
                discardable,
              });
              const first = yield* R.reads(processor.run(options), take);
              for (let step = 0; step < 100 && first.end() === undefined; step += 1) yield* R.passed(100);
              if (first.end() !== "left") return;
              yield* R.passed(back);
              const after = R.after(first.events);
              const second = yield* R.reads(
                processor.attach<S.ScriptedPart>("r", after === undefined ? {} : { after }),
              );
              yield* R.passed(30_000);
              const note = `left at ${take}, discardable ${discardable}: ${[...R.lines(first.events), "|", ...R.lines(second.events)].join(", ")}`;
              assert.strictEqual(second.end(), "done", note);
              assert.strictEqual(texts([first, second]), "one two or three and four", note);
              const grammar = new GrammarCheck();
              for (const event of first.events) grammar.next(event);
              for (const event of second.events) grammar.next(event);
              grammar.end(Exit.isSuccess(second.exit() ?? Exit.void));
              assert.deepStrictEqual(grammar.violations, [], note);
            });
            yield* Effect.provide(one, S.processor());
          }
        }
      }),
    );
  }
});
