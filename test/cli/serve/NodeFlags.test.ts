/** Flags that V8 reads at the start of a process are those of Node's command line, even in a worker. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { bareEnv, bin } from "../CommandLine.ts";
import { folder } from "../ServeProcess.ts";

/** Makes each started Node print its flags on stderr before anything else. */
const tells = `data:text/javascript,${encodeURIComponent("console.error('node ' + JSON.stringify(process.execArgv))")}`;

const node = ["--no-warnings", "--no-memory-reducer", "--v8-pool-size=1", "--import", tells];

const env: NodeJS.ProcessEnv = { ...bareEnv(tmpdir()), STREAM_RECOVERY_PORT: "0", STREAM_RECOVERY_DB: "memory" };

/** Runs a process to its end, or until it listens and is told to stop. */
const ended = (child: ChildProcess) =>
  Effect.promise(async () => {
    const output = { stdout: "", stderr: "" };
    child.stdout?.on("data", (bytes: Buffer) => {
      output.stdout += String(bytes);
      if (output.stdout.includes("listening on")) child.kill("SIGTERM");
    });
    child.stderr?.on("data", (bytes: Buffer) => {
      output.stderr += String(bytes);
    });
    const [code]: Array<unknown> = await once(child, "close");
    const flags = [...output.stderr.matchAll(/^node (.+)$/gm)].map(([, line = ""]): unknown => JSON.parse(line));
    return { code, flags };
  });

describe("serve", () => {
  it.live("runs in the process that was started, with the flags of its command line", () =>
    Effect.gen(function* () {
      const child = spawn(process.execPath, [...node, bin, "serve"], { env, stdio: ["pipe", "pipe", "pipe"] });
      const { code, flags } = yield* ended(child);
      assert.strictEqual(code, 0);
      assert.deepStrictEqual(flags, [node]);
    }),
  );

  it.live("starts its workers with the flags of its command line", () =>
    Effect.gen(function* () {
      const several = ["serve", "--workers", "2", "--db", join(yield* folder, "runs.db")];
      const child = spawn(process.execPath, [...node, bin, ...several], { env, stdio: ["pipe", "pipe", "pipe"] });
      assert.deepStrictEqual((yield* ended(child)).flags, [node, node, node]);
    }).pipe(Effect.scoped),
  );
});
