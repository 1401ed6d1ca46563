/**
 * `serve --workers`: real processes behind one port that are killed, reloaded and stopped.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, References } from "effect";
import type { RunRecord } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import { clientOf, eventsOf, whole } from "../gateway/attach/AttachCases.ts";
import { bodies, post, send } from "../gateway/GatewayCases.ts";
import { eventually, polled, until } from "../Polling.ts";
import { serverOf } from "../Servers.ts";
import { bin } from "./CommandLine.ts";
import { folder, type Served, serve, urls } from "./ServeProcess.ts";
import { connected, logged, workersOf } from "./Workers.ts";

/** All runs in a file once each of them has an end, read by a separate process. */
const ended = (file: string) => runsOf(file, (runs) => runs.every(({ state }) => state === "ended"));

/** Waits until enough runs are on record. They are written after they act, so the last moments of a killed process may be missing. */
const recorded = (file: string, count: number) => runsOf(file, ({ length }) => length >= count);

const runsOf = (file: string, isIt: (runs: ReadonlyArray<RunRecord>) => boolean) =>
  Effect.scoped(
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      return yield* polled(Effect.map(recorder.runs({ limit: 1000 }), (runs) => (isIt(runs) ? runs : undefined)));
    }).pipe(
      Effect.provide(SqlRunRecorder.layerFile({ file, retention: false })),
      Effect.provideService(References.MinimumLogLevel, "None"),
    ),
  );

/** Sends many requests in one packet, which are refused, and reads until each of them has its response. */
const refused = (url: string, count: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    let got = "";
    const socket = connect(Number(port), hostname).on("error", reject);
    socket.on("data", (chunk) => {
      got += String(chunk);
      if (got.split("HTTP/1.1 404").length <= count) return;
      socket.destroy();
      resolve();
    });
    socket.write("GET /recovery/nothing HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(count));
  });

/** Logs each write of a worker to its stderr. */
const spying = (file: string): string => `
import { appendFileSync } from "node:fs";
import cluster from "node:cluster";
const { stderr } = process;
const write = stderr.write.bind(stderr);
if (cluster.isWorker) stderr.write = (text, ...more) => {
  appendFileSync(${JSON.stringify(file)}, JSON.stringify(String(text)) + "\\n");
  return write(text, ...more);
};
`;

/** Puts each worker that is sent SIGUSR2 into an endless loop. */
const spinning = `
import cluster from "node:cluster";
if (cluster.isWorker) process.on("SIGUSR2", () => {
  for (;;);
});
`;

/** Resolves with true if a server listens at the URL. */
const isOpen = (url: string): Promise<boolean> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

const chat = (served: Served, onData?: (chunk: Buffer) => void) =>
  send(`${served.url}/v1/chat/completions`, {
    body: JSON.stringify(bodies["openai-chat"]),
    ...(onData === undefined ? {} : { onData }),
  });

