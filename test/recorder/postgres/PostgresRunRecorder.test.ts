import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer } from "effect";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import { suite } from "../suite/Suite.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

suite(
  "PostgresRunRecorder.layer",
  Layer.unwrap(Effect.map(Databases.empty, (address) => PostgresRunRecorder.layer({ address }))),
);

describe("A record of PostgresRunRecorder, kept in several tables,", () => {
  for (const [way, read] of [
    ["a look at its run", (recorder: Recorder) => record(recorder, "r")],
    ["a list of runs", (recorder: Recorder) => Effect.map(recorder.runs(), ([only]) => only)],
  ] as const) {
    it.live(`is that of one moment for ${way}, whatever is written between its statements`, () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const proxy = yield* StatementProxy.make(address);
        const writer = yield* Databases.open({ address });
        const reader = yield* Databases.open({ address: proxy.address });
        const before = [E.begun("r"), E.attempt(1)];
        yield* writer.write("r", before);
        const parts = proxy.hold(/^SELECT seq, kind, body FROM/);
        const reading = yield* Effect.forkChild(read(reader), { startImmediately: true });
        yield* parts.reached;
        const after = [E.opened("r", 1), E.asked("r", 1), E.parked("question")];
        yield* writer.write("r", after);
        yield* parts.release;
        assert.deepStrictEqual(yield* Fiber.join(reading), E.folded(before));
        assert.deepStrictEqual(yield* read(reader), E.folded([...before, ...after]));
      }).pipe(Effect.scoped),
    );
  }
});
