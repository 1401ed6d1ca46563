/**
 * Holds the events that are kept for a reader that comes back: their bytes at each limit, and the positions that a reader may ask for.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Observation from "../../../src/domain/Observation.ts";
import { envelopeBytes } from "../../../src/runtime/attempt/Reveal.ts";
import type { PartEvent, RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import { KeptEvents, keptBytesMax, keptBytesProcessMax } from "../../../src/stages/output/KeptEvents.ts";

/** A part whose size is its value. */
const part = (attempt: number, ordinal: number, size = 10): PartEvent<number> => ({
  ...{ _tag: "Part", attempt, ordinal, part: size },
});
// Only the attempt of this event is read.
const started = (attempt: number) => ({ _tag: "AttemptStarted", attempt }) as RunEvent<number>;

const keep = (pool = { used: 0 }) => {
  const kept = new KeptEvents<number>(pool, (size) => size);
  const add = (...events: ReadonlyArray<RunEvent<number>>) => {
    for (const event of events) if (event._tag === "Part") kept.weigh(event, Observation.none);
    kept.add(events);
  };
  return { kept, add, pool };
};

describe("kept events", () => {
  it("weigh what the run says of their parts, and other events the size of an envelope", () => {
    const { add, kept, pool } = keep();
    add(started(1), part(1, 1, 7), part(1, 2, 5));
    assert.deepStrictEqual(
      [kept.bytes, pool.used, kept.isWhole, kept.end],
      [envelopeBytes + 12, envelopeBytes + 12, true, 3],
    );
    // A part that was not weighed weighs an envelope, too.
    kept.add([part(1, 3, 5)]);
    assert.strictEqual(kept.bytes, 2 * envelopeBytes + 12);
  });

  it("fit up to the limit of the run, and the first one above it ends the log", () => {
    const { add, kept, pool } = keep();
    add(part(1, 1, keptBytesMax - 1), part(1, 2, 1));
    assert.deepStrictEqual([kept.isWhole, kept.bytes, pool.used], [true, keptBytesMax, keptBytesMax]);
    add(part(1, 3, 1));
    assert.deepStrictEqual([kept.isWhole, kept.bytes, pool.used, kept.end], [false, 0, 0, 3]);
    add(part(1, 4, 1));
    assert.deepStrictEqual([kept.isWhole, kept.bytes, pool.used, kept.end], [false, 0, 0, 4]);
    assert.lengthOf(kept.readFrom(0), 4);
  });

  it("fit up to the limit of the process, of which an incomplete log gives its share back", () => {
    const pool = { used: keptBytesProcessMax - 10 };
    const { add, kept } = keep(pool);
    add(part(1, 1, 10));
    assert.deepStrictEqual([kept.isWhole, pool.used], [true, keptBytesProcessMax]);
    add(part(1, 2, 1));
    assert.deepStrictEqual([kept.isWhole, pool.used], [false, keptBytesProcessMax - 10]);
    assert.deepStrictEqual([keptBytesMax, keptBytesProcessMax], [8_388_608, 268_435_456]);
  });

  it("are read and dropped by their positions", () => {
    const { add, kept } = keep();
    const events = [part(1, 1), part(1, 2), part(1, 3), part(1, 4)];
    add(...events);
    for (const position of [0, 1, 4, 5]) assert.deepStrictEqual(kept.readFrom(position), events.slice(position));
    kept.dropBefore(2);
    assert.strictEqual(kept.end, 4);
    for (const position of [0, 1, 2]) assert.deepStrictEqual(kept.readFrom(position), events.slice(2));
    assert.deepStrictEqual(kept.readFrom(3), events.slice(3));
    kept.dropBefore(1);
    assert.strictEqual(kept.end, 4);
    kept.dropBefore(4);
    assert.deepStrictEqual([kept.readFrom(0), kept.end], [[], 4]);
    add(part(1, 5));
    assert.deepStrictEqual([kept.readFrom(4), kept.end], [[part(1, 5)], 5]);
  });

  it("are found by the last event of a reader, as a number of parts or as an attempt and an ordinal", () => {
    const { add, kept } = keep();
    add(started(1), part(1, 1), part(1, 2), started(2), part(2, 1));
    assert.deepStrictEqual(
      [0, 1, 2, 3, 4].map((parts) => kept.positionAfter({ parts })),
      [0, 2, 3, 5, undefined],
    );
    const at = (attempt: number, ordinal: number) => kept.positionAfter({ attempt, ordinal });
    assert.deepStrictEqual(
      [at(1, 0), at(1, 1), at(1, 2), at(1, 3), at(2, 0), at(2, 1), at(2, 2), at(3, 0)],
      [1, 2, 3, undefined, 4, 5, undefined, undefined],
    );
  });
});
