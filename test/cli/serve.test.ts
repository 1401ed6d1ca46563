import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import { bodies, type Got, post, protocols, send } from "../gateway/GatewayCases.ts";
import { polled } from "../Polling.ts";
import { serverOf } from "../Servers.ts";
import { folder, runsIn, serve, urls } from "./ServeProcess.ts";

const stalled = { answers: [{ content: [{ text: 4 }], break: { kind: "stall", at: "event", n: 4 } } as const] };

/** Calls `act` only the first time. */
const once = (act: () => void): (() => void) => {
  let done = false;
  return () => {
    if (!done) act();
    done = true;
  };
};

describe("stream-recovery serve", () => {
  it.live("prints its address as its first line, and serves there", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({});
      const served = yield* serve(["--port", "0", "--db", "memory", ...urls(server.url)]);
      assert.match(served.stdout(), /^listening on http:\/\/127\.0\.0\.1:\d+\n$/);
      for (const protocol of protocols) assert.strictEqual((yield* post(served.url, protocol)).status, 200);
      const page = yield* Effect.promise(() => send(`${served.url}/recovery/`));
      assert.strictEqual(page.status, 200);
      assert.match(page.headers["content-type"] ?? "", /^text\/html/);
    }),
  );

  it.live("reads each option from the environment, too, and prefers the command line", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({});
      const env = {
        STREAM_RECOVERY_PORT: "0",
        STREAM_RECOVERY_DB: "memory",
        STREAM_RECOVERY_OPENAI_URL: `${server.url}/v1`,
        STREAM_RECOVERY_TOKEN: "a-token-of-24-characters",
        STREAM_RECOVERY_REVEAL: "on_complete",
        STREAM_RECOVERY_MAX_BODY_BYTES: "10",
      };
      const served = yield* serve(["--max-body-bytes", "1000"], env);
      assert.strictEqual((yield* post(served.url, "openai-chat")).status, 401);
      const url = `${served.url}/t/${env.STREAM_RECOVERY_TOKEN}`;
      assert.strictEqual((yield* post(url, "openai-chat")).status, 200);
      const long = JSON.stringify({ ...bodies["openai-chat"], x: "x".repeat(1000) });
      assert.strictEqual((yield* post(url, "openai-chat", { body: long })).status, 413);
    }),
  );

  it.live("accepts [DONE] as the end of a chat that never finished only if configured", () =>
    Effect.gen(function* () {
      const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: null }] });
      const url = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(`data: ${chunk}\n\ndata: [DONE]\n\n`);
      });
      const args = ["--port", "0", "--db", "memory", ...urls(url)];
      const plain = yield* serve(args);
      assert.isTrue((yield* post(plain.url, "openai-chat")).broken);
      const told = yield* serve(args, { STREAM_RECOVERY_DONE_COMPLETES: "true" });
      const got = yield* post(told.url, "openai-chat");
      assert.isFalse(got.broken);
      const asked = yield* serve([...args, "--done-completes"]);
      assert.isFalse((yield* post(asked.url, "openai-chat")).broken);
    }),
  );

  it.live("reports in one line why it does not start, and exits with 2", () =>
    Effect.gen(function* () {
      const first = yield* serve(["--port", "0", "--db", "memory"]);
      const { port } = new URL(first.url);
      const wrong: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["--port", port, "--db", "memory"], /^serve: cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)\n$/],
        [["--host", "0.0.0.0", "--db", "memory"], /^serve: token: required for any host other than loopback .*\n$/],
        [["--openai-url", "nowhere", "--db", "memory"], /^serve: openai-url: expected .*\n$/],
      ];
      for (const [args, said] of wrong) {
        const served = yield* serve(args);
        assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [2, null]);
        assert.match(served.stderr(), said);
        assert.strictEqual(served.stdout(), "");
      }
    }),
  );

  it.live("exits with 3 if its store cannot be opened now, so that a service manager restarts it", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db");
      const lock = yield* Effect.acquireRelease(
        Effect.sync(() => new DatabaseSync(file)),
        (made) => Effect.sync(() => made.close()),
      );
      lock.exec("BEGIN EXCLUSIVE");
      for (const more of [[], ["--workers", "2"]]) {
        const served = yield* serve(["--port", "0", "--db", file, ...more]);
        assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [3, null]);
        assert.match(served.stderr(), /^serve: \S+ is locked by another .* Start again when the store is available\n$/);
        assert.strictEqual(served.stdout(), "");
      }
    }),
  );

  it.live("finishes running requests when it is stopped, and accepts no new ones", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 20 }], delay_ms: 20 }] } });
      const served = yield* serve(["--port", "0", "--db", "memory", ...urls(server.url)]);
      const got = yield* Effect.promise(() => {
        const all = send(`${served.url}/v1/chat/completions`, {
          body: JSON.stringify(bodies["openai-chat"]),
          onData: once(() => served.child.kill("SIGTERM")),
        });
        return all;
      });
      assert.isFalse(got.broken);
      assert.lengthOf(yield* server.log, 1);
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [0, null]);
    }),
  );

  it.live("closes requests that have not ended by the drain limit, recorded as lifecycle_closed", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db");
      const server = yield* FaultProvider.make({ script: stalled });
      const served = yield* serve(["--port", "0", "--db", file, "--drain-ms", "200", ...urls(server.url)]);
      const got = yield* Effect.promise(() =>
        send(`${served.url}/v1/chat/completions`, {
          body: JSON.stringify(bodies["openai-chat"]),
          onData: once(() => served.child.kill("SIGTERM")),
        }),
      );
      assert.isTrue(got.broken);
      yield* Effect.promise(() => served.exited);
      assert.strictEqual((yield* runsIn(file))[0]?.end?.reason, "lifecycle_closed");
    }),
  );

  it.live("ends at once on the second signal", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: stalled });
      const served = yield* serve(["--port", "0", "--db", "memory", ...urls(server.url)]);
      const got = send(`${served.url}/v1/chat/completions`, {
        body: JSON.stringify(bodies["openai-chat"]),
        onData: once(() => served.child.kill("SIGTERM")),
      });
      served.child.stderr?.on(
        "data",
        once(() => served.child.kill("SIGTERM")),
      );
      assert.deepStrictEqual(yield* Effect.promise(() => served.exited), [143, null]);
      assert.isTrue((yield* Effect.promise(() => got)).broken);
    }),
  );

  it.live("leaves no key, prompt, output or token in its store or its log", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const [key, prompt, argument, token] = [
        "SECRET-key-1",
        "SECRET-prompt-2",
        "SECRET-argument-3",
        "SECRET-token-4-x",
      ];
      const call = { tool: "pay", input: { to: argument } };
      const server = yield* FaultProvider.make({
        script: {
          answers: [
            { break: { kind: "rst", at: "before_head" } },
            { content: [{ text: 3 }, call] },
            { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } },
            { content: [{ error: "overloaded" }] },
            { status: 401, body: { error: { message: prompt } } },
          ],
        },
      });
      const args = ["--port", "0", "--db", join(dir, "runs.db"), "--log-level", "all", ...urls(server.url)];
      const served = yield* serve(args, { STREAM_RECOVERY_TOKEN: token });
      const headers = { "x-recovery-token": token, "x-goog-api-key": key, authorization: `Bearer ${key}` };
      const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: prompt }], stream: true });
      const all: Array<Got> = [];
      for (let n = 0; n < 5; n++) {
        all.push(yield* Effect.promise(() => send(`${served.url}/v1/chat/completions?key=${key}`, { headers, body })));
      }
      assert.include(all.map((got) => got.text).join(), '"pay"');
      const texts = (yield* server.log).flatMap((row) => row.text);
      assert.isAbove(texts.length, 0);
      served.child.kill("SIGTERM");
      yield* Effect.promise(() => served.exited);
      const kept = readdirSync(dir).map((name) => readFileSync(join(dir, name), "latin1"));
      assert.isAbove(kept.join("").length, 0);
      for (const place of [served.stdout(), served.stderr(), ...kept]) {
        for (const secret of [key, prompt, argument, token, ...texts]) assert.notInclude(place, secret);
      }
    }),
  );

  it.live(
    "ends each of 200 streams in which it was killed after its restart, and asks no person about clients that have left",
    () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "runs.db");
        const server = yield* FaultProvider.make({
          script: {
            scripts: {
              before: [{ break: { kind: "stall", at: "before_head" } }],
              text: stalled.answers,
              call: [{ content: [{ tool: "pay" }], break: { kind: "stall", at: "tool_arguments" } }],
              done: [{ content: [{ text: 2 }] }],
            },
          },
        });
        const names = ["before", "text", "call", "done"];
        const args = ["--port", "0", "--db", file, "--lease-ms", "500", "--on-question", "hold", ...urls(server.url)];
        const killed = yield* serve(args);
        const shown = new Set<number>();
        let seen = () => {};
        const allShown = new Promise<void>((resolve) => {
          seen = resolve;
        });
        for (let n = 0; n < 200; n++) {
          const headers = { "x-script": names[n % 4] ?? "" };
          const body = JSON.stringify({ ...bodies["openai-chat"], model: `m${n}` });
          const onData = (chunk: Buffer) => {
            if (n % 4 === 1 && chunk.includes("content")) shown.add(n);
            if (shown.size === 50) seen();
          };
          const sent = Effect.tryPromise(() => send(`${killed.url}/v1/chat/completions`, { headers, body, onData }));
          yield* Effect.forkScoped(Effect.ignoreCause(sent));
        }
        yield* server.until((rows) =>
          rows.length === 200 && rows.every((row) => row.script === "before" || row.bytes_sent > 0) ? true : undefined,
        );
        yield* Effect.promise(() => allShown);
        // Records are written after the runs act, so the last moments of a killed process may be missing.
        yield* polled(Effect.map(runsIn(file), (runs) => (runs.length === 200 ? true : undefined)));
        killed.child.kill("SIGKILL");
        yield* Effect.promise(() => killed.exited);
        const again = yield* serve(args);
        // A separate reader observes the effects in the file.
        const settled = polled(
          Effect.map(runsIn(file), (runs) => (runs.every((run) => run.state === "ended") ? runs : undefined)),
        );
        const runs = yield* Effect.timeout(settled, "20 seconds");
        assert.isAtLeast(runs.length, 190);
        const broken = runs.filter((run) => run.end?.state === "stopped");
        assert.isAtLeast(broken.length, 140);
        assert.deepStrictEqual([...new Set(broken.map((run) => run.end?.reason))], ["process_lost"]);
        again.child.kill("SIGTERM");
        yield* Effect.promise(() => again.exited);
      }),
  );
});
