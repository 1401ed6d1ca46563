import { existsSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Context, Data, Effect, Layer, Stream } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Folder from "./SqlFolder.ts";

const planted = {
  prompt: "PLANTEDPROMPT-the-user-asked-for-this",
  output: "PLANTEDOUTPUT-the-model-said-this",
  argument: "PLANTEDARGUMENT-rm-rf-home",
  error: "PLANTEDERROR-secret-in-a-message",
};

class Broke extends Data.TaggedError("Broke")<{ readonly message: string }> {}

interface Part {
  readonly content: string;
  readonly says: Observation.Observation;
}

const text = (): Part => ({ content: planted.output, says: Observation.text(planted.output.length) });
const done: Part = { content: planted.output, says: Observation.terminal("stop") };

/** Plays one run over a file and closes it, whatever the end of the stream. */
const play = (file: string, runId: string, source: Stream.Stream<Part, Broke>) =>
  Effect.gen(function* () {
    const services = yield* Layer.build(
      Layer.fresh(
        StreamProcessor.layer.pipe(
          Layer.provide(Layer.merge(SqlRunRecorder.layerFile({ file }), UserDecisions.layerHeadless())),
        ),
      ),
    );
    const processor = Context.get(services, StreamProcessor);
    const run = processor.run({
      runId,
      transcript: planted.prompt,
      provider: { id: "scripted", model: "model", reasoning: false },
      tools: [],
      attempt: () => source,
      observe: (part: Part) => part.says,
    });
    yield* Effect.exit(Stream.runDrain(run));
  }).pipe(Effect.scoped);

const tables = ["runs", "incidents", "questions", "leases", "meta"].map((name) => `stream_recovery_${name}`);

const sizes = (file: string, runId: string) => {
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = tables.map((table) => Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n));
  const record = String(
    database.prepare("SELECT record FROM stream_recovery_runs WHERE run_id = ?").get(runId)?.record,
  );
  database.close();
  return { rows, bytes: record.length, parts: /"parts":(\d+)/.exec(record)?.[1] };
};

describe("the file of the SQL recorder contains facts, never content", () => {
  it.live("no prompt, output, argument or error text is in the database or its journal", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const call = { content: planted.argument, says: Observation.text(planted.argument.length) };
      yield* play(file, "whole", Stream.make(text(), call, done));
      const broken = Stream.concat(Stream.make(text(), call), Stream.fail(new Broke({ message: planted.error })));
      yield* play(file, "broken", broken);
      const recorder = yield* Folder.open({ file });
      const broke = yield* recorder.run("broken");
      assert.strictEqual(broke?.incidents.length, 1);
      assert.strictEqual(broke?.transcript, yield* recorder.digest(planted.prompt));
      const bytes = ["", "-wal"]
        .filter((more) => existsSync(`${file}${more}`))
        .map((more) => readFileSync(`${file}${more}`).toString("latin1"))
        .join();
      assert.include(bytes, "scripted");
      for (const word of Object.values(planted)) assert.notInclude(bytes, word.slice(0, 13), word);
    }).pipe(Effect.scoped),
  );

  it.live("a run of a million deltas leaves as many rows as one of a hundred, and as many bytes", () =>
    Effect.gen(function* () {
      const lengths = [100, 1_000_000];
      const [short, long] = yield* Effect.forEach(lengths, (length) =>
        Effect.gen(function* () {
          const file = yield* Folder.emptyPath;
          const block = Array.from({ length: 100 }, text);
          const source = Stream.range(1, length / 100).pipe(Stream.flatMap(() => Stream.fromIterable(block)));
          yield* play(file, "r", Stream.concat(source, Stream.make(done)));
          return sizes(file, "r");
        }),
      );
      assert.deepStrictEqual([short?.parts, long?.parts], ["101", "1000001"]);
      assert.deepStrictEqual(long?.rows, short?.rows);
      assert.deepStrictEqual(long?.rows.slice(0, 3), [1, 0, 0]);
      // Only the counters have more digits.
      assert.isBelow((long?.bytes ?? 0) - (short?.bytes ?? 0), 64);
    }).pipe(Effect.scoped),
  );
});
