/**
 * Asks the fault provider to go on with a text that was cut, in all four protocols, with the requests that this package builds.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Result } from "effect";
import type { PrefillForm } from "../../../src/domain/SeamWords.ts";
import * as Continuation from "../../../src/provider/Continuation.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import type { SeamPlan } from "../../../src/seam/TextSeam.ts";
import { FaultJudge, FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import { conversation, seamIds } from "../../samples/index.ts";

const content = [{ reasoning: 2 }, { text: 20 }];
const whole = Array.from({ length: 20 }, (_, at) => `r1.${at + 2}·`).join("");
const cutAfter = (n: number) => ({ content, break: { kind: "end" as const, at: "event" as const, n } });

/** The parts of one answer. */
const parts = (url: string, id: ProtocolId, body: unknown) =>
  Effect.promise(async () => {
    const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    const decoder = Decoder.make(protocols.get(id));
    const bytes = new Uint8Array(await response.arrayBuffer());
    return [...decoder.push(bytes), ...decoder.end().parts] as ReadonlyArray<Part>;
  });

const textOf = (all: ReadonlyArray<Part>): string => all.map((part) => Continuation.textOf(part)).join("");

/** Cuts the answer behind some text, and asks for the rest by a plan. */
const goesOn = (id: ProtocolId, script: FaultScriptInput, plan: (shown: string) => SeamPlan) =>
  Effect.gen(function* () {
    const provider = yield* FaultProvider.make({ script });
    const body = conversation(id, "Tell me a story");
    const first = yield* parts(provider.endpoint(id), id, body);
    const shown = textOf(first);
    const next = Continuation.build(id, {
      body,
      received: Continuation.collect(id, first),
      calls: [],
      results: [],
      seam: plan(shown),
    });
    const second = yield* parts(provider.endpoint(id), id, Result.getOrThrow(next));
    return {
      shown,
      rest: textOf(second),
      log: yield* provider.log,
    };
  });

const anchor = (shown: string): SeamPlan => ({ proof: "anchor", at: shown.length, quote: shown.slice(-12) });

/** How a request of each protocol ends with a text; Responses have no form for it. */
const forms: Readonly<Record<string, PrefillForm | undefined>> = {
  "anthropic-messages": "trailing",
  "google-gemini": "trailing",
  "openai-chat": "prefix",
};

describe("a fault provider that goes on", () => {
  for (const id of seamIds) {
    it.live(`${id}: begins with the quoted text and goes on to the end of its first answer`, () =>
      Effect.gen(function* () {
        const { log, rest, shown } = yield* goesOn(id, { answers: [cutAfter(14), { goes_on: {} }] }, anchor);
        assert.isAbove(shown.length, 0);
        assert.isTrue(whole.startsWith(shown) && shown !== whole, shown);
        assert.strictEqual(shown.slice(0, -12) + rest, whole);
        // What is quoted was sent before: the log of the second request has what is new.
        assert.strictEqual(log.flatMap(({ text }) => text).join(""), whole);
        const clean = FaultJudge.judge({ transcript: whole, completed: true, log });
        assert.isTrue(FaultJudge.isClean(clean), JSON.stringify(clean));
      }),
    );

    const form = forms[id];
    it.live.skipIf(form === undefined)(`${id}: stands behind the text that a request ends with`, () =>
      Effect.gen(function* () {
        const { rest, shown } = yield* goesOn(id, { answers: [cutAfter(14), { goes_on: {} }] }, (text) => ({
          proof: "prefill",
          at: text.length,
          quote: text,
          ...(form === undefined ? {} : { form }),
        }));
        assert.strictEqual(shown + rest, whole);
      }),
    );

    it.live(`${id}: says what it likes in front of it, where the script says so`, () =>
      Effect.gen(function* () {
        const script = { answers: [cutAfter(14), { goes_on: { preface: "Sure: " } }] };
        const { rest } = yield* goesOn(id, script, anchor);
        assert.match(rest, /^Sure: /);
        assert.isTrue(whole.endsWith(rest.slice(6)));
      }),
    );
  }

  it.live("answers a request that goes on with nothing as any other, and does not know a text that it never said", () =>
    Effect.gen(function* () {
      const provider = yield* FaultProvider.make({ script: { answers: [cutAfter(14), { goes_on: {}, content }] } });
      const body = conversation("openai-chat", "Tell me a story");
      yield* parts(provider.endpoint("openai-chat"), "openai-chat", body);
      const again = yield* parts(provider.endpoint("openai-chat"), "openai-chat", body);
      assert.strictEqual(textOf(again), whole.replaceAll("r1.", "r2."));
      const strange = { ...body, messages: [{ role: "user", content: "<cut>never said</cut>" }] };
      const other = yield* parts(provider.endpoint("openai-chat"), "openai-chat", strange);
      assert.match(textOf(other), /^r3\./);
    }),
  );

  it.live("continues the first answer again after a second cut", () =>
    Effect.gen(function* () {
      const provider = yield* FaultProvider.make({
        script: {
          answers: [cutAfter(8), { goes_on: {}, break: { kind: "end", at: "event", n: 12 } }, { goes_on: {} }],
        },
      });
      const url = provider.endpoint("openai-chat");
      const ask = (quote: string) => ({ messages: [{ role: "user", content: `<cut>${quote}</cut>` }] });
      const first = textOf(yield* parts(url, "openai-chat", conversation("openai-chat", "Tell me a story")));
      const second = textOf(yield* parts(url, "openai-chat", ask(first)));
      const third = textOf(yield* parts(url, "openai-chat", ask(second.slice(-6))));
      assert.isTrue(second.startsWith(first) && second.length > first.length && second !== whole);
      assert.strictEqual(second.slice(0, -6) + third, whole);
    }),
  );

  it.live("continues inside a word of a text with words after its serials, and logs only the serials", () =>
    Effect.gen(function* () {
      const content = [{ text: 3, words: ["One sentence. ", "Ano", "ther one."] }];
      const provider = yield* FaultProvider.make({
        script: { answers: [{ content, break: { kind: "end", at: "event", n: 3 } }, { goes_on: {} }] },
      });
      const url = provider.endpoint("openai-chat");
      const first = textOf(yield* parts(url, "openai-chat", conversation("openai-chat", "Tell me a story")));
      assert.strictEqual(first, "r1.0·One sentence. r1.1·Ano");
      const ask = { messages: [{ role: "user", content: "<cut>r1.1·Ano</cut>" }] };
      assert.strictEqual(textOf(yield* parts(url, "openai-chat", ask)), "r1.1·Anor1.2·ther one.");
      const log = yield* provider.log;
      assert.deepStrictEqual(
        log.map(({ text }) => text),
        [["r1.0·", "r1.1·"], ["r1.2·"]],
      );
    }),
  );
});
