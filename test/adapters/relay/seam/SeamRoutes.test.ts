/** A continuation goes the way that the shown text came: its route is no other (DESIGN.md, 14 and 16). */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { RelaySeam } from "../../../../src/adapters/relay/seam/RelaySeam.ts";
import { none } from "../../../../src/domain/Observation.ts";
import { protocols } from "../../../../src/provider/Protocols.ts";
import { decode, encode } from "../../../provider/Decoded.ts";
import { layer } from "../RelayCases.ts";
import { honest, type Replies, type Said, transportOf, written } from "./HonestModel.ts";
import { planOf, played, readAs } from "./SeamCases.ts";

const chat = "openai-chat";
const said: Said = {
  text: "The lock is taken in open() and given back in close(), which is what a caller has to know of it.",
};
const unavailable = { events: [], refused: { status: 503, body: '{"error":{"message":"overloaded"}}' } };

/** Two routes of one request, both of which go on with text. */
const byTwo = (first: Replies, second: Replies) =>
  Effect.gen(function* () {
    const plan = planOf(chat);
    const other = transportOf(second);
    const routes = [{ id: "b", plan: { ...plan }, transport: other.transport, continueText: "auto" }] as const;
    const got = yield* Effect.scoped(
      played(plan, first, { route: { id: "a" }, routes, budget: { max_auto_retries: 2, max_not_processed: 2 } }),
    );
    return { got, other: other.asked };
  }).pipe(Effect.provide(layer));

describe("no continuation crosses routes", () => {
  it.live("whose own provider refuses it: the other route is never asked", () =>
    Effect.gen(function* () {
      const model = honest(chat, said, [6]);
      const replies: Replies = (asked, number) => (asked.quote === undefined ? model(asked, number) : unavailable);
      const { got, other } = yield* byTwo(replies, honest(chat, said, []));
      assert.isEmpty(other);
      assert.isAbove(got.asked.length, 1);
      assert.isTrue(got.asked.slice(1).every(({ quote }) => quote !== undefined));
      assert.notStrictEqual(got.end, "end");
      assert.strictEqual(got.text, written(chat, said, { number: 1, piece: 7 }).slice(0, 6).join(""));
    }),
  );

  it.live("whose text came by the second one: it goes on there, and the first is not asked again", () =>
    Effect.gen(function* () {
      const { got, other } = yield* byTwo(() => unavailable, honest(chat, said, [6]));
      assert.isTrue(got.asked.every(({ quote }) => quote === undefined));
      assert.deepStrictEqual(
        other.map(({ quote }) => quote !== undefined),
        [false, true],
      );
      assert.deepStrictEqual([got.end, readAs(chat, got.text).text], ["end", said.text]);
    }),
  );

  it("of which one seam builds no request for the way of another, also at the same address", () => {
    const seam = new RelaySeam();
    const plan = planOf(chat);
    seam.setRequest(plan);
    const shown = written(chat, said, { number: 1, piece: 7 }).slice(0, 6).join("");
    for (const decoded of decode(protocols.get(chat), [encode(shown)]).parts)
      seam.left({ bytes: new Uint8Array(0), observation: none, decoded }, decoded.observation);
    const next = seam.plan();
    if (typeof next === "string") return assert.fail(next);
    assert.isDefined(seam.requestOf(next, plan));
    assert.isUndefined(seam.requestOf(next, { ...plan }));
  });
});
