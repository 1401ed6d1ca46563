/** A response of tiny events leaves other streams their turns of the event loop (L11). */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Relay from "../../../src/adapters/relay/Relay.ts";
import { Slices, turnLinesMax } from "../../../src/adapters/relay/Slices.ts";
import { turnPartsMax } from "../../../src/runtime/attempt/PartFlow.ts";
import { bytesOf, call, head, layer, planOf, role, scripted, shown, stop, text } from "./RelayCases.ts";

const many = 20_000;

/** The turns of the event loop that reading one response takes, and what came in each of them. */
const readInTurns = (body: string) =>
  Effect.gen(function* () {
    const script = scripted([head, body, "end"]);
    const { read } = yield* Relay.open(planOf(), { transport: script.transport });
    let turns = 0;
    let reading = true;
    const count = () => {
      turns += 1;
      if (reading) setImmediate(count);
    };
    setImmediate(count);
    const pieces: Array<{ readonly turn: number; readonly bytes: number }> = [];
    let all = "";
    for (;;) {
      const bytes = yield* read;
      if (bytes === undefined) break;
      const came = shown(bytes);
      pieces.push({ turn: turns, bytes: came.length });
      all += came;
    }
    reading = false;
    return { all, pieces, turns };
  }).pipe(Effect.scoped, Effect.provide(layer));

describe("a response of tiny events", () => {
  for (const [name, unit] of [
    ["comments", ": c\n\n"],
    ["empty events", "data:\n\n"],
    ["comments with CR alone", ": c\r\r"],
  ] as const) {
    it.effect(`of ${name} is cut over many turns, and arrives whole`, () =>
      Effect.gen(function* () {
        const body = `${role}${unit.repeat(many)}${text("a")}${stop}data: [DONE]\n\n`;
        const { all, turns } = yield* readInTurns(body);
        assert.strictEqual(all, body);
        assert.isAtLeast(turns, Math.floor((2 * many) / turnLinesMax) - 1);
      }),
    );
  }

  it.effect("that was held leaves over many turns", () =>
    Effect.gen(function* () {
      const held = `${call}${text("ab").repeat(many)}${stop}data: [DONE]\n\n`;
      const { all, pieces } = yield* readInTurns(text("x") + held);
      assert.isTrue(all.endsWith(held));
      const perTurn = new Map<number, number>();
      for (const { bytes, turn } of pieces) perTurn.set(turn, (perTurn.get(turn) ?? 0) + bytes);
      assert.isAtMost(Math.max(...perTurn.values()), 3 * turnPartsMax * text("ab").length);
    }),
  );
});

describe("slices", () => {
  it("are whole chunks while a turn has lines left, then the beginning of one, then nothing until the next turn", () => {
    const slices = new Slices();
    const line = bytesOf("a\n");
    const long = bytesOf("b\n".repeat(2 * turnLinesMax));
    slices.add([line, long]);
    assert.strictEqual(slices.next()?.byteLength, line.byteLength);
    assert.strictEqual(slices.next()?.byteLength, 2 * (turnLinesMax - 1));
    assert.isUndefined(slices.next());
    slices.renew();
    assert.strictEqual(slices.next()?.byteLength, 2 * turnLinesMax);
    slices.renew();
    assert.strictEqual(slices.next()?.byteLength, 2);
    assert.isTrue(slices.isEmpty);
  });
});
