/**
 * `stream-recovery agent` as a process: what it prints, how it ends, what Ctrl-C and kill -9 do to it.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, unwatchFile, watchFile } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import * as Judge from "../agent/JournalJudge.ts";
import { linesOf } from "../agent/Marks.ts";
import * as Rig from "../agent/Rig.ts";
import * as Command from "./AgentProcess.ts";

const answer = { content: [{ text: 3 }] };
const marking = { tool: "shell", input: { command: "echo mark >> marks" } };

const place = Effect.fnUntraced(function* (script: FaultScriptInput) {
  const at = yield* Rig.folder;
  const provider = yield* FaultProvider.make({ script });
  const flags = ["--db", join(at, "runs.db"), "--lease-ms", "300"];
  const fresh = [...flags, "--url", provider.url, "--model", "m", "--dir", join(at, "box"), "--chat", "c"];
  const journal = () => Judge.read(join(at, "chats", "c.jsonl"));
  return { at, provider, flags, fresh, journal, marks: join(at, "box", "marks") };
});

/** Waits until a file is there. */
const made = (file: string) =>
  Effect.callback<void>((resume) => {
    const look = () => {
      if (existsSync(file)) resume(Effect.void);
    };
    watchFile(file, { interval: 20 }, look);
    look();
    return Effect.sync(() => unwatchFile(file));
  });

