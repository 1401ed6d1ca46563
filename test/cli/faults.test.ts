import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Console, Deferred, Effect, Fiber } from "effect";
import { Command } from "effect/cli";
import { CommandFailed } from "../../src/cli/command/CommandFailed.ts";
import { faultsCommand } from "../../src/cli/faults.ts";

const run = (args: ReadonlyArray<string>) =>
  Command.runWith(faultsCommand, { version: "test" })(args).pipe(Effect.provide(NodeServices.layer));

/** A console that collects its lines, and reports when the nth line has come. */
const recording = Effect.gen(function* () {
  const lines: Array<string> = [];
  const errors: Array<string> = [];
  const come = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
  const console: Console.Console = Object.assign(Object.create(globalThis.console), {
    log: (line: string) => {
      const reached = come[lines.push(line) - 1];
      if (reached !== undefined) Deferred.doneUnsafe(reached, Effect.void);
    },
    error: (line: string) => void errors.push(line),
  });
  const line = (n: number) =>
    Effect.andThen(
      Deferred.await(come[n] ?? Deferred.makeUnsafe<void>()),
      Effect.sync(() => lines[n] ?? ""),
    );
  return { line, errors, record: Effect.provideService(Console.Console, console) };
});

const script = (text: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = await mkdtemp(join(tmpdir(), "faults-"));
      await writeFile(join(folder, "a.sse"), "data: recorded\n\n");
      await writeFile(join(folder, "script.json"), text);
      return { folder, file: join(folder, "script.json") };
    }),
    ({ folder }) => Effect.promise(() => rm(folder, { recursive: true })),
  );

describe("stream-recovery faults", () => {
  it.live("prints its address first, plays the script and prints requests", () =>
    Effect.gen(function* () {
      const { line, record } = yield* recording;
      const { file } = yield* script('{"answers":[{"raw_file":"a.sse"}]}');
      const fiber = yield* Effect.forkChild(record(run(["--script", file, "--log"])));
      const first = yield* line(0);
      assert.match(first, /^listening on http:\/\/127\.0\.0\.1:\d+$/);
      const response = yield* Effect.promise(() =>
        fetch(`${first.slice("listening on ".length)}/v1/messages`, { method: "POST", body: "{}" }),
      );
      assert.strictEqual(yield* Effect.promise(() => response.text()), "data: recorded\n\n");
      assert.deepInclude(JSON.parse(yield* line(1)), { number: 1, path: "/v1/messages", outcome: "complete" });
      yield* Fiber.interrupt(fiber);
    }),
  );

  it.live("names an invalid field of a script in one line and exits with code 2", () =>
    Effect.gen(function* () {
      const { errors, record } = yield* recording;
      const { file } = yield* script('{"answers":[{"break":{"kind":"rts","at":"event"}}]}');
      const error = yield* Effect.flip(record(run(["--script", file])));
      assert.instanceOf(error, CommandFailed);
      assert.strictEqual(Reflect.get(error, "~effect/Runtime/errorExitCode"), 2);
      assert.strictEqual(errors.length, 1);
      assert.match(errors[0] ?? "", /^faults: answers\[0\]\.break\.kind: .+$/);
    }),
  );
});
