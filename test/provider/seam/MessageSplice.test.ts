/**
 * Anthropic Messages: what a client reads behind a seam is one message, whatever reads it.
 */

import { readdirSync, readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import { anthropicMessages } from "../../../src/provider/anthropic/Protocol.ts";
import * as Recordings from "../../Recordings.ts";
import { decode } from "../Decoded.ts";
import { blocksBegun, type Honesty, honestMessage } from "./HonestMessage.ts";
import { bytesOf, type Continuation, eventsOf, join, prefillOf, proofOf, type WireEvent } from "./JoinedStream.ts";
import { aiSdkAnthropic, anthropicMessage } from "./SdkReadings.ts";

const fixtures = new URL("../../fixtures/streams/anthropic-messages/", import.meta.url);

const streams: ReadonlyArray<readonly [string, Uint8Array]> = [
  ...readdirSync(fixtures).map((file) => [file, new Uint8Array(readFileSync(new URL(file, fixtures)))] as const),
  ...Recordings.recordings
    .filter(({ protocol }) => protocol === "anthropic-messages")
    .map((recording) => [recording.file, Recordings.bytesOf(recording)] as const),
];

/** The first message of a body, which is what one run reads. */
const firstMessage = (bytes: Uint8Array): ReadonlyArray<WireEvent> => {
  const events = eventsOf(decode(anthropicMessages, [bytes]).parts);
  const end = events.findIndex(({ json }) => Json.record(json)?.type === "message_stop");
  return end === -1 ? events : events.slice(0, end + 1);
};

const textOf = ({ json }: WireEvent): string => {
  const frame = Json.record(json);
  return Json.string(Json.record(frame?.delta)?.text);
};

/** Behind which events to cut: where text or the end of a block has come behind some text. */
const cutsOf = (events: ReadonlyArray<WireEvent>): ReadonlyArray<number> => {
  const last = events.findIndex(({ json }) => Json.record(json)?.type === "message_delta");
  const first = events.findIndex((event) => textOf(event).trim() !== "");
  if (first === -1) return [];
  const all = events.slice(0, last === -1 ? events.length : last).flatMap((_, at) => (at >= first ? [at + 1] : []));
  return all;
};

/** Cuts of a recording, so many at most and the last ones. */
const sampled = (all: ReadonlyArray<number>, most = 6): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(all.length / most));
  return all.filter((_, at) => at % step === 0 || at === all.length - 1);
};

/** The run of text that is open behind events. */
const joinedRun = (events: ReadonlyArray<WireEvent>): string => {
  const splice = anthropicMessages.splice?.() ?? assert.fail("no splice");
  for (const { json } of events) splice.recordSent(json);
  return splice.response().run;
};

/** Longest run that a continuation may begin anew from its beginning. */
const wholeMax = 2_000;

/** The ways to go on, one a cut. */
const kinds = ["anchor", "thinks", "whole", "prefill"] as const;

const continuationOf = (
  whole: ReadonlyArray<WireEvent>,
  kind: (typeof kinds)[number],
  length = Number.POSITIVE_INFINITY,
): Continuation => {
  const honestyOf = (run: string): Honesty => {
    const anchor = proofOf(run)?.anchor ?? run.length;
    if (kind === "prefill") return { anchor: 0, pieces: 5 };
    if (kind === "whole" && run.length <= wholeMax) return { pieces: 3 };
    return { anchor, thinks: kind === "thinks" };
  };
  return {
    events: (shown, left) => honestMessage(whole, shown, blocksBegun(left), honestyOf(shown.run)).slice(0, length),
    verifier: ({ run }) => (kind === "prefill" ? prefillOf(run) : proofOf(run)?.verifier) ?? assert.fail("no anchor"),
  };
};

const checked = (whole: ReadonlyArray<WireEvent>, cut: number, all: ReadonlyArray<Continuation>, note: string) => {
  const found = join(anthropicMessages, whole.slice(0, cut), all);
  if (found.fault?.startsWith("refused")) return undefined;
  assert.isUndefined(found.fault, note);
  const stream = bytesOf(found.events);
  assert.deepStrictEqual(decode(anthropicMessages, [stream]).end, { complete: true }, note);
  assert.strictEqual(found.events.map(textOf).join(""), whole.map(textOf).join(""), note);
  return stream;
};

/** Whether what was shown behind a cut has an anchor: a text that repeats itself has none. */
const isAnchored = (whole: ReadonlyArray<WireEvent>, cut: number): boolean =>
  proofOf(joinedRun(whole.slice(0, cut))) !== undefined;

const isRefused = (whole: ReadonlyArray<WireEvent>): boolean =>
  whole.some(({ json }) => Json.record(Json.record(json)?.delta)?.stop_reason === "refusal");

describe("recorded messages", () => {
  for (const [name, bytes] of streams) {
    const whole = firstMessage(bytes);
    const { end } = decode(anthropicMessages, [bytesOf(whole)]);
    const cuts = end.complete ? cutsOf(whole).filter((cut) => isAnchored(whole, cut)) : [];
    if (cuts.length === 0) continue;
    it(`${name}: cut behind its text and joined, also twice, it decodes to the same text`, () => {
      for (const cut of sampled(cuts, 20)) {
        // A refusal in front of any new text is none of the answer's.
        for (const kind of isRefused(whole) ? kinds.slice(0, 3) : kinds)
          checked(whole, cut, [continuationOf(whole, kind)], `${kind} behind ${cut}`);
        for (const length of [4, 9, 16]) {
          const broken = continuationOf(whole, "whole", length);
          const found = join(anthropicMessages, whole.slice(0, cut), [broken]);
          const next = { ...continuationOf(whole, "anchor") };
          const shown = joinedRun(found.events);
          if (proofOf(shown) === undefined) continue;
          checked(whole, cut, [broken, next], `behind ${cut} and ${length}`);
        }
      }
    });

    it(`${name}: cut and joined, the SDK and the AI SDK read what they read of it unbroken`, async () => {
      const expected = await anthropicMessage(bytesOf(whole));
      // It refuses a recording whose citations are not as it expects them.
      const expectedAi = await aiSdkAnthropic(bytesOf(whole)).catch(() => undefined);
      for (const [at, cut] of sampled(cuts).entries()) {
        // Behind a prefill a new block goes on with the open one.
        const kind = kinds[at % 3] ?? "anchor";
        const note = `${kind} behind ${cut}`;
        const stream = checked(whole, cut, [continuationOf(whole, kind)], note);
        if (stream === undefined) continue;
        const message = await anthropicMessage(stream);
        assert.deepStrictEqual({ ...message, usage: null }, { ...expected, usage: null }, note);
        assert.isAbove(message.usage.output_tokens, 0);
        if (expectedAi === undefined) continue;
        const ai = await aiSdkAnthropic(stream);
        for (const key of ["text", "finishReason", "id"] as const)
          assert.deepStrictEqual(ai[key], expectedAi[key], note);
        assert.deepStrictEqual(Json.record(ai.next)?.messages, Json.record(expectedAi.next)?.messages, note);
        assert.isAbove(ai.outputTokens, 0);
      }
    });
  }
});
