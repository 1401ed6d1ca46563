/**
 * The command line as a process, as a person starts it and a system ends it: its output streams, the exit codes of
 * docs/cli.md, and signals.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, describe, it } from "@effect/vitest";
import { bareEnv, heard, run, start } from "./CommandLine.ts";

const folder = mkdtempSync(join(tmpdir(), "processes-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Options of a process that sees none of the tests' environment. */
const apart = (env: NodeJS.ProcessEnv = {}) => ({ cwd: folder, env: { ...bareEnv(folder), NO_COLOR: "1", ...env } });

const assertRejects = async (promise: Promise<unknown>): Promise<void> => {
  const answered = await promise.then(
    () => true,
    () => false,
  );
  assert.isFalse(answered);
};

describe("stream-recovery", () => {
  it("prints its version", async () => {
    const { code, stdout } = await run(["--version"]);
    assert.strictEqual(code, 0);
    assert.match(stdout, /^stream-recovery v\d+\.\d+\.\d+/);
  });

  it("prints everything except its answer to stderr", async () => {
    const { code, stderr, stdout } = await run(["faults", "--port", "99999999"]);
    assert.strictEqual(stdout, "");
    assert.strictEqual(stderr, "faults: port: expected 0 to 65535, got 99999999\n");
    assert.strictEqual(code, 2);
  });
});

describe("a command that reads stdin", () => {
  it("prints one line per line, and names an invalid one on stderr with exit code 2", async () => {
    const failure = '{"failure":{"kind":"transport"}}';
    const { code, stderr, stdout } = await run(["decide"], {}, `${failure}\nnot json\n${failure}\n`);
    assert.strictEqual(code, 2);
    assert.strictEqual(stderr, "line 2: input: not JSON\n");
    assert.strictEqual(stdout.trimEnd().split("\n").length, 2);
  });

  it("tolerates a reader that has left", async () => {
    const child = start(["decide"]);
    const said = heard(child);
    child.stdin.on("error", () => undefined);
    child.stdout.destroy();
    child.stdin.end('{"failure":{"kind":"transport"}}\n'.repeat(20_000));
    const [code] = await once(child, "close");
    assert.deepStrictEqual({ code, stderr: said.stderr }, { code: 0, stderr: "" });
  });

  it("refuses an unknown preset", async () => {
    const { code, stderr } = await run(["decide", "--policy", "lax"]);
    assert.notStrictEqual(code, 0);
    assert.include(stderr, "lax");
  });
});

describe("a wrong command line", () => {
  const wrong: ReadonlyArray<readonly [typed: string, said: RegExp]> = [
    ["serv", /^stream-recovery: unknown command "serv"; did you mean serve\? See stream-recovery --help\n$/],
    ["serve --prot 1", /^serve: unknown flag "--prot"; did you mean --port\? See stream-recovery serve --help\n$/],
    ["serve --port x", /^serve: --port: expected a whole number, got "x"\. See stream-recovery serve --help\n$/],
    ["decide --policy lax", /^decide: --policy: expected default, strict, got "lax"\. See .*\n$/],
    ["runs show", /^runs show: <id> is missing\. See stream-recovery runs show --help\n$/],
    ["runs list extra", /^runs list: "extra": expected no further argument\. See .*\n$/],
    [
      "runs list --db postgres://u:secret@h/runs",
      /^runs list: --db: the PostgreSQL address: it contains a password, .*\n$/,
    ],
    [
      "runs list --db memory",
      /^runs list: --db memory: this command cannot read the memory of another process; name a file or postgres:.*\n$/,
    ],
    ["serve --db memory --workers 2", /^serve: workers: several workers need a shared store, .*\n$/],
    ["serve --db libsql://u:secret@h/runs", /^serve: --db: expected a file, memory or postgres:.*, got .* libsql:\n$/],
  ];
  it("is one line on stderr, nothing on stdout, and exit code 2", async () => {
    for (const [typed, said] of wrong) {
      const { code, stderr, stdout } = await run(typed.split(" "), apart());
      assert.deepStrictEqual([code, stdout], [2, ""], typed);
      assert.match(stderr, said);
      assert.notInclude(stderr, "secret");
    }
    const variable = await run(["serve", "--db", "memory"], apart({ STREAM_RECOVERY_PORT: "secret" }));
    assert.match(variable.stderr, /^serve: \$STREAM_RECOVERY_PORT: expected a whole number\. See .*\n$/);
    assert.strictEqual(variable.code, 2);
    assert.isFalse(existsSync(join(folder, "postgres:")), "no file of that name");
  });

  it("prints help on stdout only on request", async () => {
    const { code, stderr, stdout } = await run(["runs", "list", "--help"], apart());
    assert.deepStrictEqual([code, stderr], [0, ""]);
    assert.match(stdout, /--limit/);
  });
});

describe("a signal", () => {
  /** Starts a command, waits until it is ready, sends a signal, and returns the exit code. */
  const stopped = async (args: ReadonlyArray<string>, ready: RegExp, signal: NodeJS.Signals) => {
    const child = start(args, apart());
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
    it(`ends a server, and an endless view, with exit code 0: ${signal}`, async () => {
      const db = join(folder, `${signal}.db`);
      assert.strictEqual(await stopped(["serve", "--port", "0", "--db", db], /listening/, signal), 0);
      assert.strictEqual(await stopped(["faults"], /listening/, signal), 0);
      assert.strictEqual(await stopped(["runs", "watch", "--db", db], /watching/, signal), 0);
    });

    it(`ends any other command with the signal's own code: ${signal}`, async () => {
      const child = start(["decide"]);
      child.stdin.write('{"facts":{},"failure":{"kind":"transport"}}\n');
      await once(child.stdout, "data");
      child.kill(signal);
      const [code] = await once(child, "close");
      assert.strictEqual(code, signal === "SIGINT" ? 130 : 143);
    });
  }

  it("ends a server that npx started, even if only npx gets it", async () => {
    const root = new URL("../..", import.meta.url).pathname;
    const npx = spawn("npx", ["--no-install", "stream-recovery", "faults"], {
      cwd: root,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [said] = await once(npx.stdout, "data");
    const url = String(said).replace("listening on ", "").trim();
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    await once(socket, "connect");
    // The server closes its connections when it ends, or the system resets them, so no timeout is needed to notice it.
    const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => undefined).resume();
    npx.kill("SIGTERM");
    await ended;
    await assertRejects(fetch(url));
  });
});
