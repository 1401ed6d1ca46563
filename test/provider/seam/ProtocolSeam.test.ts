/**
 * Decoded parts of a continuation are those of the response that the client reads: every recorded stream cut behind some text, gone
 * on with by an honest model, and by the package's own rule.
 */
import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import type { Observation } from "../../../src/domain/Observation.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import * as ProtocolSeam from "../../../src/provider/ProtocolSeam.ts";
import { type Part, type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import { RefusedPrefills } from "../../../src/provider/seam/Prefills.ts";
import { textOf } from "../../../src/provider/stream/Content.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import * as Anchor from "../../../src/seam/Anchor.ts";
import type { SeamPlan, TextSeam } from "../../../src/seam/TextSeam.ts";
import { byProtocol, samples } from "../../samples/index.ts";
import { checkGrowth, encode } from "../Decoded.ts";
import { chatContinuer, geminiContinuer } from "./Continuers.ts";
import { type Continuer, cutsOf, type Stream, wholeStreams, written } from "./Spliced.ts";

const bodies = byProtocol(({ question }) => question("Tell me."));

const continuers: ReadonlyArray<readonly [ProtocolId, Continuer]> = [
  ["openai-chat", chatContinuer],
  ["google-gemini", geminiContinuer],
];

/** The parts of a stream, by a decoder of their own. */
const decoded = (id: ProtocolId, told: ReturnType<Continuer>): ReadonlyArray<Part> => {
  const decoder = Decoder.make(protocols.get(id));
  const parts = told.flatMap((event) => decoder.push(encode(written(event))));
  return [...parts, ...decoder.end().parts];
};

interface Passed {
  readonly parts: ReadonlyArray<Part>;
  readonly observations: ReadonlyArray<Observation>;
  readonly fault: string | undefined;
}

/** Joins parts, and hands over what passes. */
const join = (seam: TextSeam<Part>, plan: SeamPlan, parts: ReadonlyArray<Part>): Passed => {
  const out: Array<Part> = [];
  const observations: Array<Observation> = [];
  const joining = seam.joins(plan);
  const steps = [...parts.map((part) => () => joining.take(part, part.observation)), joining.end];
  for (const step of steps) {
    const passed = step();
    if (passed.type === "unproven") return { parts: out, observations, fault: passed.fault };
    assert.strictEqual(passed.parts.length, passed.observations.length);
    if (!passed.joined) assert.isEmpty(passed.parts, "nothing passes before the seam is proven");
    for (const [at, part] of passed.parts.entries()) {
      const observation = passed.observations[at] ?? part.observation;
      out.push(part);
      observations.push(observation);
      seam.left(part, observation);
    }
  }
  return { parts: out, observations, fault: undefined };
};

const text = (parts: ReadonlyArray<Part>): string => parts.map(({ content }) => textOf(content)).join("");

/** A seam whose protocol is known at run time alone. */
const made = (options: ProtocolSeam.Options): TextSeam<Part> => ProtocolSeam.make(options)();

const seamOf = (id: ProtocolId, first: ReadonlyArray<Part>): TextSeam<Part> => {
  const seam = made({ protocol: id, body: bodies[id] });
  for (const part of first) seam.left(part, part.observation);
  return seam;
};

/** The text that the new one has to begin with, whole. */
const anchorIn = (shown: string): string => {
  const anchor = Anchor.anchorOf(shown);
  return typeof anchor === "string" ? assert.fail(anchor) : anchor.text;
};

/** The items of a response, without what a provider names anew in each. */
const itemsOf = (id: ProtocolId, parts: ReadonlyArray<Part>): unknown =>
  Continuation.collect(id, parts).items.map(({ call, json, type, whole }) => ({ type, whole, call, text: json.text }));

const goesOn = (id: ProtocolId, stream: Stream, cut: number, continuer: Continuer): string => {
  const first = stream.parts.slice(0, cut) as ReadonlyArray<Part>; // the streams are those of the protocol
  const seam = seamOf(id, first);
  const plan = seam.plan();
  if (typeof plan === "string") return plan;
  const shown = text(first);
  assert.strictEqual(plan.at, shown.length);
  const input = { body: bodies[id], received: Continuation.collect(id, first), calls: [], results: [], seam: plan };
  const request = Continuation.build(id, input);
  assert.deepStrictEqual(Result.isSuccess(request) ? samples[id].check(request.success) : request.failure.message, []);
  const told = continuer({ rest: stream.parts.slice(cut), first, anchor: anchorIn(shown), attempt: 2 });
  const second = decoded(id, told);
  const passed = join(seam, plan, second);
  if (passed.fault !== undefined) return passed.fault;
  const all = [...first, ...passed.parts];
  const note = `cut behind ${cut}`;
  assert.strictEqual(text(all), text(stream.parts as ReadonlyArray<Part>), note);
  checkGrowth(all);
  const sum = passed.observations.reduce((total, it) => total + (it.shows === "text" ? it.characters : 0), 0);
  assert.strictEqual(sum, text(passed.parts).length, note);
  assert.deepStrictEqual(itemsOf(id, all), itemsOf(id, stream.parts as ReadonlyArray<Part>), note);
  // The attempt cost its own tokens; the client reads those of the whole response.
  const own = second.findLast(({ observation }) => observation.usage !== undefined)?.observation.usage;
  assert.deepStrictEqual(passed.observations.findLast(({ usage }) => usage !== undefined)?.usage, own, note);
  return "joined";
};

const sampled = (cuts: ReadonlyArray<number>): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(cuts.length / 12));
  return cuts.filter((_, index) => index % step === 0 || index === cuts.length - 1);
};

