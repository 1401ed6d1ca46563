/**
 * Every recorded stream, broken behind some text at odd bytes and gone on with through the relay: its client reads the response as
 * if it had never been broken, or its break as ever.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { protocols } from "../../../../src/provider/Protocols.ts";
import { type Stream, wholeStreams } from "../../../provider/seam/Spliced.ts";
import { seamIds } from "../../../samples/index.ts";
import { layer } from "../RelayCases.ts";
import { type Break, breaksOf, broken, closed, readBy, reasonOf, withLineEnds } from "./Broken.ts";
import { planOf, readAs } from "./SeamCases.ts";

/** Pieces of text of a recording behind which it is broken. */
const most = 4;

/** Why a response is not gone on with: no other reason is right for an honest model. */
const allowed = ["repeats_itself", "not_text_last", "refusal_shown", "blank", "provider_tool_activity"];

/** Some bodies hold several messages, and an honest rest is that of the first. */
const isOne = ({ parts }: Stream): boolean => parts.filter(({ event }) => event.event === "message_start").length < 2;

const log = process.env.SEAM_COUNTS === undefined ? () => undefined : console.log;

for (const id of seamIds) {
  const protocol = protocols.get(id);
  const counts = new Map<string, number>();
  const plan = planOf(id);

  const check = Effect.fnUntraced(function* (stream: Stream, whole: unknown, at: Break) {
    const note = `${stream.name}, broken ${at.place} of part ${at.behind}`;
    const got = yield* broken(protocol, plan, stream, at);
    const expected = readAs(id, new TextDecoder().decode(stream.bytes));
    const read = readAs(id, got.text);
    if (got.end !== "end") {
      const reason = reasonOf(protocol, got);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      assert.include(allowed, reason, note);
      assert.isTrue(expected.text.startsWith(read.text), note);
      return;
    }
    // A break behind the marker is none; one in front of shown text is asked again.
    const outcome = got.quoted === 0 ? "no seam needed" : got.quoted === 1 ? "joined" : `${got.quoted} continuations`;
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    if (got.quoted === 0) {
      // Behind the marker nothing is held, and some bodies have another response there.
      assert.isTrue(expected.text.startsWith(read.text), note);
      return;
    }
    assert.isTrue(read.whole, note);
    assert.strictEqual(read.text, expected.text, note);
    assert.deepStrictEqual(read.calls, expected.calls, note);
    assert.strictEqual(read.finishes.at(-1), expected.finishes.at(-1), note);
    if (whole === undefined) return;
    const reading = yield* Effect.promise(() => readBy(id, closed(got.text)));
    assert.deepStrictEqual(reading, whole, note);
  });

  describe(`${protocol.name}: a recorded stream that breaks behind text`, () => {
    for (const recorded of wholeStreams(protocol).filter(isOne))
      it.live(`${recorded.name} goes on through the relay`, () =>
        Effect.gen(function* () {
          for (const lineEnd of ["\n", "\r\n"] as const) {
            const stream = withLineEnds(protocol, recorded, lineEnd);
            // A recording that the client cannot read by itself says nothing of a seam.
            const whole = yield* Effect.promise(() => readBy(id, stream.bytes).catch(() => undefined));
            const breaks = breaksOf(stream, most).filter(
              ({ place }) => (place === "in the line end") === (lineEnd === "\r\n"),
            );
            yield* Effect.forEach(breaks, (at) => check(stream, whole, at), { concurrency: 8, discard: true });
          }
        }).pipe(Effect.provide(layer)),
      );

    it("goes on in most places", () => {
      log(id, JSON.stringify(Object.fromEntries(counts)));
      assert.isAbove(counts.get("joined") ?? 0, 0);
    });
  });
}
