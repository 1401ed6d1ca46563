/** Parts of plain text: what is dropped in front of a seam, split at it, held behind it and given at the end. */
import { assert, describe, it } from "@effect/vitest";
import * as Observation from "../../src/domain/Observation.ts";
import * as PlainSeam from "../../src/seam/PlainSeam.ts";
import type { SeamJoin, SeamPassed, SeamPlan, TextSeam } from "../../src/seam/TextSeam.ts";

/** A piece of text, or the name of something else in angle brackets. */
type Part = string;

const isText = (part: Part): boolean => !part.startsWith("<");

type Given = readonly [Part, Observation.Observation];

const text = (part: Part): Given => [part, Observation.text(part.length)] as const;

const call = (
  phase: "input_started" | "settled" = "input_started",
  executor: "runtime" | "provider" = "runtime",
): Given => ["<call>", Observation.calls([{ choice: 0, ordinal: 0, executor, phase }])];

const silent: Given = ["<meta>", Observation.none];
const ping: Given = ["<ping>", Observation.ping];
const reasoning: Given = ["<reasoning>", Observation.reasoning(9)];
const picture: Given = ["<picture>", Observation.text(0)];
const finish: Given = ["<finish>", Observation.terminal("stop")];

const seamOf = (...left: ReadonlyArray<Given>): TextSeam<Part> => {
  const seam = PlainSeam.make<Part>({
    text: (part) => (isText(part) ? part : undefined),
    withText: (_, piece) => piece,
  })();
  seam.begins();
  for (const one of left) seam.left(...one);
  return seam;
};

const planned = (seam: TextSeam<Part>): SeamPlan => {
  const plan = seam.plan();
  if (typeof plan === "string") throw new Error(plan);
  return plan;
};

const joinOf = (...left: ReadonlyArray<Given>): SeamJoin<Part> => {
  const seam = seamOf(...left);
  return seam.joins(planned(seam));
};

const partsOf = (passed: SeamPassed<Part>): ReadonlyArray<Part> | string => {
  if (passed.type === "unproven") return passed.fault;
  assert.strictEqual(passed.parts.length, passed.observations.length);
  for (const [index, part] of passed.parts.entries()) {
    if (isText(part))
      assert.strictEqual(passed.observations[index]?.characters, part.length, "the observation counts what leaves");
  }
  return passed.parts;
};

const shown = "Nobody could cross the river by foot but the hero";

describe("the plan of a text that was shown in parts", () => {
  it("quotes the end of the text run and says where the seam will be", () => {
    const seam = seamOf(silent, text("Nobody could cross the river "), ping, silent, text("by foot but the hero"));
    assert.deepStrictEqual(seam.plan(), { proof: "anchor", at: shown.length, quote: shown });
  });

  it("begins anew behind what is no text, and counts all text of the response", () => {
    const seam = seamOf(text("Look: "), picture, text(shown));
    assert.deepStrictEqual(seam.plan(), { proof: "anchor", at: shown.length + 6, quote: shown });
    assert.strictEqual(seamOf(text(shown), picture).plan(), "not_text_last");
    assert.strictEqual(seamOf(text(shown), reasoning).plan(), "not_text_last");
  });

  it("is none behind a call that has left, but behind a hosted one that has its result", () => {
    assert.strictEqual(seamOf(text(shown), call()).plan(), "not_text_last");
    assert.strictEqual(seamOf(call(), text(shown)).plan(), "not_text_last");
    assert.strictEqual(seamOf(call("input_started", "provider"), text(shown)).plan(), "not_text_last");
    assert.isObject(seamOf(call("input_started", "provider"), call("settled", "provider"), text(shown)).plan());
  });

  it("is none where nothing was shown, where it repeats itself, or where it is more than 64 Ki", () => {
    assert.strictEqual(seamOf().plan(), "blank");
    assert.strictEqual(seamOf(text(" \n")).plan(), "blank");
    assert.strictEqual(seamOf(text("ha ".repeat(400))).plan(), "repeats_itself");
    assert.strictEqual(seamOf(text(`${"word ".repeat(14_000)}${shown}`)).plan(), "too_long");
  });

  it("forgets what was withdrawn", () => {
    const seam = seamOf(text("Something else"), call());
    seam.begins();
    seam.left(...text(shown));
    assert.deepStrictEqual(seam.plan(), { proof: "anchor", at: shown.length, quote: shown });
  });
});

