/**
 * The example of an agent, run as a person runs it: a chat with tools, a break with a question, `kill -9` and `--resume`.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, unwatchFile, watchFile } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Tools from "../../docs/examples/agent/Tools.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import type { FaultScriptInput } from "../../src/testing/script/FaultScript.ts";
import * as Program from "./Program.ts";

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "example-agent-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 3 })),
);

/** A provider, and an agent that asks it. */
const place = Effect.fnUntraced(function* (script: FaultScriptInput, protocol = "anthropic-messages") {
  const at = yield* folder;
  const provider = yield* FaultProvider.make({ script });
  const kept = ["--folder", at, "--lease-ms", "300"];
  const chat = ["--model", "m", "--protocol", protocol, "--base", `${provider.url}/v1`, "--dir", join(at, "box")];
  const agent = (...args: ReadonlyArray<string>) =>
    Program.start("docs/examples/agent/main.ts", [...kept, ...args], { ANTHROPIC_API_KEY: "not-a-key" });
  const box = (name: string) => join(at, "box", name);
  return { agent, begin: (...args: ReadonlyArray<string>) => agent(...chat, ...args), box, provider };
});

const linesOf = (file: string): number => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").length : 0);

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

const answer = { content: [{ text: 3 }] };
const marking = { tool: "shell", input: { command: "echo mark >> marks" } };
const slow = { tool: "shell", input: { command: "echo mark >> marks; sleep 5" } };

describe.each(["anthropic-messages", "openai-chat"])("the example of an agent, over %s", (protocol) => {
  it.live("runs the tools of a turn, and goes on with the chat in another process", () =>
    Effect.gen(function* () {
      const note = { tool: "write_file", input: { path: "notes/a.txt", content: "noted" } };
      const read = { tool: "read_file", input: { path: "../secret" } };
      const answers = [{ content: [{ text: 2 }, marking, note, read] }, answer];
      const { agent, begin, box, provider } = yield* place({ answers }, protocol);
      const printed = yield* (yield* begin("--prompt", "Tidy up")).succeeded;
      assert.include(printed, "r2.0·r2.1·r2.2·");
      assert.include(printed, "../secret is outside of your folder");
      assert.strictEqual(linesOf(box("marks")), 1);
      assert.strictEqual(readFileSync(box("notes/a.txt"), "utf8"), "noted");
      yield* (yield* agent("--prompt", "Thank you")).succeeded;
      assert.lengthOf(yield* provider.log, 3);
    }).pipe(Effect.scoped),
  );

  it.live("continues after shown text, and runs no settled call again", () =>
    Effect.gen(function* () {
      const answers = [
        { content: [{ text: 2 }, marking], break: { kind: "rst", at: "terminal" } },
        { content: [{ text: 20 }], break: { kind: "rst", at: "event", n: 14 } },
        { goes_on: {} },
      ] as const;
      const { begin, box } = yield* place({ answers }, protocol);
      const printed = yield* (yield* begin("--prompt", "Work")).succeeded;
      const whole = Array.from({ length: 20 }, (_, at) => `r2.${at}·`).join("");
      assert.strictEqual(printed.match(/r2\.\d+·/g)?.join(""), whole, printed);
      // In OpenAI's protocol a call is whole with its response alone: it was never handed over.
      assert.strictEqual(linesOf(box("marks")), protocol === "anthropic-messages" ? 1 : 0);
    }).pipe(Effect.scoped),
  );
});

