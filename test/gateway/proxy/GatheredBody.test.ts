import { afterEach, assert, describe, it, vi } from "@effect/vitest";
import { Effect } from "effect";
import { GatheredBody } from "../../../src/gateway/proxy/GatheredBody.ts";
import { seeded } from "../../Seeded.ts";

/** Where `set` of all typed arrays stands. */
const typedArray: Uint8Array = Object.getPrototypeOf(Uint8Array.prototype);

const length = 4 * 1024 * 1024;

/** A body in chunks of up to a number of bytes. */
const chunksOf = (body: Buffer, most: number, dice: () => number): ReadonlyArray<Buffer> => {
  const chunks: Array<Buffer> = [];
  for (let at = 0; at < body.length; at += chunks.at(-1)?.length ?? 0)
    chunks.push(body.subarray(at, at + 1 + Math.floor(dice() * most)));
  return chunks;
};

afterEach(() => vi.restoreAllMocks());

describe("A body that is gathered", () => {
  it.effect("is what has come, by whatever chunks, whole or cut, and whatever length was claimed", () =>
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

  it("copies at most a quarter more than what comes, and the rest of a chunk, whatever came before its place was there", () => {
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
