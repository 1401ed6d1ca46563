/** A seam follows several parts at once: whoever asks it finds everything that has left, and few parts wait (laws L4, L11). */
import { assert, describe, it } from "@effect/vitest";
import { behindBytesMax, behindMax, RelaySeam } from "../../../../src/adapters/relay/seam/RelaySeam.ts";
import type { SeamPart } from "../../../../src/adapters/relay/seam/SeamFrames.ts";
import { none, text as shownText } from "../../../../src/domain/Observation.ts";
import { type ProtocolId, protocols } from "../../../../src/provider/Protocols.ts";
import * as Decoder from "../../../../src/provider/stream/Decoder.ts";
import { written } from "./HonestModel.ts";
import { planOf } from "./SeamCases.ts";

const ids = protocols.ids.filter((id) => protocols.get(id).splice !== undefined);

const said = Array.from({ length: 12 }, (_, n) => `This is sentence ${n} of many that follow. `).join("");

/** The events of a response as a relay hands them on: with their bytes, and with how their decoder went on with them. */
const partsOf = (protocol: ProtocolId, text: string, piece: number): ReadonlyArray<SeamPart> => {
  const decoder = Decoder.make(protocols.get(protocol), { keepsFolds: true });
  return written(protocol, { text }, { number: 1, piece }).map((event) => {
    const bytes = new TextEncoder().encode(event);
    const [decoded] = decoder.push(bytes);
    const [fold] = decoder.folds;
    if (decoded === undefined) throw new Error("an event was not decoded");
    return { bytes, observation: decoded.observation, decoded, ...(fold === undefined ? {} : { fold }) };
  });
};

/** A seam that some parts have left by. */
const seamBehind = (parts: ReadonlyArray<SeamPart>, way: ReturnType<typeof planOf>): RelaySeam => {
  const seam = new RelaySeam();
  seam.setRequest(way);
  for (const part of parts) seam.left(part, part.observation);
  return seam;
};

/** Part for part, with a word of whether the seam has looked at it. */
const watched = (parts: ReadonlyArray<SeamPart>, seen: Set<SeamPart>): ReadonlyArray<SeamPart> =>
  parts.map((part) => {
    const { decoded, ...rest } = part;
    if (decoded === undefined) return part;
    return {
      ...rest,
      get decoded() {
        seen.add(part);
        return decoded;
      },
    };
  });

describe("the parts that have left and are not followed yet", () => {
  for (const protocol of ids) {
    const parts = partsOf(protocol, said, 7);
    const way = planOf(protocol);

    it(`${protocol}: however many wait, a plan and its request rest on all of them`, () => {
      const always = new RelaySeam();
      always.setRequest(way);
      const plans = new Set<string>();
      for (const [at, part] of parts.slice(0, 3 * behindMax + 2).entries()) {
        always.left(part, part.observation);
        // Asked behind each part, so that none waits.
        const plan = always.plan();
        const some = parts.slice(0, at + 1);
        assert.deepStrictEqual(seamBehind(some, way).plan(), plan, `behind part ${at + 1}`);
        if (typeof plan === "string") continue;
        plans.add(plan.quote);
        const request = always.requestOf(plan, way);
        assert.isDefined(request);
        assert.deepStrictEqual(seamBehind(some, way).requestOf(plan, way), request, `behind part ${at + 1}`);
      }
      assert.isAtLeast(plans.size, behindMax);
    });

    it(`${protocol}: however many wait, a continuation is joined behind all of them`, () => {
      for (let count = 2 * behindMax; count <= 3 * behindMax; count += 1) {
        const some = parts.slice(0, count);
        const plan = seamBehind(some, way).plan();
        if (typeof plan === "string") throw new Error(`no plan behind ${count} parts: ${plan}`);
        const join = seamBehind(some, way).joins(plan);
        const rest = said.slice(said.indexOf(plan.quote));
        const outcomes = partsOf(protocol, rest, 40).map((part) => join.take(part, part.observation).type);
        assert.notInclude(outcomes, "unproven", `behind ${count} parts`);
      }
    });
  }

  const way = planOf("openai-chat");

  it("are fewer than the bound: the one that reaches it brings all of them", () => {
    const seen = new Set<SeamPart>();
    const parts = partsOf("openai-chat", said, 7);
    const seam = seamBehind([], way);
    for (const [at, part] of watched(parts, seen).entries()) {
      seam.left(part, part.observation);
      assert.isBelow(at + 1 - seen.size, behindMax, `behind part ${at + 1}`);
    }
  });

  it("wait no longer where one of them is long", () => {
    const seen = new Set<SeamPart>();
    const [first, second, ...others] = partsOf("openai-chat", "x".repeat(3 * behindBytesMax), 2 * behindBytesMax);
    if (first === undefined || second === undefined) throw new Error("a response has several events");
    const long = [first, second, ...others].findIndex((part) => part.bytes.byteLength > behindBytesMax);
    assert.isAtLeast(long, 0);
    seamBehind(watched([first, second, ...others].slice(0, long + 1), seen), way);
    assert.strictEqual(seen.size, long + 1);
  });

  it("hold what was shown without an event: nothing goes on behind it, also where it is none of the last", () => {
    const parts = partsOf("openai-chat", said, 60);
    const untold: SeamPart = { bytes: new TextEncoder().encode("shown"), observation: shownText(5) };
    assert.isObject(seamBehind(parts.slice(0, 6), way).plan());
    assert.strictEqual(seamBehind([...parts.slice(0, 4), untold, ...parts.slice(4, 6)], way).plan(), "no_seam");
    const silent: SeamPart = { bytes: new Uint8Array(0), observation: none };
    assert.isObject(seamBehind([...parts.slice(0, 4), silent, ...parts.slice(4, 6)], way).plan());
    assert.strictEqual(seamBehind([...parts.slice(0, 4), untold, silent, ...parts.slice(4, 6)], way).plan(), "no_seam");
  });

  it("are none of the response that begins after them", () => {
    const parts = partsOf("openai-chat", said, 60);
    const seam = seamBehind(parts.slice(0, 5), way);
    seam.begins();
    for (const part of parts.slice(0, 3)) seam.left(part, part.observation);
    assert.deepStrictEqual(seam.plan(), seamBehind(parts.slice(0, 3), way).plan());
  });
});
