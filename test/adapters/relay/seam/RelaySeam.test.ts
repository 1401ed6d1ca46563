/** A stream that breaks behind shown text goes on: its client reads one response of the protocol (DESIGN.md, 16; laws L2, L4, L5). */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { protocols } from "../../../../src/provider/Protocols.ts";
import { layer } from "../RelayCases.ts";
import { honest, type Replies, type Said, written } from "./HonestModel.ts";
import { planOf, played, readAs } from "./SeamCases.ts";

/** Those whose text goes on at all. */
const ids = protocols.ids.filter((id) => protocols.get(id).splice !== undefined);

const text = `The lock is taken in \`open()\` and given back in \`close()\`. 鍵は一つだけです。そして次に進みます。

\`\`\`ts
const lock = yield* Lock;
  yield* lock.release;
\`\`\`

A second caller waits 👩‍👩‍👧 for it. When the first one leaves, the second may go on with what it has to do here.`;

const answer: Said = { thought: "Where is the lock taken?", text, call: { name: "read", input: { path: "lock.ts" } } };

/** What a model says that does not do what it is asked. */
const dishonest: ReadonlyArray<readonly [name: string, said: (quote: string) => Said]> = [
  ["says something in front", (quote) => ({ text: `Sure, here it goes on: ${quote} and so on.` })],
  ["gives the rest alone", (quote) => ({ text: text.slice(text.indexOf(quote) + quote.length) })],
  ["says other words", () => ({ text: "The mutex is acquired by the opener, and released by whoever closes." })],
  ["calls a tool in place of it", () => ({ text: "", call: { name: "read", input: {} } })],
  ["says nothing", () => ({ text: "" })],
  ["stops inside the quote", (quote) => ({ text: quote.slice(0, 12) })],
];

