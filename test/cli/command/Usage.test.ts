/**
 * Types things wrong, and ends commands by signals, as processes: one line on stderr, and the exit codes of docs/cli.md.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { CliError } from "effect/cli";
import { foreignStore } from "../../../src/cli/command/Store.ts";
import { usageLine } from "../../../src/cli/command/Usage.ts";

const bin = fileURLToPath(new URL("../../../src/cli/bin.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "usage-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  spawn(process.execPath, ["--no-warnings", bin, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", HOME: folder, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });

/** What a process printed until now. */
const heard = (child: ReturnType<typeof start>) => {
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    said.stdout += String(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    said.stderr += String(chunk);
  });
  return said;
};

const ended = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const child = start(args, env);
  const said = heard(child);
  const [code] = await once(child, "close");
  return { code, ...said };
};

describe("a command line that is wrong", () => {
  const wrong: ReadonlyArray<readonly [typed: string, said: RegExp]> = [
    ["serv", /^stream-recovery: there is no command "serv"; did you mean serve\? See stream-recovery --help\n$/],
    ["serve --prot 1", /^serve: there is no flag "--prot"; did you mean --port\? See stream-recovery serve --help\n$/],
    ["serve --port x", /^serve: --port: expected a whole number, got "x"\. See stream-recovery serve --help\n$/],
    ["decide --policy lax", /^decide: --policy: expected default, strict, got "lax"\. See .*\n$/],
    ["runs show", /^runs show: <id> is missing\. See stream-recovery runs show --help\n$/],
    ["runs list extra", /^runs list: "extra": expected no such argument\. See .*\n$/],
    ["runs list --db postgres://u:secret@h/runs", /^runs list: --db: expected a file or memory, got .* postgres:\n$/],
    ["serve --db libsql://u:secret@h/runs", /^serve: --db: expected a file or memory, got .* libsql:\n$/],
  ];
  it("is one line on stderr, nothing on stdout, and exit code 2", async () => {
    for (const [typed, said] of wrong) {
      const { code, stderr, stdout } = await ended(typed.split(" "));
      assert.deepStrictEqual([code, stdout], [2, ""], typed);
      assert.match(stderr, said);
      assert.notInclude(stderr, "secret");
    }
    const variable = await ended(["serve", "--db", "memory"], { STREAM_RECOVERY_PORT: "secret" });
    assert.match(variable.stderr, /^serve: \$STREAM_RECOVERY_PORT: expected a whole number\. See .*\n$/);
    assert.strictEqual(variable.code, 2);
    assert.isFalse(existsSync(join(folder, "postgres:")), "no file of that name");
  }, 90_000);

  it("is told by its first error, with a count of the others, in one line whatever was typed", () => {
    const two = [
      new CliError.UnrecognizedOption({ option: `--${"x".repeat(500)}\n\u001b[2J`, suggestions: [] }),
      new CliError.MissingArgument({ argument: "id" }),
    ];
    const line = usageLine(["stream-recovery", "runs"], two);
    assert.match(line, /^runs: there is no flag "--x+…"\. 1 more error\. See stream-recovery runs --help$/);
    const odd = new CliError.InvalidValue({ option: "db", value: "a\nb\u001b", expected: "a file", kind: "flag" });
    const said = usageLine(["stream-recovery"], [odd]);
    assert.isFalse(said.includes("\n") || said.includes("\u001b"));
  });

  it("prints help on stdout only where it is asked for", async () => {
    const { code, stderr, stdout } = await ended(["runs", "list", "--help"]);
    assert.deepStrictEqual([code, stderr], [0, ""]);
    assert.match(stdout, /--limit/);
  }, 30_000);

  it("knows an address from a file", () => {
    for (const name of ["runs.db", "./a:b.db", "C:\\runs.db", "/tmp/x", "file:///tmp/x.db", ":memory:", "memory"])
      assert.isUndefined(foreignStore(name), name);
    for (const name of ["postgres://h/d", "POSTGRESQL://h/d", "sqlite:x", "https://h/x", "libsql:x", "my+sql://x"])
      assert.match(foreignStore(name) ?? "", /^--db: expected a file or memory, got /, name);
  });
});

describe("a signal", () => {
  /** Starts a command, waits until it says so, sends a signal, and gives the exit code. */
  const stopped = async (args: ReadonlyArray<string>, ready: RegExp, signal: NodeJS.Signals) => {
    const child = start(args);
    const said = heard(child);
    const closed = once(child, "close");
    for (;;) {
      if (ready.test(said.stdout + said.stderr) || child.exitCode !== null) break;
      await Promise.race([once(child.stdout, "data"), once(child.stderr, "data"), closed]);
    }
    child.kill(signal);
    const [code] = await closed;
    return code;
  };

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`ends a server, and a view without an end, by exit code 0: ${signal}`, async () => {
      const db = join(folder, `${signal}.db`);
      assert.strictEqual(await stopped(["serve", "--port", "0", "--db", db], /listening/, signal), 0);
      assert.strictEqual(await stopped(["faults"], /listening/, signal), 0);
      assert.strictEqual(await stopped(["runs", "watch", "--db", db], /watching/, signal), 0);
    }, 60_000);

    it(`ends any other command by the signal's own code: ${signal}`, async () => {
      const child = spawn(process.execPath, ["--no-warnings", bin, "decide"], { stdio: ["pipe", "pipe", "ignore"] });
      child.stdin.write('{"facts":{},"failure":{"kind":"transport"}}\n');
      await once(child.stdout, "data");
      child.kill(signal);
      const [code] = await once(child, "close");
      assert.strictEqual(code, signal === "SIGINT" ? 130 : 143);
    }, 30_000);
  }
});
