/**
 * Entries that an ending process could not write are kept on disk until a process over the same store has recorded them.
 */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer, References } from "effect";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Spill from "../../../src/recorder/store/Spill.ts";
import { WriteQueue } from "../../../src/recorder/WriteQueue.ts";
import { polled } from "../../Polling.ts";
import { filled, smallDisk } from "../../SmallDisk.ts";
import * as E from "../Entries.ts";
import * as Folder from "../sql/SqlFolder.ts";

const begun = { ...E.begun("r"), started_by: "p.1", volatile: true } as const;
const entries = [begun, E.attempt(1), E.raised(1, { shown: "text" }), E.ended()];
const unwritten = [{ runId: "r", entries }];

const started = Effect.gen(function* () {
  const recorder = RunRecorder.layerMemory({ runsMax: 100_000 });
  const services = yield* Layer.build(
    WriteQueue.wrap(Layer.fresh(recorder)).pipe(Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None"))),
  );
  return { queue: Context.get(services, WriteQueue), recorder: Context.get(services, RunRecorder) };
});

describe("Entries that a process could not write", () => {
  it.live("are in a file that only their owner can read, and on record once another process has started", () =>
    Effect.gen(function* () {
      const db = yield* Folder.emptyPath;
      const place = Spill.placeOf(db);
      assert.strictEqual(yield* Spill.spillTo(place)(unwritten), 0);
      const [file = ""] = readdirSync(place.folder).filter((name) => name.startsWith(place.prefix));
      assert.strictEqual(statSync(join(place.folder, file)).mode & 0o777, 0o600);
      const { queue, recorder } = yield* started;
      yield* Spill.claimInto(queue, place);
      assert.deepStrictEqual(yield* polled(recorder.run("r")), E.folded(entries));
      assert.deepStrictEqual(
        readdirSync(place.folder).filter((name) => name.startsWith(place.prefix)),
        [],
      );
      // A second claim finds nothing, and a run that is already on record is unchanged.
      yield* Spill.claimInto(queue, place);
      assert.strictEqual(yield* Spill.spillTo(place)(unwritten), 0);
      yield* Spill.claimInto(queue, place);
      assert.deepStrictEqual(yield* recorder.run("r"), E.folded(entries));
    }).pipe(Effect.scoped),
  );

  it.live("are left alone by processes over another store, and by all but one over the same store", () =>
    Effect.gen(function* () {
      const db = yield* Folder.emptyPath;
      const [place, other] = [Spill.placeOf(db), Spill.placeOf(`${db}.other`)];
      assert.notStrictEqual(place.prefix, other.prefix);
      assert.strictEqual(
        Spill.placeOf("postgres://u:secret@db/runs", "/x").prefix,
        Spill.placeOf("postgres://u:changed@db/runs", "/x").prefix,
      );
      yield* Spill.spillTo(place)(unwritten);
      const [one, two] = [yield* started, yield* started];
      yield* Spill.claimInto(two.queue, { ...other, folder: place.folder });
      assert.isUndefined(yield* two.recorder.run("r"));
      yield* Effect.all([Spill.claimInto(one.queue, place), Spill.claimInto(two.queue, place)], {
        concurrency: "unbounded",
      });
      const found = [yield* one.recorder.run("r"), yield* two.recorder.run("r")];
      assert.lengthOf(
        found.filter((record) => record !== undefined),
        1,
      );
    }).pipe(Effect.scoped),
  );

  it.live(
    "are kept as far as the disk has room, whole runs only, and nothing is left of a file that could not be created",
    () =>
      Effect.gen(function* () {
        const disk = yield* smallDisk;
        if (disk === undefined) return;
        const place = { ...Spill.placeOf("/runs.db"), folder: disk };
        const files = () => readdirSync(disk).filter((name) => name.startsWith(place.prefix));
        const room = filled(join(disk, "filler"));
        assert.strictEqual(yield* Spill.spillTo(place)(unwritten), entries.length);
        assert.deepStrictEqual(files(), []);
        room();
        // About 4 MB for a disk of 2.
        const many = Array.from({ length: 8_000 }, (_, at) => ({
          runId: `r${at}`,
          entries: [{ ...begun, run_id: `r${at}` }, ...entries.slice(1)],
        }));
        const lost = yield* Spill.spillTo(place)(many);
        assert.isAbove(lost, 0);
        const kept = many.length - lost / entries.length;
        assert.isAbove(kept, 100);
        assert.lengthOf(files(), 1);
        const { queue, recorder } = yield* started;
        yield* Spill.claimInto(queue, place);
        assert.deepStrictEqual(files(), []);
        assert.deepStrictEqual((yield* recorder.run(`r${kept - 1}`))?.end?.state, "completed");
        assert.isUndefined(yield* recorder.run(`r${kept}`));
      }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.live("stay on disk if the file cannot be read, and are lost if no file can be created", () =>
    Effect.gen(function* () {
      const db = yield* Folder.emptyPath;
      const place = Spill.placeOf(db);
      const file = join(place.folder, `${place.prefix}x.jsonl`);
      writeFileSync(file, '{"runId":"r","entries":[{"_tag":"NoSuch"}]}\n');
      const { queue, recorder } = yield* started;
      yield* Spill.claimInto(queue, place);
      assert.isTrue(existsSync(`${file}.claimed`));
      assert.include(readFileSync(`${file}.claimed`, "utf8"), "NoSuch");
      assert.isUndefined(yield* recorder.run("r"));
      const lost = yield* Spill.spillTo({ ...place, folder: join(`${file}.claimed`, "no", "folder") })(unwritten);
      assert.strictEqual(lost, entries.length);
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );
});
