import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";

const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the real command with an input; `closeStdout` goes away before it writes. */
const run = (args: ReadonlyArray<string>, input: string | Uint8Array = "", closeStdout = false): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bin, ...args]);
    const stdout: Array<Buffer> = [];
    const stderr: Array<Buffer> = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.on("error", reject);
    // A command that ends before it has read everything closes its end of the pipe; its exit code tells the rest.
    child.stdin.on("error", () => undefined);
    child.on("close", (code) =>
      resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }),
    );
    if (closeStdout) child.stdout.destroy();
    child.stdin.end(input);
  });

const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "");
const decided = (text: string): ReadonlyArray<Record<string, unknown>> => lines(text).map((line) => JSON.parse(line));

describe("stream-recovery decide", () => {
  it("answers the issue's example: text was shown, so a person is asked", async () => {
    const { code, stdout, stderr } = await run(
      ["decide"],
      '{"facts":{"delivery":"accepted","shown":"text","progress":"output"},"failure":{"kind":"transport","code":"ECONNRESET"}}',
    );
    assert.strictEqual(code, 0, stderr);
    assert.strictEqual(stderr, "");
    assert.strictEqual(lines(stdout).length, 1);
    assert.deepInclude(decided(stdout)[0], {
      action: "ask_user",
      rule: "text_shown",
      choices: ["retry", "accept", "stop"],
    });
  });

  it("answers the design's example: a fenced call is replayed after 375 ms", async () => {
    const document = {
      facts: {
        delivery: "accepted",
        progress: "output",
        call_through: 1,
        tools: [{ call: "c1", tool: "bash", executor: "runtime", effect: "mutating", phase: "handed_over" }],
        side_effects: {
          guarded: true,
          complete: true,
          reason: "all_classified",
          runtime: { read_only: 1, mutating: 1, unknown: 0 },
          provider: { read_only: 0, mutating: 0, unknown: 0 },
        },
      },
      failure: { kind: "transport", code: "ECONNRESET" },
      jitter: 0.5,
    };
    const { stdout } = await run(["decide"], `${JSON.stringify(document)}\n`);
    assert.deepInclude(decided(stdout)[0], {
      action: "auto_retry_once",
      rule: "tool_calls_fenced",
      mode: "replay",
      delay_ms: 375,
      policy_version: "2",
    });
  });

  it("names the line and the field of a bad one, and decides the others", async () => {
    const input = [
      '{"failure":{"kind":"truncated"}}',
      "",
      '{"facts":{"shown":"x"},"failure":{"kind":"transport"}}',
      "\t",
      "not json",
      '{"failure":{"kind":"oops"}}\r',
      '{"failure":{"kind":"unknown"}}',
    ].join("\n");
    const { code, stdout, stderr } = await run(["decide"], input);
    assert.strictEqual(code, 2);
    assert.deepStrictEqual(
      decided(stdout).map(({ rule }) => rule),
      ["not_sent", "unknown_failure"],
    );
    const said = lines(stderr);
    assert.strictEqual(said.length, 3, stderr);
    assert.strictEqual(said[0], 'line 3: facts.shown: expected "nothing" | "reasoning" | "text", got "x"');
    assert.strictEqual(said[1], "line 5: input: not JSON");
    assert.match(said[2] ?? "", /^line 6: failure\.kind: expected "transport" \| .*"unknown", got "oops"$/);
  });

  it("refuses a line that is longer than its limit and goes on after it", async () => {
    const input = `${'"'.padEnd(1_100_000, "a")}\n{"failure":{"kind":"transport"}}\n`;
    const { code, stdout, stderr } = await run(["decide"], input);
    assert.strictEqual(code, 2);
    assert.strictEqual(stderr, "line 1: input: longer than 1048576 bytes\n");
    assert.strictEqual(lines(stdout).length, 1);
  });

  it("adds a sentence with --explain, and decides by the strict preset with --policy", async () => {
    const input = '{"facts":{"delivery":"accepted","shown":"reasoning"},"failure":{"kind":"truncated"}}';
    const [usual, strict] = await Promise.all([
      run(["decide", "--explain"], input),
      run(["decide", "--policy", "strict"], input),
    ]);
    assert.match(String(decided(usual.stdout)[0]?.message), /^The model's answer ended early.*safely asked again\.$/);
    assert.strictEqual(decided(usual.stdout)[0]?.rule, "only_reasoning_shown");
    assert.deepInclude(decided(strict.stdout)[0], { action: "ask_user", rule: "text_shown" });
  });

  it("decides ten thousand lines in order", async () => {
    const kinds = ["transport", "unknown", "caller_failed"];
    const input = Array.from({ length: 10_000 }, (_, i) => `{"failure":{"kind":"${kinds[i % 3]}"}}`).join("\n");
    const { code, stdout } = await run(["decide"], input);
    assert.strictEqual(code, 0);
    const rules = decided(stdout).map(({ rule }) => rule);
    assert.strictEqual(rules.length, 10_000);
    assert.isTrue(rules.every((rule, i) => rule === ["not_sent", "unknown_failure", "not_retryable"][i % 3]));
  });

  it("has nothing to say about no input", async () => {
    assert.deepStrictEqual(await run(["decide"], "\n\n"), { code: 0, stdout: "", stderr: "" });
  });

  it("does not mind a reader that went away", async () => {
    const input = '{"failure":{"kind":"transport"}}\n'.repeat(20_000);
    const { code, stderr } = await run(["decide"], input, true);
    assert.strictEqual(stderr, "");
    assert.strictEqual(code, 0);
  });

  it("refuses an unknown preset", async () => {
    const { code, stderr } = await run(["decide", "--policy", "lax"]);
    assert.notStrictEqual(code, 0);
    assert.include(stderr, "lax");
  });
});

describe("stream-recovery", () => {
  it("says its version", async () => {
    const { code, stdout } = await run(["--version"]);
    assert.strictEqual(code, 0);
    assert.match(stdout, /^stream-recovery v\d+\.\d+\.\d+/);
  });
});
