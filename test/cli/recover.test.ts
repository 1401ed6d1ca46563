import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { recover } from "../../src/cli/recover.ts";
import { plainScreen } from "../../src/cli/terminal/Screen.ts";
import * as Json from "../../src/domain/Json.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import * as Folder from "../recorder/sql/SqlFolder.ts";
import { printed } from "./Printed.ts";
import * as S from "./Stored.ts";

const screen = plainScreen(S.startedAt, 80, true);
const layer = RunRecorder.layerMemory();

/** Runs that their owner has abandoned. */
const abandoned = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const recorder = yield* RunRecorder;
  for (const id of ids) {
    yield* recorder.write(id, S.halfway(id));
    yield* recorder.release(id);
  }
  const safe = "safe-to-retry";
  yield* recorder.write(safe, [S.begun(safe), S.attempted(1, S.factsOf({}))]);
  yield* recorder.release(safe);
});

describe("stream-recovery recover", () => {
  it.effect("prints the runs that it found, questions first, with the next command; a second time there are none", () =>
    Effect.gen(function* () {
      yield* abandoned(["in-a-tool"]);
      const { exit, stdout } = yield* printed(recover(false, screen));
      assert.strictEqual(exit._tag, "Success");
      assert.deepStrictEqual(
        stdout
          .split("\n")
          .slice(1, 3)
          .map((line) => line.split(/ {2,}/)),
        [
          ["in-a-tool", "? asks you", "tool_outcome_unknown", "answer its question"],
          ["safe-to-retry", "‖ safe to retry", "nothing_shown", "StreamProcessor.takeUp"],
        ],
      );
      assert.include(stdout, "2 runs: 1 can be taken up by your program, 1 waits for your answer.");
      assert.include(stdout, "  npx stream-recovery runs answer in-a-tool");
      for (const line of stdout.split("\n")) assert.isAtMost([...line].length, 80, line);
      const again = yield* printed(recover(false, screen));
      assert.match(again.stdout, /^Nothing to recover/);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("lists some of many and counts all; JSON has every one", () =>
    Effect.gen(function* () {
      yield* abandoned(Array.from({ length: 40 }, (_, n) => `lost-${n}`));
      const text = yield* printed(recover(false, screen));
      assert.include(text.stdout, "and 11 more");
      assert.include(text.stdout, "41 runs: 1 can be taken up by your program, 40 wait for your answer.");
      assert.include(text.stdout, "npx stream-recovery runs list --state asking");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("prints the report as JSON for machines", () =>
    Effect.gen(function* () {
      yield* abandoned(["in-a-tool"]);
      const report = Json.record(Json.parse((yield* printed(recover(true, screen))).stdout)?.json);
      assert.strictEqual(Json.record(report?.counts)?.asked, 1);
      assert.strictEqual(Json.list(report?.runs).length, 2);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("waits right after a crash for the lease of the dead process, and only briefly for a live one", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const world = { stopped: false };
      const driver = yield* Folder.open({ file }, { stopped: () => world.stopped });
      yield* driver.write("cut", [S.begun("cut"), S.attempted(1, S.factsOf({}))]);
      const typed = Effect.gen(function* () {
        const from = yield* Clock.currentTimeMillis;
        const recorder = yield* Folder.open({ file, leaseMs: 1_000 });
        const printing = Effect.provideService(printed(recover(false, screen)), RunRecorder, recorder);
        const fiber = yield* Effect.forkChild(printing, { startImmediately: true });
        while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(100);
        const { stderr, stdout } = yield* Fiber.join(fiber);
        return { stderr, stdout, ms: (yield* Clock.currentTimeMillis) - from };
      }).pipe(Effect.scoped);
      const living = yield* typed;
      assert.match(living.stdout, /^Nothing to recover: /);
      assert.isAtMost(living.ms, 6_000);
      world.stopped = true;
      const dead = yield* typed;
      assert.include(dead.stdout, "cut");
      assert.include(dead.stderr, "recover: another process owns runs; waiting");
      assert.isAtMost(dead.ms, 20_000);
    }).pipe(Effect.scoped),
  );

  it.effect("does not call a process alive that has been silent for less than its long lease", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const world = { stopped: false };
      const driver = yield* Folder.open({ file, leaseMs: 3_600_000 }, { stopped: () => world.stopped });
      yield* driver.write("cut", [S.begun("cut"), S.attempted(1, S.factsOf({}))]);
      world.stopped = true;
      yield* TestClock.adjust("1 hour");
      const recorder = yield* Folder.open({ file, leaseMs: 1_000 });
      const printing = Effect.provideService(printed(recover(false, screen)), RunRecorder, recorder);
      const fiber = yield* Effect.forkChild(printing, { startImmediately: true });
      while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(100);
      const { stderr, stdout } = yield* Fiber.join(fiber);
      assert.match(stdout, /^Nothing to recover yet: /);
      assert.include(stderr, "recover: one run not recovered: the owning process is silent");
    }).pipe(Effect.scoped),
  );
});
