import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import * as KilledImport from "../../cli/runs/KilledImport.ts";
import * as E from "../Entries.ts";
import * as Folder from "../sql/SqlFolder.ts";
import { record } from "../suite/Bench.ts";
import * as Moves from "../transfer/Moves.ts";
import * as Databases from "./Databases.ts";

const inFile = Effect.flatMap(Folder.emptyPath, (file) => Folder.open({ file }));
const onServer = Effect.flatMap(Databases.empty, (address) => Databases.open({ address }));

describe("runs that are moved between a file and PostgreSQL", () => {
  for (const seed of [11, 12, 13]) {
    it.live(`are unchanged on the server, and unchanged again in a file (seed ${seed})`, () =>
      Effect.gen(function* () {
        const [first, server, second] = [yield* inFile, yield* onServer, yield* inFile];
        const ids = yield* Moves.filled(first, seed, 40);
        const there = yield* Moves.moved(first, server, 7);
        assert.deepStrictEqual(there.refused, []);
        assert.deepStrictEqual(there.again, there.file);
        const back = yield* Moves.moved(server, second, 9);
        assert.deepStrictEqual(back.again, there.file);
        assert.deepStrictEqual(back.second, { added: 0, same: 40, refused: 0, leftOut: 0 });
        for (const id of ids) assert.deepStrictEqual(yield* record(server, id), yield* record(first, id));
        assert.strictEqual(yield* second.digest("x"), yield* first.digest("x"));
      }).pipe(Effect.scoped),
    );
  }

  it.live("are omitted while a process drives them, and no id that the server cannot store is imported", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const driver = yield* Scope.make();
      const driving = yield* Scope.provide(Databases.open({ address }), driver);
      yield* driving.write("live", [E.begun("live"), E.attempt(1)]);
      const looking = yield* Databases.open({ address });
      const left = yield* Moves.lines(looking, { takesDriven: false });
      assert.strictEqual(left.at(-1), '{"end":{"runs":0,"left_out":1}}\n');
      yield* Scope.close(driver, Exit.void);
      assert.strictEqual(Moves.runsIn(yield* Moves.lines(looking, { takesDriven: false })).length, 1);
      const file = yield* inFile;
      for (const id of ["a\0b", "fine"]) yield* file.write(id, E.life(id));
      const { refused } = yield* Moves.put(looking, yield* Moves.lines(file));
      assert.deepStrictEqual(refused, [{ run_id: "a\0b", reason: "unkept" }]);
      assert.strictEqual((yield* record(looking, "fine")).state, "ended");
    }).pipe(Effect.scoped),
  );

  it.live("are all present once if the import was killed in the middle and repeated", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address);
      const rows = Effect.orElseSucceed(
        admin.unsafe<{ readonly n: number }>("SELECT count(*)::int AS n FROM stream_recovery_runs"),
        () => [],
      );
      const onRecord = () => Effect.runPromise(Effect.map(rows, ([row]) => row?.n ?? 0));
      const again = yield* Effect.promise(() => KilledImport.killed(address, onRecord));
      const said = `${KilledImport.runs - KilledImport.committed} runs added, ${KilledImport.committed} already present\n`;
      assert.deepStrictEqual([again.code, again.stdout], [0, said], again.stderr);
      const there = yield* Moves.lines(yield* Databases.open({ address }));
      assert.deepStrictEqual(KilledImport.said(there), KilledImport.said(KilledImport.lines));
    }).pipe(Effect.scoped),
  );

  it.live("are on record once if two processes import the same file at the same time", () =>
    Effect.gen(function* () {
      const [from, address] = [yield* inFile, yield* Databases.empty];
      yield* Moves.filled(from, 5, 60);
      const file = yield* Moves.lines(from);
      const both = yield* Effect.forEach(
        [1, 2],
        () => Effect.flatMap(Databases.open({ address }), (it) => Moves.put(it, file, { batchRuns: 10 })),
        { concurrency: 2 },
      );
      const sum = (what: "added" | "same") => both.reduce((all, { read }) => all + (read?.[what] ?? 0), 0);
      assert.deepStrictEqual([sum("added"), sum("same")], [60, 60]);
      const again = yield* Moves.lines(yield* Databases.open({ address }));
      assert.deepStrictEqual(Moves.runsIn(again).toSorted(), Moves.runsIn(file).toSorted());
    }).pipe(Effect.scoped),
  );
});
