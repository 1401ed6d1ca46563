import { assert, describe, it, vi } from "@effect/vitest";
import { Effect } from "effect";
import { condensed, condensedMax, filled } from "../../../src/gateway/body/CondensedBody.ts";
import { type BodyChanges, edited } from "../../../src/gateway/routes/BodyEdit.ts";
import { nearlyJson, parsed } from "../../adapters/relay/form/JsonTexts.ts";
import { seeded } from "../../Seeded.ts";

const changesOf = (random: () => number): BodyChanges => {
  const fields = ["messages", "a", "tools", "0", "a.b", "messages.a", "description.tools", "new", "new.one"];
  const some = () => fields.filter(() => random() < 0.25);
  return { set: some().map((field) => [field, random() < 0.5 ? { s: 'é"\u0000"' } : 1]), drop: some() };
};

/** The same text with long parts in it. */
const lengthened = (bytes: Uint8Array): Buffer<ArrayBuffer> =>
  Buffer.from(
    Buffer.from(bytes)
      .toString("latin1")
      .replaceAll('"text"', `"${"é}{][,: \\\\".repeat(9)}"`)
      .replaceAll(",", `,${" ".repeat(40)}`),
    "latin1",
  );

describe("A condensed body", () => {
  it.effect("is changed to what the whole one is changed to, byte for byte", () =>
    Effect.gen(function* () {
      let holes = 0;
      for (let seed = 1; seed <= 6_000; seed += 1) {
        const random = seeded(seed);
        const body = lengthened(nearlyJson(random));
        const value = parsed(body)?.json;
        if (typeof value !== "object" || value === null || Array.isArray(value)) continue;
        const changes = changesOf(random);
        const small = yield* condensed(body);
        if (small === undefined) return assert.fail(`seed ${seed}`);
        const expected = edited(body.toString("latin1"), changes);
        const said = `seed ${seed}: ${body.toString("latin1")} ${JSON.stringify(changes)}`;
        assert.strictEqual(filled(edited(small.text, changes), small).toString("latin1"), expected, said);
        holes += small.holes.length;
      }
      assert.isAbove(holes, 1_000);
    }),
  );

  it.effect("has the conversation as one hole, and is none where what is left is long", () =>
    Effect.gen(function* () {
      const message = '{"role":"user","content":"x"}';
      const body = Buffer.from(`{"model":"m","messages":[${`${message},`.repeat(condensedMax / 10)}${message}]}`);
      const small = yield* condensed(body);
      assert.strictEqual(small?.text, '{"model":"m","messages":"\x000"}');
      const wide = (bytes: number) => Buffer.from(`{"a":1${",\n".padEnd(bytes - 12, " ")}"b":1}`);
      assert.isDefined(yield* condensed(wide(condensedMax)));
      assert.isUndefined(yield* condensed(wide(condensedMax + 1)));
    }),
  );

  it.effect("is made in turns", () =>
    Effect.gen(function* () {
      const turns = vi.spyOn(globalThis, "setImmediate");
      yield* condensed(Buffer.from(`{"a":"${"x".repeat(2 ** 20)}"}`));
      assert.isAtLeast(turns.mock.calls.length, 15);
      turns.mockRestore();
    }),
  );
});
