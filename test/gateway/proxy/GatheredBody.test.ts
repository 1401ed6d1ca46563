import { afterEach, assert, describe, it, vi } from "@effect/vitest";
import { Effect } from "effect";
import { GatheredBody } from "../../../src/gateway/proxy/GatheredBody.ts";
import { seeded } from "../../Seeded.ts";

/** The prototype that has `set` of all typed arrays. */
const typedArray: Uint8Array = Object.getPrototypeOf(Uint8Array.prototype);

const length = 4 * 1024 * 1024;

/** A body in random chunks of up to `most` bytes. */
const chunksOf = (body: Buffer, most: number, dice: () => number): ReadonlyArray<Buffer> => {
  const chunks: Array<Buffer> = [];
  for (let at = 0; at < body.length; at += chunks.at(-1)?.length ?? 0)
    chunks.push(body.subarray(at, at + 1 + Math.floor(dice() * most)));
  return chunks;
};

afterEach(() => vi.restoreAllMocks());

describe("A gathered body", () => {
  it.effect("equals the received bytes, for any chunks, whole or cut, and for any claimed length", () =>
    Effect.gen(function* () {
      const dice = seeded(71);
      const body = Buffer.from(new Uint8Array(length).map((_, at) => at * 31));
      for (const claimed of [0, 1, length - 1, length, 3 * length, 9 * length])
        for (const most of [length, 65_536, 999]) {
          const end = claimed === 0 ? length : Math.min(length, claimed);
          const cut = body.subarray(0, dice() < 0.5 ? end : Math.floor(dice() * end));
          const gathered = new GatheredBody(claimed);
          for (const chunk of chunksOf(cut, most, dice)) gathered.take(chunk);
          assert.isTrue(cut.equals(yield* gathered.whole), `${claimed} ${most}`);
        }
    }),
  );

  it("copies at most a quarter more than its length, and the rest of a chunk, whatever came before its place was allocated", () => {
    const most = 65_536;
    const copied = vi.spyOn(typedArray, "set");
    for (const seed of [72, 73, 74]) {
      const gathered = new GatheredBody(length);
      for (const chunk of chunksOf(Buffer.alloc(length), most, seeded(seed))) {
        copied.mockClear();
        gathered.take(chunk);
        const bytes = copied.mock.calls.reduce((sum, [from]) => sum + from.length, 0);
        assert.isAtMost(bytes, 1.25 * chunk.length + most);
      }
      copied.mockClear();
      Effect.runSync(gathered.whole);
      assert.lengthOf(copied.mock.calls, 0);
    }
  });
});
