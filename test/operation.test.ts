/**
 * Tests the repository's image and service as far as possible without Docker and systemd: reads their files, and runs the commands
 * that they run.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { freePort } from "../scripts/programs/FreePort.ts";
import * as Supervisor from "../src/cli/serve/Supervisor.ts";
import { limitsDefault } from "../src/gateway/config/Options.ts";
import { folder, serve } from "./cli/ServeProcess.ts";
import { manifest } from "./package/Consumer.ts";

const read = (name: string) => readFileSync(new URL(`../scripts/${name}`, import.meta.url), "utf8");

const token = "a-token-of-24-characters";

/** The instructions of the image's last stage, in order. */
const stage = read("Dockerfile")
  .split(/^FROM /m)
  .at(-1)
  ?.split("\n")
  .flatMap((line) => {
    const [, word, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    return word === undefined || rest === undefined ? [] : [{ word, rest }];
  });

const valuesOf = (word: string): ReadonlyArray<string> =>
  (stage ?? []).flatMap((it) => (it.word === word ? [it.rest] : []));

/** A command of the image in its JSON form. */
const command = (text: string): ReadonlyArray<string> => JSON.parse(text.slice(text.indexOf("[")));

const imageEnv = (port: number, db: string): Record<string, string> => ({
  ...Object.fromEntries(valuesOf("ENV").map((pair) => pair.split("=") as [string, string])),
  STREAM_RECOVERY_PORT: String(port),
  STREAM_RECOVERY_DB: db,
});

describe("the image", () => {
  it("runs the package's command as an unprivileged user, keeps its runs in a volume, and reports its health", () => {
    const [entry] = valuesOf("ENTRYPOINT");
    const bin = Object.values(manifest.bin)[0];
    assert.deepStrictEqual(command(entry ?? "[]"), [
      "node",
      "--no-memory-reducer",
      `/app/node_modules/${manifest.name}/${bin}`,
    ]);
    assert.deepStrictEqual(command(valuesOf("CMD")[0] ?? "[]"), ["serve"]);
    assert.deepStrictEqual(valuesOf("USER"), ["node"]);
    const env = imageEnv(8787, "");
    assert.strictEqual(env.STREAM_RECOVERY_HOST, "0.0.0.0");
    const [volume] = command(valuesOf("VOLUME")[0] ?? "[]");
    assert.isTrue(valuesOf("ENV").some((pair) => pair.startsWith(`STREAM_RECOVERY_DB=${volume}/`)));
    assert.deepStrictEqual(valuesOf("EXPOSE"), ["8787"]);
    assert.isTrue(read("Dockerfile.dockerignore").split("\n").includes(".git"));
  });

  it.live("refuses to start without a token, and says why", () =>
    Effect.gen(function* () {
      const served = yield* serve([], imageEnv(yield* freePort, "memory"));
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [2, null]);
      assert.match(served.stderr(), /^serve: token: required for any host other than loopback/);
    }),
  );

  it.live("is healthy while it serves, and exits with 0 when it is stopped, even while its page is open", () =>
    Effect.gen(function* () {
      const port = yield* freePort;
      const env = imageEnv(port, join(yield* folder, "runs.db"));
      const served = yield* serve([], { ...env, STREAM_RECOVERY_TOKEN: token });
      const [program, ...args] = command(valuesOf("HEALTHCHECK")[0] ?? "[]");
      const probed = () =>
        spawnSync(program === "node" ? process.execPath : "", args, { env: { ...process.env, ...env } }).status;
      assert.strictEqual(probed(), 0);
      const page = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/t/${token}/recovery/api/events`));
      assert.strictEqual(page.status, 200);
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
      yield* Effect.promise(() => page.body?.cancel().catch(() => undefined) ?? Promise.resolve());
      assert.strictEqual(probed(), 1);
      for (const line of served
        .stderr()
        .split("\n")
        .filter((it) => it !== ""))
        assert.isString(JSON.parse(line).level);
      assert.notInclude(served.stderr(), token);
    }),
  );
});

describe("the service", () => {
  const unit = read("stream-recovery.service");
  const settingOf = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];

  it("has time to drain, reloads on its signal, and does not restart if that would change nothing", () => {
    // A supervisor gives its workers this much longer than a single-process gateway before it kills them.
    assert.isAbove(
      Number(settingOf("TimeoutStopSec")) * 1_000,
      limitsDefault.drainMs + Supervisor.drainSlackMs + 2_000,
    );
    // Only the supervisor gets the signal, and the processes that a killed supervisor leaves behind are killed, too.
    assert.strictEqual(settingOf("KillMode"), "mixed");
    assert.include(settingOf("RestrictAddressFamilies"), "AF_UNIX", "the workers' own sockets");
    assert.strictEqual(settingOf("ExecReload"), "/bin/kill -HUP $MAINPID");
    assert.strictEqual(settingOf("RestartPreventExitStatus"), "2");
    assert.strictEqual(settingOf("Restart"), "on-failure");
    assert.include(
      settingOf("ExecStart"),
      `node --no-memory-reducer "$$(command -v ${Object.keys(manifest.bin)[0]})" serve`,
    );
    assert.include(unit, `Environment=STREAM_RECOVERY_DB=%S/${settingOf("StateDirectory")}/`);
  });

  const analyze = "/usr/bin/systemd-analyze";

  it.skipIf(!existsSync(analyze))("is a unit that systemd understands", () => {
    const file = new URL("../scripts/stream-recovery.service", import.meta.url).pathname;
    const { status, stderr } = spawnSync(analyze, ["verify", file], { encoding: "utf8" });
    assert.strictEqual(status, 0, stderr);
    assert.notInclude(stderr, "stream-recovery.service:");
  });
});
