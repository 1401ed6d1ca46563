/**
 * OpenAI Responses: what a client reads behind a seam is one response, whatever reads it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import { openAiResponses } from "../../../src/provider/openai-responses/Protocol.ts";
import * as Recordings from "../../Recordings.ts";
import { decode } from "../Decoded.ts";
import { honestResponse, type ResponseHonesty } from "./HonestResponse.ts";
import { bytesOf, type Continuation, eventsOf, join, proofOf, type WireEvent } from "./JoinedStream.ts";
import { aiSdkResponses, openAiResponse } from "./SdkReadings.ts";

const fixtures = new URL("../../fixtures/streams/openai-responses/", import.meta.url);

const streams: ReadonlyArray<readonly [string, Uint8Array]> = [
  ...readdirSync(fixtures).map((file) => [file, new Uint8Array(readFileSync(new URL(file, fixtures)))] as const),
  ...Recordings.recordings
    .filter(({ protocol }) => protocol === "openai-responses")
    .map((recording) => [recording.file, Recordings.bytesOf(recording)] as const),
];

const isDelta = ({ json }: WireEvent): boolean => Json.record(json)?.type === "response.output_text.delta";

const cutsOf = (events: ReadonlyArray<WireEvent>): ReadonlyArray<number> => {
  const first = events.findIndex(isDelta);
  const last = events.findIndex(({ json }) => Json.record(Json.record(json)?.response)?.status === "completed");
  if (first === -1) return [];
  const all = events.slice(0, last === -1 ? events.length - 1 : last).flatMap((_, at) => (at >= first ? [at + 1] : []));
  return all.filter((cut) => proofOf(runBehind(events.slice(0, cut))) !== undefined);
};

/** Cuts of a recording, so many at most and the last ones. */
const sampled = (all: ReadonlyArray<number>, most = 6): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(all.length / most));
  return all.filter((_, at) => at % step === 0 || at >= all.length - 3);
};

/** The run of text that is open behind events. */
const runBehind = (events: ReadonlyArray<WireEvent>): string => {
  const splice = openAiResponses.splice?.() ?? assert.fail("no splice");
  for (const { json } of events) splice.recordSent(json);
  return splice.response().run;
};

const textOf = ({ json }: WireEvent): string => {
  const frame = Json.record(json);
  return frame?.type === "response.output_text.delta" ? Json.string(frame.delta) : "";
};

const isConsistent = (events: ReadonlyArray<WireEvent>): boolean => {
  const said = events.filter(isDelta).map(({ json }) => Json.string(Json.record(json)?.delta));
  const told = events.flatMap(({ json }) => {
    const frame = Json.record(json);
    return frame?.type === "response.output_text.done" ? [Json.string(frame.text)] : [];
  });
  return said.join("") === told.join("");
};

/** Longest run that a continuation may begin anew from its beginning. */
const wholeMax = 2_000;

/** The ways to go on, one a cut. */
const kinds = ["anchor", "thinks", "whole"] as const;

const continuationOf = (
  whole: ReadonlyArray<WireEvent>,
  kind: (typeof kinds)[number],
  length = Number.POSITIVE_INFINITY,
): Continuation => {
  const honestyOf = (run: string): ResponseHonesty =>
    kind === "whole" && run.length <= wholeMax
      ? { pieces: 3 }
      : { anchor: proofOf(run)?.anchor ?? run.length, thinks: kind === "thinks" };
  return {
    events: (shown, left) => honestResponse(whole, left, shown, honestyOf(shown.run)).slice(0, length),
    verifier: ({ run }) => proofOf(run)?.verifier ?? assert.fail("no anchor"),
  };
};

const checked = (whole: ReadonlyArray<WireEvent>, cut: number, all: ReadonlyArray<Continuation>, note: string) => {
  const found = join(openAiResponses, whole.slice(0, cut), all);
  if (found.fault?.startsWith("refused")) return undefined;
  assert.isUndefined(found.fault, note);
  const stream = bytesOf(found.events);
  assert.deepStrictEqual(decode(openAiResponses, [stream]).end, { complete: true }, note);
  assert.strictEqual(found.events.map(textOf).join(""), whole.map(textOf).join(""), note);
  return stream;
};

/** What is the second's own; what servers say otherwise at the end of a reasoning item than at the end of all. */
const unequal = new Set(["usage", "created_at", "model", "encrypted_content", "summary"]);

/** Reasoning of the continuation that a call has brought with it is the one thing that is more. */
const withoutSecond = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, one) => {
      if (Array.isArray(one) && key !== "summary") return one.filter((item) => Json.record(item)?.id !== "rs_second");
      return unequal.has(key) ? null : one;
    }).replaceAll(/"(?:c_|aitxt-\w+|(?:rs|msg)_tmp_\w+)/g, '"'),
  );

describe("recorded responses", () => {
  for (const [name, bytes] of streams) {
    const whole = eventsOf(decode(openAiResponses, [bytes]).parts);
    // One recording was shortened by hand: its end says another text than its deltas.
    if (!isConsistent(whole)) continue;
    const cuts = decode(openAiResponses, [bytes]).end.complete ? cutsOf(whole) : [];
    if (cuts.length === 0) continue;
    it(`${name}: cut behind its text and joined, also twice, it decodes to the same text`, () => {
      for (const cut of sampled(cuts, 20)) {
        for (const kind of kinds) checked(whole, cut, [continuationOf(whole, kind)], `${kind} behind ${cut}`);
        for (const length of [5, 12, 30]) {
          const broken = continuationOf(whole, "whole", length);
          const found = join(openAiResponses, whole.slice(0, cut), [broken]);
          if (proofOf(runBehind(found.events)) === undefined) continue;
          checked(whole, cut, [broken, continuationOf(whole, "anchor")], `behind ${cut} and ${length}`);
        }
      }
    });

    it(`${name}: cut and joined, the SDK and the AI SDK read what they read of it unbroken`, async () => {
      // Three recordings break the SDK themselves, and one the AI SDK.
      const expected = await openAiResponse(bytes).catch(() => undefined);
      const expectedAi = await aiSdkResponses(bytes).catch(() => undefined);
      for (const [at, cut] of sampled(cuts).entries()) {
        const kind = kinds[at % kinds.length] ?? "anchor";
        const note = `${kind} behind ${cut}`;
        const stream = checked(whole, cut, [continuationOf(whole, kind)], note);
        if (stream === undefined) continue;
        if (expected !== undefined) {
          const response = await openAiResponse(stream);
          assert.deepStrictEqual(withoutSecond(response), withoutSecond(expected), note);
          assert.isAbove(response.usage?.output_tokens ?? 1, 0);
        }
        if (expectedAi === undefined) continue;
        const ai = await aiSdkResponses(stream);
        for (const key of ["text", "finishReason", "id"] as const)
          assert.deepStrictEqual(withoutSecond(ai[key]), withoutSecond(expectedAi[key]), note);
        assert.deepStrictEqual(withoutSecond(ai.next), withoutSecond(expectedAi.next), note);
      }
    });
  }
});