describe("the example of an agent", () => {
  const open = { content: [slow, { text: 20 }], break: { kind: "stall", at: "event", n: 18 } } as const;

  it.live("asks in the terminal, and leaves a question open at the end of the input for --resume", () =>
    Effect.gen(function* () {
      const refused = { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } } as const;
      const { agent, begin } = yield* place({ answers: [refused, { goes_on: { preface: "Sure! " } }, answer] });
      const first = yield* begin("--prompt", "Hello");
      first.child.stdin?.end();
      assert.strictEqual(yield* first.ended, 4, first.printed());
      assert.include(first.printed(), "--resume");
      const second = yield* agent("--resume");
      second.child.stdin?.end("nonsense\nretry\n");
      const printed = yield* second.succeeded;
      assert.include(printed, "is withdrawn");
      assert.include(printed, "r3.0·r3.1·r3.2·");
    }).pipe(Effect.scoped),
  );

  it.live("is killed while a tool runs: --resume asks if it took effect, and runs nothing twice", () =>
    Effect.gen(function* () {
      const { agent, begin, box } = yield* place({ answers: [{ content: [slow] }, answer] });
      const first = yield* begin("--prompt", "Work");
      yield* made(box("marks"));
      first.child.kill("SIGKILL");
      yield* first.ended;
      const second = yield* agent("--resume");
      yield* second.until("it_did_not_run");
      second.child.stdin?.end("it_ran\n");
      assert.include(yield* second.succeeded, "r2.0·r2.1·r2.2·");
      assert.strictEqual(linesOf(box("marks")), 1);
      const third = yield* agent("--resume");
      assert.notInclude(yield* third.succeeded, "r3");
    }).pipe(Effect.scoped),
  );

  it.live("is killed while a tool runs and its answer is open: a retry that may run it again is asked for twice", () =>
    Effect.gen(function* () {
      const { agent, begin, box } = yield* place({ answers: [open, answer] });
      const first = yield* begin("--prompt", "Work");
      yield* made(box("marks"));
      first.child.kill("SIGKILL");
      yield* first.ended;
      const second = yield* agent("--resume");
      second.child.stdin?.end("retry\nno\nretry\nyes\n");
      const printed = yield* second.succeeded;
      assert.include(printed, "A retry may run again");
      assert.include(printed, "? Run again");
      assert.strictEqual(linesOf(box("marks")), 1);
    }).pipe(Effect.scoped),
  );

  it.live("ends a turn on Ctrl-C with its tool, and takes the next words", () =>
    Effect.gen(function* () {
      const { begin, provider } = yield* place({ answers: [{ content: [slow] }, answer] });
      const run = yield* begin();
      run.child.stdin?.write("Wait\n");
      yield* run.until("▸ shell");
      run.child.kill("SIGINT");
      yield* run.until("was not run to its end");
      assert.lengthOf(yield* provider.log, 1);
      run.child.stdin?.end("Go on\n");
      assert.include(yield* run.succeeded, "r2.0·r2.1·r2.2·");
    }).pipe(Effect.scoped),
  );

  it.live("begins no chat without a model", () =>
    Effect.gen(function* () {
      const { agent } = yield* place({ answers: [answer] });
      const run = yield* agent("--prompt", "Hello");
      assert.strictEqual(yield* run.ended, 1);
      assert.include(run.printed(), "--model begins one");
    }).pipe(Effect.scoped),
  );
});

describe("the file tools of the example", () => {
  it.live("stay inside of their folder, whatever a path or a link says", () =>
    Effect.gen(function* () {
      const at = yield* folder;
      const [read, write] = yield* Tools.make(join(at, "box"));
      symlinkSync(at, join(at, "box", "out"));
      symlinkSync(join(at, "nothing"), join(at, "box", "gone"));
      for (const path of ["../a", "/etc/hostname", "out/a", "a/../../b"]) {
        const refused = yield* Effect.flip(write.run(JSON.stringify({ path, content: "x" })));
        assert.include(refused.message, "is outside of your folder", path);
        yield* Effect.flip(read.run(JSON.stringify({ path })));
      }
      yield* write.run(JSON.stringify({ path: "gone", content: "x" }));
      assert.isFalse(existsSync(join(at, "nothing")), "a link to nowhere is replaced, and not followed");
      yield* write.run(JSON.stringify({ path: "new/a", content: "x" }));
      assert.strictEqual(yield* read.run(JSON.stringify({ path: "new/a" })), "x");
      assert.strictEqual(yield* write.verify(JSON.stringify({ path: "new/a", content: "x" })), "it_ran");
      assert.strictEqual(yield* write.verify(JSON.stringify({ path: "new/a", content: "y" })), "unknown");
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  );
});
