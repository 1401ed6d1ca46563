import { Readable } from "node:stream";
import { assert, describe, it } from "@effect/vitest";
import { sentBytes, sliceBody } from "../../../src/gateway/upstream/SlicedBody.ts";

describe("A body that is sent in slices", () => {
  it("yields to other streams between two slices, even if its reader wants all bytes at once", async () => {
    const body = Buffer.from(new Uint8Array(9 * sentBytes + 5).map((_, at) => at * 7));
    const sliced = sliceBody(body).body;
    assert.instanceOf(sliced, Readable);
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const got: Array<Uint8Array> = [];
    for await (const slice of sliced) got.push(slice);
    isOver = true;
    assert.isTrue(body.equals(Buffer.concat(got)));
    assert.isAtLeast(turns, 9);
  });
});
