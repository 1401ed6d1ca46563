/**
 * Every recorded stream of OpenAI Chat and Gemini, cut behind some text and gone on with: what a client reads is one response, and
 * the same as if it had never been cut.
 */
import { assert, describe, it } from "@effect/vitest";
import { protocols, type WireProtocol } from "../../../src/provider/Protocols.ts";
import { textOf } from "../../../src/provider/stream/Content.ts";
import { characters, decode, readyInputs } from "../Decoded.ts";
import { chatContinuer, geminiContinuer } from "./Continuers.ts";
import {
  type Continuer,
  cutsOf,
  type Prover,
  plainProver,
  prover,
  type Stream,
  shownOf,
  spliced,
  type Whole,
  wholeStreams,
} from "./Spliced.ts";
import { type Reading, type SpliceReader, spliceReaders } from "./SpliceReaders.ts";

const cases: ReadonlyArray<readonly [WireProtocol, Continuer]> = [
  [protocols.get("openai-chat"), chatContinuer],
  [protocols.get("google-gemini"), geminiContinuer],
];

/** Most cuts of a recording that every client reads. */
const cutsMax = 4;

const sampled = (cuts: ReadonlyArray<number>): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(cuts.length / cutsMax));
  return cuts.filter((_, index) => index % step === 0 || index === cuts.length - 1);
};

/** The package's own verifier, and plain ones: one for texts that the own one refuses, and one that holds text back. */
const provers: ReadonlyArray<Prover> = [prover, plainProver(), plainProver(3)];

/** A cut that is gone on with; what the package's own verifier refuses is proven by the plain one. */
const joinedBy = (protocol: WireProtocol, stream: Stream, continuer: Continuer, cut: number): Whole | string => {
  const whole = spliced(protocol, stream, continuer, [cut], prover);
  return typeof whole === "string" ? spliced(protocol, stream, continuer, [cut], plainProver()) : whole;
};

/** What a reading is compared by: usage is another's sum. */
const compared = ({ tokens: _tokens, ...rest }: Reading): unknown => rest;

const checkDecoded = (protocol: WireProtocol, stream: Stream, bytes: Uint8Array, note: string): void => {
  const { end, failure, parts } = decode(protocol, [bytes]);
  assert.isTrue(end.complete, `${note}: ${JSON.stringify(end)}`);
  assert.isUndefined(failure, note);
  const text = (all: typeof parts) => all.map(({ content }) => textOf(content)).join("");
  assert.strictEqual(text(parts), text(stream.parts), note);
  assert.deepStrictEqual(readyInputs(parts), readyInputs(stream.parts), note);
};

const checkRead = async (reader: SpliceReader, stream: Stream, bytes: Uint8Array, note: string): Promise<boolean> => {
  // A recording that the client cannot read by itself says nothing of a splice.
  const unbroken = await reader.read(stream.bytes).catch(() => undefined);
  if (unbroken === undefined) return false;
  const whole = await reader.read(bytes);
  assert.deepStrictEqual(compared(whole), compared(unbroken), `${reader.name}: ${note}`);
  if (unbroken.tokens > 0) assert.isAbove(whole.tokens, 0, `${reader.name}: ${note}`);
  if (unbroken.next.length > 0) assert.deepStrictEqual([...whole.next], [unbroken.text], `${reader.name}: ${note}`);
  return true;
};

for (const [protocol, continuer] of cases) {
  const streams = wholeStreams(protocol);
  describe(`a continuation in ${protocol.name} is joined to every recorded stream`, () => {
    it("as many characters are counted as the decoder counts", () => {
      for (const { name, parts } of streams)
        assert.strictEqual(shownOf(protocol, parts).response().characters, characters(parts, "text"), name);
    });

    for (const stream of streams) {
      it(`${stream.name}, cut behind every text, is decoded as if it had not been cut`, () => {
        for (const cut of cutsOf(stream))
          for (const proves of provers) {
            const whole = spliced(protocol, stream, continuer, [cut], proves);
            if (typeof whole === "string") continue;
            checkDecoded(protocol, stream, whole.bytes, `cut behind ${cut}`);
          }
      });

      it(`${stream.name}, cut a second time behind the seam, too`, () => {
        for (const cut of sampled(cutsOf(stream)))
          for (const further of [0, 1, 3]) {
            for (const proves of provers) {
              const whole = spliced(protocol, stream, continuer, [cut, further], proves);
              if (typeof whole === "string") continue;
              checkDecoded(protocol, stream, whole.bytes, `cut behind ${cut} and ${further}`);
            }
          }
      });

      for (const reader of spliceReaders.filter((it) => it.protocol === protocol.id))
        it(`${stream.name} is read by ${reader.name} as if it had not been cut`, async () => {
          for (const cut of sampled(cutsOf(stream))) {
            const whole = joinedBy(protocol, stream, continuer, cut);
            if (typeof whole === "string") continue;
            if (!(await checkRead(reader, stream, whole.bytes, `cut behind ${cut}`))) return;
          }
        });
    }
  });
}