describe("stream-recovery serve --workers", () => {
  it.live("prints its address once all of them listen, and drains all of them on SIGTERM with exit code 0", () =>
    Effect.gen(function* () {
      const events = eventsOf("openai-chat");
      const held: Array<ServerResponse> = [];
      const upstream = yield* serverOf((request, response) => {
        request.resume();
        held.push(response.writeHead(200, { "content-type": "text/event-stream" }));
        response.write(Buffer.concat(events.slice(0, 3)));
      });
      const served = yield* serve([
        ...["--port", "0", "--workers", "2", "--db", join(yield* folder, "runs.db")],
        ...urls(upstream),
      ]);
      assert.match(served.stdout(), /^listening on http:\/\/127\.0\.0\.1:\d+\n$/);
      yield* logged(served, /a worker is ready/, 2);
      let began = 0;
      const got = Array.from({ length: 8 }, () => {
        let isFirst = true;
        return chat(served, () => {
          if (isFirst) began += 1;
          isFirst = false;
        });
      });
      yield* until(() => began === 8);
      served.child.kill("SIGTERM");
      // The provider ends no response before that line.
      yield* logged(served, /finishing 8 requests; a second signal exits at once/);
      for (const response of held) response.end(Buffer.concat(events.slice(3)));
      for (const it of yield* Effect.promise(() => Promise.all(got))) assert.isFalse(it.broken);
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
      assert.strictEqual(served.stdout().split("\n").length, 2);
    }),
  );

  it.live("writes lines of its workers' logs that come together in one write, and all of them before they end", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const [module, writes] = [join(dir, "spying.mjs"), join(dir, "writes")];
      writeFileSync(module, spying(writes));
      writeFileSync(writes, "");
      const served = yield* serve(
        [
          ...["--port", "0", "--workers", "2", "--db", join(dir, "runs.db"), "--log-format", "json"],
          ...urls("http://127.0.0.1:1"),
        ],
        { NODE_OPTIONS: `--import=${module}` },
      );
      yield* logged(served, /a worker is ready/, 2);
      yield* Effect.promise(() => Promise.all(Array.from({ length: 10 }, () => refused(served.url, 50))));
      served.child.kill("SIGTERM");
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
      const lines = served.stderr().trimEnd().split("\n");
      assert.lengthOf(
        lines.filter((line) => JSON.parse(line).path === "/recovery/nothing"),
        500,
      );
      const each = readFileSync(writes, "utf8").trimEnd().split("\n");
      assert.isBelow(each.length, 500, "some of 500 lines come within 10 ms");
    }),
  );

  it.live("replaces a killed worker, and ends its runs without waiting for its lease", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db");
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 100 }], delay_ms: 20 }] } });
      // With a lease of an hour, runs that end earlier did not wait for it.
      const args = ["--port", "0", "--workers", "2", "--db", file, "--lease-ms", "3600000", ...urls(server.url)];
      const served = yield* serve(args);
      yield* logged(served, /a worker is ready/, 2);
      const victim = workersOf(served).get(2);
      assert.isDefined(victim);
      const count = 24;
      const others = count - 2;
      const began = new Set<number>();
      let all = () => {};
      const streaming = new Promise<void>((resolve) => {
        all = resolve;
      });
      const got = Array.from({ length: others }, (_, at) =>
        chat(served, () => {
          began.add(at);
          if (began.size === others) all();
        }),
      );
      yield* Effect.promise(() => streaming);
      // The kernel may have given all of these to one worker, and on a slow machine the first of them have ended by now.
      const last = yield* Effect.forEach([1, 2], (worker) =>
        Effect.gen(function* () {
          const { agent } = yield* connected(served, worker);
          const headers = { "content-type": "application/json" };
          const body = JSON.stringify(bodies["openai-chat"]);
          const client = clientOf(`${served.url}/v1/chat/completions`, { agent, body, headers });
          yield* eventually(() => (client.got().byteLength > 0 ? true : undefined));
          return client;
        }),
      );
      yield* recorded(file, count);
      process.kill(victim ?? 0, "SIGKILL");
      yield* logged(served, /a worker ended and is being replaced worker=2 how=SIGKILL/);
      const results = [...(yield* Effect.promise(() => Promise.all(got))), ...(yield* Effect.forEach(last, whole))];
      const broken = results.filter((it) => it.broken).length;
      assert.isAbove(broken, 0, "the worker that died had runs");
      assert.isBelow(broken, count, "connections of the other worker notice nothing");
      const runs = yield* ended(file);
      assert.lengthOf(runs, count);
      const gone = runs.filter(({ end }) => end?.state !== "completed");
      assert.deepStrictEqual(
        [gone.length, new Set(gone.map(({ end }) => end?.reason))],
        [broken, new Set(["process_lost"])],
      );
      for (const run of gone) assert.lengthOf(run.incidents, 0, "nothing is decided about a run of a dead process");
      yield* logged(served, /a worker is ready worker=2/, 2);
      assert.notStrictEqual(workersOf(served).get(2), victim);
      for (let n = 0; n < 8; n++) assert.strictEqual((yield* post(served.url, "openai-chat")).status, 200);
    }),
  );

  it.live(
    "kills workers that hang, stopped or in an endless loop, and ends their runs like those of a killed one",
    () =>
      Effect.gen(function* () {
        const dir = yield* folder;
        const [file, module] = [join(dir, "runs.db"), join(dir, "spinning.mjs")];
        writeFileSync(module, spinning);
        const script = { answers: [{ content: [{ text: 4 }], break: { kind: "stall", at: "event", n: 4 } }] } as const;
        const server = yield* FaultProvider.make({ script });
        const args = ["--port", "0", "--workers", "3", "--db", file, "--lease-ms", "3600000", ...urls(server.url)];
        const served = yield* serve(args, { NODE_OPTIONS: `--import=${module}` });
        yield* logged(served, /a worker is ready/, 3);
        const hung = yield* Effect.forEach([2, 3], (worker) =>
          Effect.gen(function* () {
            const { agent } = yield* connected(served, worker);
            const headers = { "content-type": "application/json" };
            const body = JSON.stringify(bodies["openai-chat"]);
            const client = clientOf(`${served.url}/v1/chat/completions`, { agent, body, headers });
            yield* eventually(() => (client.got().byteLength > 0 ? true : undefined));
            return client;
          }),
        );
        yield* recorded(file, hung.length);
        const before = workersOf(served);
        process.kill(before.get(2) ?? 0, "SIGSTOP");
        process.kill(before.get(3) ?? 0, "SIGUSR2");
        for (const worker of [2, 3]) {
          yield* logged(
            served,
            new RegExp(`killing a worker that hangs: it has not answered for 20 s worker=${worker}`),
          );
          yield* logged(served, new RegExp(`a worker ended and is being replaced worker=${worker} how=SIGKILL`));
        }
        for (const client of hung) assert.isTrue((yield* whole(client)).broken);
        yield* logged(served, /a worker is ready/, 5);
        const runs = yield* ended(file);
        assert.deepStrictEqual(
          runs.map(({ end }) => end?.reason),
          ["process_lost", "process_lost"],
        );
        assert.strictEqual(workersOf(served).get(1), before.get(1), "one that answers goes on");
      }),
  );

  it.live("applies a new configuration to all workers or none, and to a replacement, too", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const config = join(dir, "gateway.json");
      const write = (limits: object) => writeFileSync(config, JSON.stringify({ db: join(dir, "runs.db"), limits }));
      const server = yield* FaultProvider.make({});
      const long = JSON.stringify({ ...bodies["openai-chat"], x: "x".repeat(1000) });
      // New connections, so that both workers get some.
      const statuses = Effect.fnUntraced(function* (served: Served) {
        const all = yield* Effect.forEach(
          Array.from({ length: 12 }),
          () => post(served.url, "openai-chat", { body: long }),
          {
            concurrency: "unbounded",
          },
        );
        return [...new Set(all.map(({ status }) => status))];
      });
      write({});
      const served = yield* serve(["--config", config, "--port", "0", "--workers", "2", ...urls(server.url)]);
      assert.deepStrictEqual(yield* statuses(served), [200]);
      write({ max_body_bytes: 100 });
      served.child.kill("SIGHUP");
      yield* logged(served, /the configuration was reloaded/);
      assert.deepStrictEqual(yield* statuses(served), [413]);
      write({ max_body_bytes: "many" });
      served.child.kill("SIGHUP");
      yield* logged(served, /the new configuration was rejected, and the previous one stays in effect/);
      for (const pid of workersOf(served).values()) process.kill(pid, "SIGKILL");
      yield* logged(served, /a worker is ready/, 4);
      assert.deepStrictEqual(yield* statuses(served), [413]);
    }),
  );

  it.live("reports in the metrics the configuration of each worker, including a replacement", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const config = join(dir, "gateway.json");
      const write = (limits: object) => writeFileSync(config, JSON.stringify({ db: join(dir, "runs.db"), limits }));
      write({});
      const served = yield* serve(["--config", config, "--port", "0", "--workers", "2"]);
      yield* logged(served, /a worker is ready/, 2);
      const generations = Effect.map(
        Effect.promise(() => send(`${served.url}/metrics`)),
        ({ text }) =>
          [...text.matchAll(/^stream_recovery_gateway_config_generation\{worker="(\d)"\} (\d+)$/gm)]
            .map(([, worker, n]) => `${worker}:${n}`)
            .toSorted(),
      );
      assert.deepStrictEqual(yield* generations, ["1:1", "2:1"]);
      for (const [limits, said] of [
        [{ max_body_bytes: 100 }, /the configuration was reloaded generation=2/],
        [{ max_body_bytes: "many" }, /the new configuration was rejected, and the previous one stays in effect/],
        [{ max_body_bytes: 200 }, /the configuration was reloaded generation=3/],
      ] as const) {
        write(limits);
        served.child.kill("SIGHUP");
        yield* logged(served, said);
      }
      assert.deepStrictEqual(yield* generations, ["1:3", "2:3"]);
      process.kill(workersOf(served).get(2) ?? 0, "SIGKILL");
      yield* logged(served, /a worker is ready worker=2/, 2);
      assert.deepStrictEqual(yield* generations, ["1:3", "2:3"]);
    }),
  );

  it.live("loses no new connection while its workers restart in turn", () =>
    Effect.gen(function* () {
      const script = { answers: [{ content: [{ text: 4 }], delay_ms: 1 }] } as const;
      const server = yield* FaultProvider.make({ script });
      const db = join(yield* folder, "runs.db");
      const served = yield* serve(["--port", "0", "--workers", "2", "--db", db, ...urls(server.url)]);
      yield* logged(served, /a worker is ready/, 2);
      const connections = { made: 0, failed: 0 };
      const connecting = Effect.forever(
        Effect.map(Effect.exit(Effect.tryPromise(() => chat(served))), (exit) => {
          connections.made += 1;
          if (exit._tag === "Failure" || exit.value.broken || exit.value.status !== 200) connections.failed += 1;
        }),
      );
      const clients = yield* Effect.forEach(Array.from({ length: 4 }), () => Effect.forkScoped(connecting));
      for (const worker of [1, 2, 1, 2]) {
        const before = [...served.stderr().matchAll(new RegExp(`a worker is ready worker=${worker}`, "g"))].length;
        process.kill(workersOf(served).get(worker) ?? 0, "SIGTERM");
        yield* logged(served, new RegExp(`a worker is ready worker=${worker}`), before + 1);
      }
      yield* Fiber.interruptAll(clients);
      assert.isAbove(connections.made, 100);
      assert.strictEqual(connections.failed, 0);
      assert.notMatch(served.stderr(), /how=(?!"exit code 0")/);
    }),
  );

  it.live("listens on a port outside the system's ephemeral range, if any port will do", () =>
    Effect.gen(function* () {
      const served = yield* serve(["--port", "0", "--workers", "2", "--db", join(yield* folder, "runs.db")]);
      const port = Number(new URL(served.url).port);
      assert.isAtLeast(port, 20_000);
      assert.isBelow(port, 30_000);
      assert.isTrue(yield* Effect.promise(() => isOpen(served.url)));
    }),
  );

  /** Kills workers now and again with each log line. */
  const killing = (served: Served, workers: ReadonlyArray<number>) => {
    const kill = () => {
      for (const worker of workers) {
        const pid = workersOf(served).get(worker);
        if (pid === undefined) continue;
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // The process is already dead.
        }
      }
    };
    served.child.stderr?.on("data", kill);
    kill();
  };

  it.live("exits with code 1 and a reason if its workers die repeatedly, and leaves none behind", () =>
    Effect.gen(function* () {
      const served = yield* serve(["--port", "0", "--workers", "2", "--db", join(yield* folder, "runs.db")]);
      yield* logged(served, /a worker is ready/, 2);
      killing(served, [1, 2]);
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [1, null], served.stderr());
      assert.match(served.stderr(), /serve: worker [12] has ended 5 times in a row; the last cause: SIGKILL\n/);
      assert.isFalse(yield* Effect.promise(() => isOpen(served.url)));
    }),
  );

  it.live("keeps serving if one worker dies repeatedly, and replaces it less often", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({});
      const db = join(yield* folder, "runs.db");
      const served = yield* serve(["--port", "0", "--workers", "2", "--db", db, ...urls(server.url)]);
      yield* logged(served, /a worker is ready/, 2);
      killing(served, [2]);
      yield* logged(served, /a worker ended and is being replaced worker=2 how=SIGKILL pause_ms=30000/);
      assert.strictEqual((yield* post(served.url, "openai-chat", {})).status, 200);
    }),
  );

  it.live("replaces a worker that was told to end each time, and counts none of it as a death", () =>
    Effect.gen(function* () {
      const served = yield* serve(["--port", "0", "--workers", "2", "--db", join(yield* folder, "runs.db")]);
      for (let ended = 1; ended <= 6; ended += 1) {
        yield* logged(served, /a worker is ready/, 1 + ended);
        process.kill(workersOf(served).get(2) ?? 0, "SIGTERM");
        yield* logged(served, /a worker ended and is being replaced worker=2 how="exit code 0" pause_ms=1000/, ended);
      }
    }),
  );

  it.live("starts a replacement with what its siblings have, even if the file has changes that need a restart", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const config = join(dir, "gateway.json");
      const write = (name: string, more: object) =>
        writeFileSync(config, JSON.stringify({ db: join(dir, name), ...more }));
      const server = yield* FaultProvider.make({});
      write("runs.db", {});
      const served = yield* serve(["--config", config, "--port", "0", "--workers", "2", ...urls(server.url)]);
      yield* logged(served, /a worker is ready/, 2);
      // No worker could start by itself on this address, which requires a token.
      write("others.db", { listen: { host: "0.0.0.0" }, prices: { m: { input: 1, output: 1 } } });
      served.child.kill("SIGHUP");
      yield* logged(served, /the configuration was reloaded; these need a restart: host, db, prices/);
      for (const pid of workersOf(served).values()) process.kill(pid, "SIGKILL");
      yield* Effect.raceFirst(
        logged(served, /a worker is ready/, 4),
        Effect.promise(() => served.exited),
      );
      assert.strictEqual((yield* post(served.url, "openai-chat", {})).status, 200);
      assert.isFalse(existsSync(join(dir, "others.db")));
    }),
  );

  it.live("ends its workers if the supervisor itself is killed, and on the second signal", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 4 }], break: { kind: "stall", at: "event", n: 4 } }] },
      });
      for (const signals of [["SIGKILL"], ["SIGTERM", "SIGTERM"]] as const) {
        const db = join(yield* folder, "runs.db");
        const args = ["--port", "0", "--workers", "2", "--db", db, "--drain-ms", "300", ...urls(server.url)];
        const served = yield* serve(args);
        const [first, second] = signals;
        let isFirst = true;
        const got = chat(served, () => {
          if (isFirst) served.child.kill(first);
          isFirst = false;
        });
        if (second !== undefined) {
          yield* logged(served, /finishing 1 requests/);
          served.child.kill(second);
        }
        // The pipes of the log close with the last worker that has them.
        const [code, signal] = yield* Effect.promise(() => served.exited);
        assert.strictEqual(signal ?? code, second === undefined ? "SIGKILL" : 143);
        assert.isTrue((yield* Effect.promise(() => got)).broken);
        assert.isFalse(yield* Effect.promise(() => isOpen(served.url)));
      }
    }),
  );

  it.live("reports if it is itself a worker of node:cluster, as under a process manager", () =>
    Effect.gen(function* () {
      const args = ["serve", "--port", "0", "--workers", "2", "--db", join(yield* folder, "runs.db")];
      const manager = `const cluster = require("node:cluster");
        cluster.setupPrimary(${JSON.stringify({ exec: bin, args, execArgv: [] })});
        cluster.fork().on("exit", (code) => process.exit(code));`;
      const ended = spawnSync(process.execPath, ["-e", manager], {
        encoding: "utf8",
        env: { ...process.env, NODE_NO_WARNINGS: "1" },
      });
      assert.strictEqual(ended.status, 2, ended.stderr);
      assert.match(ended.stderr, /^serve: workers: this process was started by node:cluster.*\n$/);
    }),
  );

  it.live("reports in one line why it does not start, and exits with 2", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db");
      const first = yield* serve(["--port", "0", "--db", file]);
      const { port } = new URL(first.url);
      const wrong: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["--workers", "2", "--db", "memory"], /^serve: workers: several workers need a shared store, .*\n$/],
        [["--workers", "0", "--db", file], /^serve: --workers: expected 1 to 128, or auto, got "0"\n$/],
        [["--workers", "many", "--db", file], /^serve: --workers: expected 1 to 128, or auto, got "many"\n$/],
        [["--workers", "2", "--port", port, "--db", file], /^serve: cannot listen on .* \(EADDRINUSE\)\n$/],
        [["--workers", "2", "--port", "0", "--db", "/dev/null/runs.db"], /^serve: .*\n$/],
      ];
      for (const [args, said] of wrong) {
        const served = yield* serve(args);
        assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [2, null]);
        assert.match(served.stderr(), said);
        assert.strictEqual(served.stdout(), "");
      }
    }),
  );
});