describe.concurrent("a response that breaks behind shown text", () => {
  for (const protocol of ids) {
    const events = written(protocol, answer, { number: 1, piece: 7 });
    const whole = readAs(protocol, events.join(""));
    const firstText = events.findIndex((event) => readAs(protocol, event).text !== "");
    const marked = events.findIndex((_, at) => readAs(protocol, events.slice(0, at + 1).join("")).marked);
    // Gemini's last chunk is the marker once nothing follows it.
    const terminal = marked === -1 ? events.length : marked + 1;
    const firstCall = events.findIndex((event) => /"tool_calls":|tool_use"|"function_call"|functionCall/.test(event));

    const brokenAt = Effect.fnUntraced(function* (at: number) {
      const got = yield* Effect.scoped(played(planOf(protocol), honest(protocol, answer, [at])));
      const read = readAs(protocol, got.text);
      const said = `broken behind event ${at}`;
      if (at <= firstText && readAs(protocol, events.slice(0, at).join("")).shown) {
        // Thoughts that were shown have no end that could be gone on with.
        assert.deepStrictEqual([got.end, got.asked.length], ["text_shown", 1], said);
        return;
      }
      assert.strictEqual(got.end, "end", said);
      assert.isTrue(read.whole, said);
      assert.strictEqual(read.text, text, said);
      assert.deepStrictEqual(read.calls, whole.calls, said);
      assert.deepStrictEqual(read.finishes, whole.finishes, said);
      assert.strictEqual(read.starts, whole.starts, said);
      const goesOn = got.asked[1]?.quote !== undefined;
      assert.deepStrictEqual([got.asked.length > 1, goesOn], [at < terminal, at > firstText && at < terminal], said);
      // Up to the seam the bytes are the provider's own; what is held back of a call is none of them.
      if (goesOn) assert.isTrue(got.text.startsWith(events.slice(0, Math.min(at, firstCall)).join("")), said);
    });

    it.live(`${protocol}: broken at every event, its client reads one whole response, with each character once`, () =>
      Effect.forEach(events.slice(1).keys(), (at) => brokenAt(at + 1), {
        concurrency: "unbounded",
        discard: true,
      }).pipe(Effect.provide(layer)),
    );

    it.live(`${protocol}: held whole and handed over as live in its middle, it goes on as one that was shown`, () =>
      Effect.gen(function* () {
        const options = { reveal: "on_complete", holdMaxMs: 0 } as const;
        const got = yield* Effect.scoped(played(planOf(protocol), honest(protocol, answer, [firstText + 6]), options));
        const read = readAs(protocol, got.text);
        assert.deepStrictEqual([got.end, read.whole, read.text], ["end", true, text]);
        assert.deepStrictEqual(read.calls, whole.calls);
      }).pipe(Effect.provide(layer)),
    );

    it.live(`${protocol}: held whole, a break is asked again unseen and no seam is needed`, () =>
      Effect.gen(function* () {
        const model = honest(protocol, answer, [firstText + 6]);
        const got = yield* Effect.scoped(played(planOf(protocol), model, { reveal: "on_complete" }));
        assert.deepStrictEqual([got.end, got.asked[1]?.quote], ["end", undefined]);
        assert.strictEqual(got.text, written(protocol, answer, { number: 2, piece: 7 }).join(""));
      }).pipe(Effect.provide(layer)),
    );

    it.live(`${protocol}: without a word for it nothing goes on, as ever`, () =>
      Effect.gen(function* () {
        const model = honest(protocol, answer, [firstText + 6]);
        const got = yield* Effect.scoped(played(planOf(protocol), model, { continueText: "ask" }));
        assert.deepStrictEqual([got.end, got.asked.length], ["text_shown", 1]);
        assert.strictEqual(got.text, events.slice(0, firstText + 6).join(""));
      }).pipe(Effect.provide(layer)),
    );

    it.live(`${protocol}: two seams are proven, a third break ends it, and nothing comes twice`, () =>
      Effect.gen(function* () {
        const long = { text: Array.from({ length: 40 }, (_, n) => `This is sentence ${n} of many. `).join("") };
        const first = written(protocol, long, { number: 1, piece: 7 });
        const begins = first.findIndex((event) => readAs(protocol, event).text !== "");
        const at = begins + 20;
        const twice = yield* Effect.scoped(played(planOf(protocol), honest(protocol, long, [at, at, undefined])));
        const read = readAs(protocol, twice.text);
        assert.deepStrictEqual([twice.end, read.whole, read.text, twice.asked.length], ["end", true, long.text, 3]);
        const four = yield* Effect.scoped(played(planOf(protocol), honest(protocol, long, [at, at, at, at])));
        const shown = readAs(protocol, four.text);
        assert.deepStrictEqual([four.end, four.asked.length], ["text_shown", 3]);
        assert.isTrue(long.text.startsWith(shown.text));
        assert.isAbove(shown.text.length, 200);
      }).pipe(Effect.provide(layer)),
    );

    it.live(`${protocol}: a break inside the anchor showed nothing, and the same is asked once more`, () =>
      Effect.gen(function* () {
        const begins = written(protocol, { text }, { number: 1, piece: 7 }).findIndex(
          (event) => readAs(protocol, event).text !== "",
        );
        const model = honest(protocol, { text }, [begins + 12, begins + 2]);
        const got = yield* Effect.scoped(played(planOf(protocol), model));
        const read = readAs(protocol, got.text);
        assert.deepStrictEqual([got.end, read.whole, read.text], ["end", true, text]);
        assert.deepStrictEqual(got.asked[2]?.body, got.asked[1]?.body);
        assert.strictEqual(got.events.filter((event) => event._tag === "Continued").length, 1);
      }).pipe(Effect.provide(layer)),
    );

    it.live(
      `${protocol}: a model that begins its short answer anew in the same words is joined at what was shown`,
      () =>
        Effect.gen(function* () {
          const model: Replies = (_, number) => ({
            events: written(protocol, answer, { number, piece: 7 }),
            breakAt: number === 1 ? firstText + 6 : undefined,
          });
          const got = yield* Effect.scoped(played(planOf(protocol), model));
          const read = readAs(protocol, got.text);
          assert.deepStrictEqual([got.end, read.whole, read.text], ["end", true, text]);
        }).pipe(Effect.provide(layer)),
    );

    for (const [name, said] of dishonest) {
      it.live(`${protocol}: a model that ${name} is not joined, and its client reads nothing of it`, () =>
        Effect.gen(function* () {
          const shown = events.slice(0, firstText + 6);
          const model: Replies = (asked, number) =>
            asked.quote === undefined
              ? { events, breakAt: shown.length }
              : { events: written(protocol, said(asked.quote), { number, piece: 7 }) };
          const got = yield* Effect.scoped(played(planOf(protocol), model));
          assert.strictEqual(got.text, shown.join(""));
          assert.notStrictEqual(got.end, "end");
          assert.strictEqual(got.asked.length, 2);
        }).pipe(Effect.provide(layer)),
      );
    }
  }
});