describe("stream-recovery agent", () => {
  it.live("answers once, exits with 0, and keeps the key to itself", () =>
    Effect.gen(function* () {
      const { at, fresh, marks, provider } = yield* place({ answers: [{ content: [{ text: 2 }, marking] }, answer] });
      const run = yield* Command.start([...fresh, "--prompt", "Tidy up"]);
      assert.strictEqual(yield* run.ended, 0, run.printed());
      assert.include(run.printed(), "r2.0·r2.1·r2.2·");
      assert.lengthOf(linesOf(marks), 1);
      for (const row of yield* provider.log) assert.include(row.header_names, "authorization");
      const files = globSync(`${at}/**`, { withFileTypes: true }).filter((entry) => entry.isFile());
      assert.isAbove(files.length, 1);
      for (const file of files) {
        assert.notInclude(readFileSync(join(file.parentPath, file.name), "latin1"), Command.plantedKey);
      }
      assert.notInclude(run.printed(), Command.plantedKey);
    }).pipe(Effect.scoped),
  );

  it.live("--json prints an event a line", () =>
    Effect.gen(function* () {
      const { fresh } = yield* place({ answers: [answer] });
      const run = yield* Command.start([...fresh, "--json", "--prompt", "Hello"]);
      assert.strictEqual(yield* run.ended, 0, run.printed());
      const events = run
        .printed()
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line));
      assert.strictEqual(events.at(-1)._tag, "TurnEnded");
      assert.isTrue(events.some((event) => event._tag === "Text"));
    }).pipe(Effect.scoped),
  );

  it.live("the end of the input leaves a question open, and --resume asks it again", () =>
    Effect.gen(function* () {
      const broken = { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } } as const;
      const { flags, fresh, journal } = yield* place({ answers: [broken, answer] });
      const first = yield* Command.start([...fresh, "--prompt", "Hello"]);
      first.child.stdin?.end();
      assert.strictEqual(yield* first.ended, 4, first.printed());
      assert.include(first.printed(), "--resume --chat c");
      const second = yield* Command.start([...flags, "--chat", "c", "--resume"]);
      second.child.stdin?.end("nonsense\nretry\n");
      assert.strictEqual(yield* second.ended, 0, second.printed());
      assert.include(second.printed(), "type a number");
      assert.deepStrictEqual(Judge.problems(journal()), []);
    }).pipe(Effect.scoped),
  );

  it.live("Ctrl-C cancels the run with its tool, and the exit code says so", () =>
    Effect.gen(function* () {
      const slow = { tool: "shell", input: { command: "echo mark >> marks; sleep 60" } };
      const { fresh, journal, provider } = yield* place({ answers: [{ content: [slow] }, answer] });
      const run = yield* Command.start([...fresh, "--prompt", "Wait"]);
      yield* run.until("▸ shell");
      run.child.kill("SIGINT");
      assert.strictEqual(yield* run.ended, 130, run.printed());
      assert.include(run.printed(), "cancelled");
      assert.lengthOf(yield* provider.log, 1);
      const last = journal().at(-1);
      assert.isTrue(last?._tag === "End" && last.ending === "cancelled");
    }).pipe(Effect.scoped),
  );

  it.live("a shutdown in the middle of an answer leaves it open, and --resume goes on with it", () =>
    Effect.gen(function* () {
      const stalled = { content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 3 } } as const;
      const { flags, fresh, journal } = yield* place({ answers: [stalled, answer] });
      const run = yield* Command.start([...fresh]);
      run.child.stdin?.write("Hello\n");
      yield* run.until("r1.0·");
      run.child.kill("SIGTERM");
      assert.strictEqual(yield* run.ended, 143, run.printed());
      assert.notStrictEqual(journal().at(-1)?._tag, "End");
      const second = yield* Command.start([...flags, "--chat", "c", "--resume"]);
      second.child.stdin?.end("accept\n");
      assert.strictEqual(yield* second.ended, 1, second.printed());
      assert.strictEqual(journal().at(-1)?._tag, "End");
    }).pipe(Effect.scoped),
  );

  it.live("kill -9 while a tool runs: --resume asks, and runs nothing twice", () =>
    Effect.gen(function* () {
      const slow = { tool: "shell", input: { command: "echo mark >> marks; sleep 5" } };
      const { flags, fresh, journal, marks } = yield* place({ answers: [{ content: [slow] }, answer] });
      const run = yield* Command.start([...fresh, "--prompt", "Work"]);
      yield* made(marks);
      run.child.kill("SIGKILL");
      yield* run.ended;
      const second = yield* Command.start([...flags, "--chat", "c", "--resume"]);
      yield* second.until("it_did_not_run");
      second.child.stdin?.end("it_ran\n");
      assert.strictEqual(yield* second.ended, 0, second.printed());
      assert.lengthOf(linesOf(marks), 1);
      assert.deepStrictEqual(Judge.problems(journal()), []);
    }).pipe(Effect.scoped),
  );

  it.live(
    "kill -9 while a tool runs and the answer is open: --resume finds the chat, and a retry is asked for twice",
    () =>
      Effect.gen(function* () {
        const slow = { tool: "shell", input: { command: "echo mark >> marks; sleep 5" } };
        // It stalls in the text behind the call.
        const open = { content: [slow, { text: 20 }], break: { kind: "stall", at: "event", n: 18 } } as const;
        const { flags, fresh, marks } = yield* place({ answers: [open, answer] });
        // In OpenAI's protocol a call is whole with its answer only.
        const run = yield* Command.start([...fresh, "--protocol", "anthropic-messages", "--prompt", "Work"]);
        yield* made(marks);
        run.child.kill("SIGKILL");
        yield* run.ended;
        const second = yield* Command.start([...flags, "--resume"]);
        second.child.stdin?.end("retry\n\nretry\nyes\n");
        assert.strictEqual(yield* second.ended, 0, second.printed());
        assert.include(second.printed(), "A retry may run again: shell");
        assert.include(second.printed(), "? Run again: shell");
        assert.include(second.printed(), "echo mark >> marks");
        assert.lengthOf(linesOf(marks), 1);
        const third = yield* Command.start([...flags, "--resume"]);
        assert.strictEqual(yield* third.ended, 0, third.printed());
        assert.include(third.printed(), "no chat was left open");
      }).pipe(Effect.scoped),
  );

  it.live("--resume lists the chats that were left open where there are several, and chooses none", () =>
    Effect.gen(function* () {
      const broken = { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } } as const;
      const { flags, fresh } = yield* place({ answers: [broken, broken] });
      for (const chat of ["one", "two"]) {
        const run = yield* Command.start([...fresh.slice(0, -1), chat, "--prompt", "Hello"]);
        run.child.stdin?.end();
        assert.strictEqual(yield* run.ended, 4, run.printed());
      }
      const resumed = yield* Command.start([...flags, "--resume"]);
      assert.strictEqual(yield* resumed.ended, 2);
      assert.match(
        resumed.printed(),
        /^agent: 2 chats were left open, name one by --resume --chat: two \(m, .*one \(m, .*\n$/,
      );
    }).pipe(Effect.scoped),
  );

  it.live(
    "bad input is refused with 2: a key in the address, no model, another model for the same chat, a cluster over a file",
    () =>
      Effect.gen(function* () {
        const { flags, fresh } = yield* place({ answers: [answer] });
        const codes = yield* Effect.forEach(
          [
            [...flags, "--model", "m", "--url", "https://host/v1?api_key=secret", "--prompt", "x"],
            [...flags, "--prompt", "x"],
            [...fresh, "--prompt", "x"],
            [...flags, "--chat", "c", "--model", "other", "--prompt", "x"],
            // A file is of one machine.
            [...flags, "--cluster", "--chat", "c", "--prompt", "x"],
            [...flags, "--node", "127.0.0.1:4011"],
          ],
          (args) => Effect.flatMap(Command.start(args), (run) => run.ended),
        );
        assert.deepStrictEqual(codes, [2, 2, 0, 2, 2, 2]);
      }).pipe(Effect.scoped),
  );

  const hasScript = spawnSync(Command.terminal, ["--version"]).status === 0;
  it.live.skipIf(!hasScript)("in a terminal withdrawn text is erased, and a line stands in its place", () =>
    Effect.gen(function* () {
      const broken = { content: [{ text: 20 }], break: { kind: "rst", at: "terminal" } } as const;
      const { fresh } = yield* place({ answers: [broken, answer] });
      const run = yield* Command.start([...fresh, "--prompt", "Hello"], true);
      yield* run.until("(Enter)");
      run.child.stdin?.write("1\n");
      assert.strictEqual(yield* run.ended, 0, run.printed());
      // Up to where the text began, and everything from there is gone.
      const erased = run.printed().split("\u001b[J")[0] ?? "";
      assert.match(erased, /\d+A\r$/);
      assert.include(run.printed(), "\u001b[J⤺ withdrawn:");
      assert.include(run.printed(), "r2.0·r2.1·r2.2·");
    }).pipe(Effect.scoped),
  );
});
