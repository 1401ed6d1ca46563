/** Notifications between the processes of one file, and the payload of a server's notification. */
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Redacted } from "effect";
import { TestClock } from "effect/testing";
import type { SharedCancels } from "../../../src/recorder/shared/SharedCancels.ts";
import { lookMs, type Word } from "../../../src/recorder/shared/SharedFacts.ts";
import { fileIdlePollMs, filePollMs, parseWord } from "../../../src/recorder/sql/SqlNotifications.ts";
import { turn, until } from "../../Polling.ts";
import * as E from "../Entries.ts";
import type { Recorder } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const cancelsOf = ({ cancels }: Recorder): SharedCancels => {
  if (cancels === undefined) throw new Error("a file's processes cancel each other's runs");
  return cancels;
};

/** The rows of shared facts in the file, including expired ones. */
const rowsIn = (file: string): number => {
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare("SELECT key FROM stream_recovery_facts").all();
  database.close();
  return rows.length;
};

/** Advances time until an effect is done. */
const inTime = <A, Err, R>(effect: Effect.Effect<A, Err, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true });
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(100);
    return yield* Fiber.join(fiber);
  });

/** Lets enough time pass that the processes wait for a report of the next write. */
const quiet = TestClock.adjust("2 seconds");

describe("the processes that share a file", () => {
  it.effect("look for cancels while they drive a run, from its start and not after its end", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [recorder, other] = [yield* Folder.open({ file }), yield* Folder.open({ file, process: "other" })];
      const words: Array<string> = [];
      cancelsOf(recorder).on((word) => words.push(word._tag === "Put" ? word.kind : word._tag));
      const puts = (key: string) => inTime(cancelsOf(other).put("cancel", key, "{}", 60_000));
      yield* puts("before");
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(words, []);
      for (const run of ["one", "another"]) {
        yield* inTime(recorder.write(run, [E.begun(run), E.attempt(1)]));
        yield* TestClock.adjust(0);
        assert.deepStrictEqual(words.splice(0), ["Look"], "at once");
        yield* puts(run);
        yield* TestClock.adjust(filePollMs);
        assert.deepStrictEqual(words.splice(0), ["cancel"]);
        // Runs of other processes cause no notification.
        yield* inTime(other.write(`${run} beside`, E.life(`${run} beside`)));
        yield* TestClock.adjust(1_000);
        assert.deepStrictEqual(words.splice(0), []);
        yield* TestClock.adjust(lookMs);
        assert.deepStrictEqual(words.splice(0), ["Look"], "what may have been missed");
        yield* inTime(recorder.write(run, [E.ended()]));
        yield* TestClock.adjust(filePollMs);
        yield* puts(`behind ${run}`);
        yield* TestClock.adjust("1 minute");
        assert.deepStrictEqual(words.splice(0), []);
      }
    }).pipe(Effect.scoped),
  );

  it.effect("see the facts of each other even while they drive nothing, as long as a listener is registered", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [one, other] = [yield* Folder.open({ file }), yield* Folder.open({ file, process: "other" })];
      const { node, on, secret } = one.shared ?? assert.fail();
      assert.strictEqual(Redacted.value(other.shared?.secret ?? assert.fail()), Redacted.value(secret));
      assert.notStrictEqual(other.shared?.node, node);
      const words: Array<string> = [];
      const ends = on((word) => words.push(word._tag === "Put" ? word.kind : word._tag));
      yield* quiet;
      assert.deepStrictEqual(words.splice(0), ["Look"]);
      for (const kind of ["cooldown", "held", "path", "cooldown"] as const) {
        yield* Effect.forkChild(other.shared?.put(kind, "key", "{}", 60_000) ?? Effect.void);
        // No time passes: the system reports the write.
        yield* until(() => words.length > 0);
        assert.deepStrictEqual(words.splice(0), [kind]);
        yield* quiet;
      }
      yield* inTime(one.shared?.put("cooldown", "own", "{}", 60_000) ?? Effect.void);
      yield* TestClock.adjust(1_000);
      assert.deepStrictEqual(words.splice(0), [], "its own it knows");
      ends();
      yield* inTime(other.shared?.put("cooldown", "more", "{}", 60_000) ?? Effect.void);
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(words, []);
    }).pipe(Effect.scoped),
  );

  it.effect("hear of a write that its report precedes, even while they drive nothing", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [one, other] = [yield* Folder.open({ file }), yield* Folder.open({ file, process: "other" })];
      const words: Array<string> = [];
      one.shared?.on((word) => words.push(word._tag === "Put" ? word.kind : word._tag));
      yield* quiet;
      assert.deepStrictEqual(words.splice(0), ["Look"]);
      const writes = new DatabaseSync(file);
      writes.exec("BEGIN IMMEDIATE; DELETE FROM stream_recovery_facts; CREATE TABLE big (x); PRAGMA cache_size = 1");
      // A transaction larger than the cache writes to the journal before the commit, which adds the rest.
      writes.exec("INSERT INTO big SELECT randomblob(100000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8))");
      for (let turns = 0; turns < 20; turns += 1) yield* turn;
      yield* TestClock.adjust(filePollMs);
      assert.deepStrictEqual(words.splice(0), []);
      writes.exec("ROLLBACK");
      writes.close();
      yield* Effect.forkChild(other.shared?.put("path", "key", "{}", 60_000) ?? Effect.void);
      yield* TestClock.adjust(filePollMs);
      assert.deepStrictEqual(words.splice(0), ["path"], "it polls after a report");
    }).pipe(Effect.scoped),
  );

  it.effect("see the facts of each other by a slow poll if the system reports no write", () =>
    Effect.gen(function* () {
      // The system cannot watch a name that only SQLite can parse.
      const file = `file:${yield* Folder.emptyPath}`;
      const [one, other] = [yield* Folder.open({ file }), yield* Folder.open({ file, process: "other" })];
      const words: Array<string> = [];
      one.shared?.on((word) => words.push(word._tag === "Put" ? word.kind : word._tag));
      yield* quiet;
      assert.deepStrictEqual(words.splice(0), ["Look"]);
      yield* Effect.forkChild(other.shared?.put("cooldown", "key", "{}", 60_000) ?? Effect.void);
      yield* TestClock.adjust(fileIdlePollMs);
      assert.deepStrictEqual(words.splice(0), ["cooldown"]);
    }).pipe(Effect.scoped),
  );

  it.effect("learn that a question was answered at another process", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [one, other] = [yield* Folder.open({ file }), yield* Folder.open({ file, process: "other" })];
      const run = "r";
      yield* inTime(one.write(run, [E.begun(run), E.attempt(1), E.opened(run, 1), E.asked(run, 1)]));
      const words: Array<Word> = [];
      one.shared?.on((word) => words.push(word));
      yield* quiet;
      words.splice(0);
      yield* inTime(other.answer({ run_id: run, revision: 1, choice: "stop", by: "person" }));
      yield* TestClock.adjust(filePollMs);
      assert.deepStrictEqual(words, [{ _tag: "Answered", run_id: run }]);
    }).pipe(Effect.scoped),
  );

  it.effect(
    "know the owner of a run by name: none after its end, after its release, or once its process has ended",
    () =>
      Effect.gen(function* () {
        const file = yield* Folder.emptyPath;
        const [one, other] = [yield* Folder.open({ file, process: "one" }), yield* Folder.open({ file })];
        const driver = (run: string) => inTime(cancelsOf(other).findOwner(run));
        for (const run of ["ends", "returned", "left"]) yield* inTime(one.write(run, [E.begun(run), E.attempt(1)]));
        const label = yield* driver("ends");
        assert.match(label ?? "", new RegExp(`^${process.pid}@`));
        assert.isUndefined(yield* driver("none"));
        yield* inTime(one.write("ends", [E.ended()]));
        assert.isUndefined(yield* driver("ends"));
        yield* inTime(one.release("returned"));
        assert.isUndefined(yield* driver("returned"));
        assert.strictEqual(yield* driver("left"), label);
        yield* inTime(other.processEnded?.("one") ?? Effect.void);
        assert.isUndefined(yield* driver("left"));
      }).pipe(Effect.scoped),
  );

  it.effect("keep no cancel that is over after the next one (L11)", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const cancels = cancelsOf(yield* Folder.open({ file }));
      for (const run of ["a", "b", "c"]) yield* inTime(cancels.put("cancel", run, "{}", 1_000));
      assert.strictEqual(rowsIn(file), 3);
      yield* TestClock.adjust(1_001);
      assert.lengthOf(yield* inTime(cancels.all("cancel")), 0);
      yield* inTime(cancels.put("cancel", "d", "{}", 1_000));
      assert.strictEqual(rowsIn(file), 1);
    }).pipe(Effect.scoped),
  );
});

describe("the payload of a notification", () => {
  it("names its subject, and means nothing if it is of another version, or a greeting", () => {
    assert.deepStrictEqual(parseWord("answered run_1"), { _tag: "Answered", run_id: "run_1" });
    assert.deepStrictEqual(parseWord("cancel"), { _tag: "Put", kind: "cancel" });
    for (const kind of ["cooldown", "held", "path"] as const)
      assert.deepStrictEqual(parseWord(kind), { _tag: "Put", kind });
    for (const other of ["", "hello 1", "answered", "failed", "told", "cancel run_1"])
      assert.isUndefined(parseWord(other));
  });
});