describe.each(continuers)("ProtocolSeam, %s", (id, continuer) => {
  const outcomes = new Map<string, number>();
  for (const stream of wholeStreams(protocols.get(id))) {
    it(`${stream.name}, cut behind some text, gives parts that fit what the client has read`, () => {
      for (const cut of sampled(cutsOf(stream))) {
        const outcome = goesOn(id, stream, cut, continuer);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        assert.include(
          ["joined", "repeats_itself", "not_text_last", "refusal_shown", "blank"],
          outcome,
          `cut behind ${cut}`,
        );
      }
    });
  }

  it("nearly every text that may go on does", () => {
    // What stands behind the text, or is the provider's refusal, is no text that may.
    const asked = [...outcomes].filter(([outcome]) => !["not_text_last", "refusal_shown", "blank"].includes(outcome));
    const all = asked.reduce((sum, [, count]) => sum + count, 0);
    assert.isAtLeast(outcomes.get("joined") ?? 0, all * 0.9, JSON.stringify([...outcomes]));
  });
});

const said = (content: string, extra: object = {}) => ({
  data: {
    id: "c",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
    ...extra,
  },
});
const shown = "It rained all night. The river rose, and the old bri";
const first = decoded("openai-chat", [said("It rained all night. "), said("The river rose, and the old bri")]);

