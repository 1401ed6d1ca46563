/** Bytes that break between the two halves of a line end are gone on with so that every client reads the next event. */
import { assert, describe, it } from "@effect/vitest";
import { GoogleGenAI } from "@google/genai";
import { Effect } from "effect";
import { seamIds } from "../../../samples/index.ts";
import { layer } from "../RelayCases.ts";
import { honestly, type Replies, type Said, written } from "./HonestModel.ts";
import { planOf, played, readAs } from "./SeamCases.ts";

const answer: Said = {
  text: "The lock is taken in open() and given back in close(). When the first one leaves, the second may go on.",
};

const textOf = async (body: string): Promise<string> => {
  const fetch: typeof globalThis.fetch = () =>
    Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: "http://here.invalid", fetch } });
  let text = "";
  for await (const chunk of await client.models.generateContentStream({ model: "m", contents: "hi" }))
    text += chunk.text ?? "";
  return text;
};

describe.concurrent("a stream of CRLF lines that breaks between CR and LF", () => {
  for (const protocol of seamIds)
    for (const cut of [-1, 0])
      it.live(`${protocol}: is gone on with behind ${cut === 0 ? "a whole line end" : "the half of one"}`, () =>
        Effect.gen(function* () {
          const lines = written(protocol, answer, { number: 1, piece: 7 }).map((it) => it.replaceAll("\n", "\r\n"));
          const begins = lines.findIndex((event) => readAs(protocol, event).text !== "");
          const shown = lines.slice(0, begins + 6);
          const last = (shown.at(-1) ?? "").slice(0, cut === 0 ? undefined : cut);
          const model: Replies = (asked, number) =>
            asked.quote === undefined
              ? { events: [...shown.slice(0, -1), last, "never"], breakAt: shown.length }
              : { events: written(protocol, honestly(answer, asked), { number, piece: 7 }) };
          const got = yield* Effect.scoped(played(planOf(protocol), model));
          const first = [...shown.slice(0, -1), last].join("");
          assert.deepStrictEqual([got.end, got.asked.length], ["end", 2]);
          assert.strictEqual(got.text.slice(0, first.length), first);
          assert.strictEqual(got.text[first.length] === "\n", cut === -1);
          assert.notInclude(got.text.slice(first.length), "\n\n\n", "it is owed once");
          assert.strictEqual(readAs(protocol, got.text).text, answer.text);
          if (protocol !== "google-gemini") return;
          assert.strictEqual(yield* Effect.promise(() => textOf(got.text)), answer.text);
        }).pipe(Effect.provide(layer)),
      );
});

describe.concurrent("a stream that ends cleanly before the line ends of its last event", () => {
  for (const protocol of seamIds)
    for (const nl of ["\n", "\r\n", "\r"])
      it.live(`${protocol}, ${JSON.stringify(nl)}: is gone on with behind that event, and not inside of it`, () =>
        Effect.gen(function* () {
          const lines = written(protocol, answer, { number: 1, piece: 7 }).map((it) => it.replaceAll("\n", nl));
          const begins = lines.findIndex((event) => readAs(protocol, event).text !== "");
          const shown = lines.slice(0, begins + 6);
          for (let cut = 1; cut <= 2 * nl.length; cut += 1) {
            const events = [...shown.slice(0, -1), (shown.at(-1) ?? "").slice(0, -cut)];
            const model: Replies = (asked, number) =>
              asked.quote === undefined
                ? { events }
                : { events: written(protocol, honestly(answer, asked), { number, piece: 7 }) };
            const got = yield* Effect.scoped(played(planOf(protocol), model));
            const first = events.join("");
            assert.deepStrictEqual([got.end, got.asked.length], ["end", 2], `less ${cut}`);
            assert.strictEqual(got.text.slice(0, first.length), first);
            assert.match(got.text.slice(first.length - 4), /^[\s\S]{0,4}?(\r\n|\n|\r)(\r\n|\n|\r)/, `less ${cut}`);
            assert.strictEqual(readAs(protocol, got.text).text, answer.text, `less ${cut}`);
          }
        }).pipe(Effect.provide(layer)),
      );
});