describe("the parts of a continuation", () => {
  it("are dropped in front of the seam but quiet ones, and the one with the seam in it is split", () => {
    const join = joinOf(text(shown));
    const passed = [
      silent,
      ping,
      reasoning,
      text("Nobody could cross the river "),
      silent,
      text("by foot but the heron"),
      text(" and the goat."),
    ].map((one) => join.take(...one));
    assert.deepStrictEqual(passed.map(partsOf), [[], ["<ping>"], [], [], [], ["n"], [" and the goat."]]);
    assert.deepStrictEqual(
      passed.map((one) => one.type === "passed" && one.joined),
      [false, false, false, false, false, true, true],
    );
    assert.deepStrictEqual(partsOf(join.take(...finish)), ["<finish>"]);
    assert.deepStrictEqual(partsOf(join.end()), []);
  });

  it("wait behind the seam where they may become a repetition, and leave in their order, in the parts that they came in", () => {
    const join = joinOf(text(shown));
    assert.deepStrictEqual(partsOf(join.take(...text(`${shown} Nobody`))), []);
    assert.deepStrictEqual(partsOf(join.take(...silent)), []);
    assert.deepStrictEqual(partsOf(join.take(...ping)), ["<ping>"]);
    assert.deepStrictEqual(partsOf(join.take(...text(" could"))), []);
    assert.deepStrictEqual(partsOf(join.take(...text(" swim, either"))), [
      " Nobody",
      "<meta>",
      " could",
      " swim, either",
    ]);
    assert.deepStrictEqual(partsOf(join.take(...silent)), ["<meta>"]);
  });

  it("leave in front of a call, and of what shows something else", () => {
    for (const other of [call(), picture, reasoning, finish]) {
      const join = joinOf(text(shown));
      join.take(...text(`${shown} Nobody`));
      assert.deepStrictEqual(partsOf(join.take(...other)), [" Nobody", other[0]]);
    }
  });

  it("leave at the end", () => {
    const join = joinOf(text(shown));
    join.take(...text(`${shown} Nobody`));
    assert.deepStrictEqual(partsOf(join.end()), [" Nobody"]);
  });

  it("are not proven by a call, a picture, an end or another text in front of the seam", () => {
    for (const [other, fault] of [
      [call(), "not_text"],
      [picture, "not_text"],
      [finish, "stopped"],
      [text("Sure"), "differs"],
    ] as const) {
      const join = joinOf(text(shown));
      join.take(...text("Nobody could cross "));
      assert.strictEqual(partsOf(join.take(...other)), fault);
      assert.strictEqual(partsOf(join.take(...text("more"))), fault);
    }
    assert.strictEqual(partsOf(joinOf(text(shown)).end()), "stopped");
  });

  it("end cleanly exactly at the seam: the end leaves, and a call does", () => {
    for (const other of [finish, call()]) {
      const join = joinOf(text(shown));
      assert.deepStrictEqual(partsOf(join.take(...text(shown))), []);
      assert.deepStrictEqual(partsOf(join.take(...other)), [other[0]]);
    }
  });

  it("are refused where they say again what was shown", () => {
    const join = joinOf(text(shown));
    assert.strictEqual(partsOf(join.take(...text(`${shown}${shown}n.`))), "repeats");
  });

  it("pass an error as it came, in front of the seam too", () => {
    const broken: Given = ["<error>", Observation.failed({ kind: "overloaded" })];
    assert.deepStrictEqual(partsOf(joinOf(text(shown)).take(...broken)), ["<error>"]);
  });

  it("join a second time behind what the first seam has let leave", () => {
    const seam = seamOf(text(shown));
    const first = seam.joins(planned(seam)).take(...text(`${shown}n and the go`));
    if (first.type === "unproven") throw new Error(first.fault);
    for (const [index, part] of first.parts.entries()) seam.left(part, first.observations[index] ?? Observation.none);
    const plan = planned(seam);
    assert.deepInclude(plan, { at: shown.length + 12, quote: `${shown}n and the go` });
    assert.deepStrictEqual(partsOf(seam.joins(plan).take(...text(`${shown}n and the goat.`))), ["at."]);
  });
});