describe("ProtocolSeam", () => {
  it("plans an anchor where nothing is declared, with the whole end of the text", () => {
    const plan = seamOf("openai-chat", first).plan();
    assert.deepStrictEqual(plan, { proof: "anchor", at: shown.length, quote: shown });
  });

  it("reports why a response cannot be continued, before it inspects the text", () => {
    const body = { ...bodies["openai-chat"], response_format: { type: "json_object" } };
    const seam = made({ protocol: "openai-chat", body });
    for (const part of first) seam.left(part, part.observation);
    assert.strictEqual(seam.plan(), "structured_output");
    const unread = made({ protocol: "openai-chat", body: "no object" });
    assert.strictEqual(unread.plan(), "unbuildable");
  });

  it("has nothing to go on with before text was shown, and behind white space alone", () => {
    assert.strictEqual(seamOf("openai-chat", []).plan(), "blank");
    assert.strictEqual(seamOf("openai-chat", decoded("openai-chat", [said(" \n")])).plan(), "blank");
  });

  it("forgets what was shown where a response begins anew", () => {
    const seam = seamOf("openai-chat", first);
    seam.begins();
    assert.strictEqual(seam.plan(), "blank");
  });

  it("does not treat the provider's error message as part of the response", () => {
    const seam = seamOf("openai-chat", first);
    const [broken] = decoded("openai-chat", [{ data: { error: { message: "overloaded", code: 503 } } }]);
    if (broken !== undefined) seam.left(broken, broken.observation);
    assert.deepStrictEqual(seam.plan(), { proof: "anchor", at: shown.length, quote: shown });
    const plan = seam.plan();
    if (typeof plan === "string") assert.fail(plan);
    const passed = join(seam, plan, decoded("openai-chat", [said(`${shown}dge fell.`)]).slice(0, 1));
    assert.strictEqual(text(passed.parts), "dge fell.");
  });

  it("joins nothing by a plan of text that has not left here", () => {
    const passed = join(seamOf("openai-chat", first), { proof: "anchor", at: 9, quote: "elsewhere" }, first);
    assert.deepStrictEqual(passed, { parts: [], observations: [], fault: "differs" });
  });

  it("is unproven with the first character that differs, and hands on nothing", () => {
    const seam = seamOf("openai-chat", first);
    const plan = seam.plan();
    if (typeof plan === "string") assert.fail(plan);
    const passed = join(seam, plan, decoded("openai-chat", [said("Sure! "), said(shown)]));
    assert.deepStrictEqual(passed, { parts: [], observations: [], fault: "differs" });
    // The same plan may be tried again: nothing has left.
    assert.deepStrictEqual(seam.plan(), plan);
  });

  it("plans a prefill of the whole text where one is declared, and an anchor once it was refused", () => {
    const rule = { origin: "https://api.example", model: "m", form: "prefix" } as const;
    const refused = new RefusedPrefills();
    const next = () => {
      const seam = made({
        protocol: "openai-chat",
        body: bodies["openai-chat"],
        url: "https://api.example/v1/chat/completions",
        prefills: [rule],
        refused,
      });
      for (const part of first) seam.left(part, part.observation);
      return seam;
    };
    const seam = next();
    const plan = seam.plan();
    const anchor: SeamPlan = { proof: "anchor", at: shown.length, quote: shown };
    assert.deepStrictEqual(plan, { proof: "prefill", at: shown.length, quote: shown, form: "prefix" });
    if (typeof plan !== "string") seam.refused(plan);
    assert.deepStrictEqual(seam.plan(), anchor);
    assert.deepStrictEqual(next().plan(), anchor, "the process remembers it");
  });

  it("takes the rest of a prefill as it comes, and what a provider repeats of it once", () => {
    for (const [echo, pieces] of [
      [false, ["dge fell ", "into it."]],
      [true, [shown, "dge fell ", "into it."]],
    ] as const) {
      const rule = { origin: "https://api.example", model: "m", form: "prefix", echo } as const;
      const url = "https://api.example/v1/chat/completions";
      const seam = made({ protocol: "openai-chat", body: bodies["openai-chat"], url, prefills: [rule] });
      for (const part of first) seam.left(part, part.observation);
      const plan = seam.plan();
      if (typeof plan === "string") assert.fail(plan);
      const end = { data: { id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] } };
      const passed = join(seam, plan, decoded("openai-chat", [...pieces.map((it) => said(it)), end]));
      assert.deepStrictEqual([passed.fault, text(passed.parts)], [undefined, "dge fell into it."]);
    }
  });

  it("calls behind the seam count on behind those in front of it", () => {
    const chunk = (parts: ReadonlyArray<object>, extra: object = {}) => ({
      data: { candidates: [{ index: 0, content: { role: "model", parts }, ...extra }] },
    });
    const before = decoded("google-gemini", [
      chunk([{ executableCode: { language: "PYTHON", code: "1" } }]),
      chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }]),
      chunk([{ text: shown }]),
    ]);
    const seam = seamOf("google-gemini", before);
    const plan = seam.plan();
    if (typeof plan === "string") assert.fail(plan);
    const call = { functionCall: { name: "look", args: {} } };
    const second = decoded("google-gemini", [
      chunk([{ text: `${shown}dge fell.` }]),
      chunk([call], { finishReason: "STOP" }),
    ]);
    const passed = join(seam, plan, second);
    assert.isUndefined(passed.fault);
    checkGrowth([...before, ...passed.parts]);
    const ordinals = passed.observations.flatMap(({ calls }) => calls.map(({ ordinal }) => ordinal));
    assert.deepStrictEqual([...new Set(ordinals)], [1]);
  });

  it("takes white space behind a prefill off where it was not sent, as to Claude, and nowhere else", () => {
    const rule = { origin: "http://localhost", model: "*", form: "prefix", thinking: "never" } as const;
    const url = "http://localhost/v1/chat/completions";
    const seam = made({ protocol: "openai-chat", body: bodies["openai-chat"], url, prefills: [rule] });
    for (const part of decoded("openai-chat", [said("It rained.\n")])) seam.left(part, part.observation);
    const plan = seam.plan();
    if (typeof plan === "string") assert.fail(plan);
    assert.strictEqual(plan.proof, "prefill");
    const passed = join(seam, plan, decoded("openai-chat", [said("\nThe river rose.")]).slice(0, 1));
    assert.strictEqual(text(passed.parts), "\nThe river rose.");
  });

  it("never cuts a prefill inside a character", () => {
    const rule = { origin: "http://localhost", model: "*", form: "prefix", thinking: "never" } as const;
    const seam = made({
      protocol: "openai-chat",
      body: bodies["openai-chat"],
      url: "http://localhost/v1/chat/completions",
      prefills: [rule],
    });
    for (const part of first) seam.left(part, part.observation);
    const whole = seam.plan();
    assert.strictEqual(typeof whole === "string" ? whole : whole.form, "prefix");
    for (const part of decoded("openai-chat", [said("dge \ud83d")])) seam.left(part, part.observation);
    const half = seam.plan();
    assert.strictEqual(typeof half === "string" ? half : half.proof, "anchor");
  });

  it("reads a body that is given as a function where something breaks, and once", () => {
    let reads = 0;
    const body = () => {
      reads += 1;
      return bodies["openai-chat"];
    };
    const seam = made({ protocol: "openai-chat", body });
    for (const part of first) seam.left(part, part.observation);
    assert.strictEqual(reads, 0);
    assert.isObject(seam.plan());
    assert.isObject(seam.plan());
    assert.strictEqual(reads, 1);
  });
});
