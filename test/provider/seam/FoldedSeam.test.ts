/** A seam takes over how a decoder's fold went on, and reads an event itself wherever its client stands elsewhere. */
import { assert, describe, it } from "@effect/vitest";
import * as ProtocolSeam from "../../../src/provider/ProtocolSeam.ts";
import { type Part, type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import type { Fold, Tolerance } from "../../../src/provider/stream/Protocol.ts";
import { seamIds } from "../../samples/index.ts";
import { encode } from "../Decoded.ts";
import { chatContinuer, geminiContinuer } from "./Continuers.ts";
import { cutsOf, wholeStreams, written } from "./Spliced.ts";

interface Read {
  readonly part: Part;
  readonly fold: Fold | undefined;
}

/** Parts of a text, each with how its decoder went on. */
const read = (
  id: ProtocolId,
  chunks: ReadonlyArray<string | Uint8Array>,
  tolerance: Tolerance = {},
): ReadonlyArray<Read> => {
  const protocol = protocols.get(id);
  const decoder = Decoder.make(protocol, { tolerance, keepsFolds: true });
  const taken = (parts: ReadonlyArray<Part>) => {
    assert.strictEqual(decoder.folds.length, parts.length, "one for each part");
    return parts.map((part, index) => ({ part, fold: decoder.folds[index] }));
  };
  return [
    ...chunks.flatMap((chunk) => taken(decoder.push(typeof chunk === "string" ? encode(chunk) : chunk))),
    ...taken(decoder.end().parts),
  ];
};

/** A seam that counts the events which it reads itself. */
const counting = (id: ProtocolId, choices?: number) => {
  const protocol = protocols.get(id);
  const counted = { steps: 0 };
  const step: typeof protocol.step = (state, event) => {
    counted.steps += 1;
    return protocol.step(state, event);
  };
  return { counted, seam: ProtocolSeam.makeIn({ ...protocol, step }, { body: {}, choices }) };
};

const left = (seam: ProtocolSeam.FoldedSeam<ProtocolId>, parts: ReadonlyArray<Read>): void => {
  for (const { fold, part } of parts) seam.left(part, part.observation, fold);
};

const said = (content: string): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const words = ["It rained ", "all night. ", "The river ", "rose."].map(said);

/** Each changes what its decoder knows. */
const calls = [0, 1, 2, 3].map((index) => {
  const call = { index, id: `call_${index}`, type: "function", function: { name: "pay", arguments: "{}" } };
  return `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`;
});

describe("A seam behind a decoder", () => {
  for (const id of seamIds)
    it(`${id}: reads no event of a whole response a second time`, () => {
      for (const stream of wholeStreams(protocols.get(id))) {
        const { counted, seam } = counting(id);
        left(seam, read(id, [stream.bytes]));
        assert.strictEqual(counted.steps, 0, stream.name);
      }
    });

  for (const [id, continuer] of [
    ["openai-chat", chatContinuer],
    ["google-gemini", geminiContinuer],
  ] as const)
    it(`${id}: goes on as a seam that has read every event itself`, () => {
      for (const stream of wholeStreams(protocols.get(id)).slice(0, 8)) {
        const [cut] = cutsOf(stream).slice(-1);
        const first = read(id, [stream.bytes]).slice(0, cut);
        const [folded, own] = [counting(id), counting(id)];
        left(folded.seam, first);
        for (const { part } of first) own.seam.left(part, part.observation);
        assert.isAbove(own.counted.steps, folded.counted.steps);
        const [plan, same] = [folded.seam.plan(), own.seam.plan()];
        assert.deepStrictEqual(plan, same);
        if (typeof plan === "string" || typeof same === "string") continue;
        const shown = first.map(({ part }) => part);
        const told = continuer({ rest: stream.parts.slice(cut), first: shown, anchor: plan.quote ?? "", attempt: 2 });
        const second = read(id, told.map(written));
        const [one, other] = [folded.seam.joins(plan), own.seam.joins(same)];
        for (const { part } of second)
          assert.deepStrictEqual(one.take(part, part.observation), other.take(part, part.observation));
        assert.deepStrictEqual(one.end(), other.end());
      }
    });

  it("reads what another decoder has begun with: with other choices, or with another tolerance", () => {
    for (const tolerance of [{ choices: 2 }, { choices: 1, doneWithoutFinish: true }]) {
      const { counted, seam } = counting("openai-chat", 1);
      left(seam, read("openai-chat", words, tolerance));
      assert.strictEqual(counted.steps, words.length);
    }
    const { counted, seam } = counting("openai-chat", 1);
    left(seam, read("openai-chat", words, { choices: 1 }));
    assert.strictEqual(counted.steps, 0);
  });

  it("reads everything behind an event that did not leave, and behind one of another attempt", () => {
    const { counted, seam } = counting("openai-chat");
    const parts = read("openai-chat", calls);
    left(seam, [...parts.slice(0, 1), ...parts.slice(2)]);
    assert.strictEqual(counted.steps, calls.length - 2);
    const again = counting("openai-chat");
    left(again.seam, parts.slice(0, 2));
    left(again.seam, read("openai-chat", calls.slice(2)));
    assert.strictEqual(again.counted.steps, 2);
  });

  it("begins anew with a response that begins anew", () => {
    const { counted, seam } = counting("openai-chat");
    left(seam, read("openai-chat", words));
    seam.begins();
    left(seam, read("openai-chat", words));
    assert.strictEqual(counted.steps, 0);
  });

  it("is told nothing by comments and events without data, and by a decoder that keeps no folds", () => {
    const chunks = [": hello\n\n", ...words, "data:\n\n", ": bye\n\n"];
    const parts = read("openai-chat", chunks);
    const folds = parts.map(({ fold }) => fold);
    assert.deepStrictEqual(
      folds.map((fold) => fold !== undefined),
      [false, true, true, true, true, false, false],
    );
    assert.deepStrictEqual(
      folds.map((fold) => fold?.begins),
      [undefined, {}, undefined, undefined, undefined, undefined, undefined],
    );
    const decoder = Decoder.make(protocols.get("openai-chat"));
    decoder.push(encode(words.join("")));
    assert.lengthOf(decoder.folds, 0);
  });
});
