/**
 * The walls of the sandbox: paths that lead out are refused, and what a shell call starts does not outlive it.
 */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { Sandbox } from "../../../src/agent/index.ts";
import type { AgentTool } from "../../../src/agent/tools/AgentTool.ts";
import * as FileTools from "../../../src/agent/tools/FileTools.ts";
import * as Shell from "../../../src/agent/tools/ShellTool.ts";
import { eventually } from "../../Polling.ts";
import { linesOf } from "../Marks.ts";
import * as Rig from "../Rig.ts";

/** A box with a secret beside it, and every kind of way to it. */
const box = Effect.map(Rig.folder, (at) => {
  const root = join(at, "box");
  mkdirSync(join(root, "deep"), { recursive: true });
  mkdirSync(join(at, "box-beside"));
  writeFileSync(join(at, "secret"), "secret");
  writeFileSync(join(at, "box-beside", "secret"), "secret");
  writeFileSync(join(root, "own"), "own");
  symlinkSync("../secret", join(root, "link"));
  symlinkSync(at, join(root, "folder"));
  symlinkSync("../new", join(root, "dangling"));
  symlinkSync("ring", join(root, "ring"));
  symlinkSync("own", join(root, "inner"));
  const sandbox = new Sandbox(root);
  const tools = [...FileTools.make(sandbox), Shell.make(sandbox, 2_000)];
  const call = (name: string, input: object) => {
    const tool = tools.find((it): it is AgentTool => it.name === name);
    return tool === undefined ? Effect.die(`no tool ${name}`) : tool.run(JSON.stringify(input));
  };
  return { at, root, tools, call };
});

const outside = [
  "../secret",
  "deep/../../secret",
  "../box-beside/secret",
  "/etc/passwd",
  "link",
  "folder/secret",
  "folder/box-beside/secret",
  "dangling",
  "ring",
  "own\0/../../secret",
];

describe("A sandbox", () => {
  for (const path of outside) {
    it.live(`refuses to read and to write ${JSON.stringify(path)}`, () =>
      Effect.gen(function* () {
        const { at, call } = yield* box;
        const read = yield* call("read_file", { path });
        assert.isTrue(read.failed, read.output);
        assert.notStrictEqual(read.output, "secret");
        assert.isTrue((yield* call("write_file", { path, content: "changed" })).failed);
        assert.isTrue((yield* call("list_files", { path })).failed);
        assert.strictEqual(readFileSync(join(at, "secret"), "utf8"), "secret");
        assert.strictEqual(readFileSync(join(at, "box-beside", "secret"), "utf8"), "secret");
        assert.isFalse(existsSync(join(at, "new")));
      }).pipe(Effect.scoped),
    );
  }

  it.live("reads, lists and writes what is inside, also through its own links and by absolute paths", () =>
    Effect.gen(function* () {
      const { call, root } = yield* box;
      assert.deepStrictEqual(yield* call("read_file", { path: "inner" }), { output: "own", failed: false });
      assert.isFalse((yield* call("write_file", { path: join(root, "new/deeper/a.txt"), content: "a" })).failed);
      assert.strictEqual(readFileSync(join(root, "new/deeper/a.txt"), "utf8"), "a");
      assert.include((yield* call("list_files", {})).output, "deep/\n");
      assert.isTrue((yield* call("read_file", { path: "deep" })).failed);
      assert.isTrue((yield* call("read_file", { paths: 1 })).failed);
    }).pipe(Effect.scoped),
  );
});

describe("write_file tells whether it happened", () => {
  it.live("by what the file holds: as it was to be, as it was before, or something else", () =>
    Effect.gen(function* () {
      const { root, tools } = yield* box;
      const tool = tools.find((it) => it.name === "write_file");
      const input = JSON.stringify({ path: "own", content: "new" });
      const before = tool?.before?.(input);
      assert.isDefined(before);
      const call = { attempt: 1, call: "0.0", tool: "write_file", input, before: before ?? "" };
      assert.strictEqual(tool?.verify?.(call), "it_did_not_run");
      writeFileSync(join(root, "own"), "new");
      assert.strictEqual(tool?.verify?.(call), "it_ran");
      writeFileSync(join(root, "own"), "other");
      assert.strictEqual(tool?.verify?.(call), "unknown");
    }).pipe(Effect.scoped),
  );
});

describe("The shell", () => {
  it.live("works in the directory, without the keys of this process", () =>
    Effect.gen(function* () {
      const { call, root } = yield* box;
      process.env.AGENT_TEST_API_KEY = "planted";
      const { failed, output } = yield* call("shell", { command: "pwd; env; exit 3" });
      assert.isTrue(failed);
      assert.include(output, root);
      assert.include(output, "[exit code 3]");
      assert.notInclude(output, "planted");
    }).pipe(Effect.scoped),
  );

  it.live("is killed at its limit with everything that it has started", () =>
    Effect.gen(function* () {
      const { call, root } = yield* box;
      const { failed, output } = yield* call("shell", { command: "sleep 600 & echo $! > pid; echo begun; wait" });
      assert.isTrue(failed);
      assert.include(output, "begun");
      assert.include(output, "[killed after 2000 ms]");
      const [pid] = linesOf(join(root, "pid"));
      // The kernel ends what was killed when that process is next to run, which may be after its shell was seen to end.
      yield* eventually(() => (isAlive(Number(pid)) ? undefined : true));
    }).pipe(Effect.scoped),
  );

  it.live("gives the start and the end of a long output", () =>
    Effect.gen(function* () {
      const { call } = yield* box;
      const { output } = yield* call("shell", { command: "echo first; yes | head -c 500000; echo last" });
      assert.isBelow(output.length, Shell.outputBytesMax + 100);
      assert.match(output, /^first\n[\s\S]*bytes left out[\s\S]*last\n$/);
    }).pipe(Effect.scoped),
  );
});

/** A killed process may still stand there until its parent has looked: it does nothing any more. */
const isAlive = (pid: number): boolean => {
  const status = `/proc/${pid}/stat`;
  return existsSync(status) && !/^\d+ \(.*\) Z/.test(readFileSync(status, "utf8"));
};
