/** `stream-recovery paths` as a process, against a server with the gateway's page. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Layer } from "effect";
import type { PathStatus } from "../../src/paths/Paths.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import * as Runs from "../gateway/page/PageRuns.ts";
import * as Paths from "../gateway/page/PathCases.ts";
import { pageServer } from "../gateway/page/Server.ts";
import { run } from "./CommandLine.ts";

const memory = RunRecorder.layerMemory();

const paths = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  Effect.promise(() => run(["paths", ...args], { env: { PATH: process.env.PATH, ...env } }));

const withPaths = (list: () => ReadonlyArray<PathStatus>) => Layer.merge(memory, Paths.standing(list));

describe("stream-recovery paths", () => {
  it.live("prints the paths of a running gateway as a table, and the delays that providers have announced", () => {
    let list: ReadonlyArray<PathStatus> = [];
    return Effect.gen(function* () {
      const by = (yield* Clock.currentTimeMillis) - Runs.now;
      const cooldowns = Paths.cooling.cooldowns.map((it) => ({ ...it, until: it.until + by + 3_600_000 }));
      list = [Paths.up, { ...Paths.cooling, cooldowns }, { ...Paths.down, since: Paths.down.since + by }];
      const { url } = yield* pageServer;
      const printed = yield* paths(["--url", url]);
      assert.deepStrictEqual([printed.code, printed.stderr], [0, ""]);
      const [head, first, second, third, ...rest] = printed.stdout.split("\n");
      assert.match(head ?? "", /^PATH +STATE +SINCE +WAITING +ASKED +WHY$/);
      assert.match(
        first ?? "",
        /^https:\/\/api\.anthropic\.com via http:\/\/proxy:3128 +✕ down +\d+ (?:s|min) ago +12 +17 times.* nothing listens/,
      );
      assert.match(second ?? "", /^https:\/\/api\.groq\.com +‖ cooling .* 29/);
      assert.match(third ?? "", /^https:\/\/api\.openai\.com +✓ up /);
      assert.match(rest.join("\n"), /gpt-5\.6-mini, credential 0123abcd: too many requests, for (?:1 h|\d+ min)/);
      const json = yield* paths(["--url", url, "--json"]);
      assert.deepStrictEqual(
        JSON.parse(json.stdout).paths.map((it: { state: string }) => it.state),
        ["down", "up", "up"],
      );
    }).pipe(Effect.scoped, Effect.provide(withPaths(() => list)));
  });

  it.live("has a path probed at once, and reports by its exit code if it can be reached", () => {
    let list: ReadonlyArray<PathStatus> = [Paths.down];
    return Effect.gen(function* () {
      const { url } = yield* pageServer;
      const env = { STREAM_RECOVERY_URL: url };
      const down = yield* paths(["--try", Paths.down.path], env);
      assert.strictEqual(down.code, 1);
      assert.match(down.stdout, /✕ down/);
      assert.strictEqual(down.stderr, `paths: ${Paths.down.path} cannot be reached yet; its runs continue to wait\n`);
      list = [{ ...Paths.down, state: "returning" }];
      const back = yield* paths(["--try", Paths.down.path, "--json"], env);
      assert.deepStrictEqual([back.code, JSON.parse(back.stdout).paths.length], [0, 1]);
      const none = yield* paths(["--try", "https://elsewhere"], env);
      assert.deepStrictEqual([none.code, none.stdout], [1, ""]);
      assert.match(none.stderr, /^paths: the gateway does not know the path "https:\/\/elsewhere"; .*\n$/);
    }).pipe(Effect.scoped, Effect.provide(withPaths(() => list)));
  });

  it.live("reports an error in one line, with its remedy", () =>
    Effect.gen(function* () {
      const { url } = yield* pageServer;
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number, RegExp]> = [
        [["--url", url], 1, /^paths: no path is known yet/],
        [
          ["--url", "http://127.0.0.1:1"],
          2,
          /^paths: no gateway answers at http:\/\/127\.0\.0\.1:1.*Start one with `serve`/,
        ],
        [["--url", "nowhere"], 2, /^paths: --url: expected the gateway's address/],
        [["--url", "http://a:SECRET@127.0.0.1:1"], 2, /^paths: --url: expected/],
        [["--token", "a b"], 2, /^paths: --token: expected letters/],
      ];
      for (const [args, code, line] of cases) {
        const ended = yield* paths(args);
        assert.deepStrictEqual([args, ended.code, ended.stdout], [args, code, ""]);
        assert.match(ended.stderr, line);
        assert.strictEqual(ended.stderr.trim().split("\n").length, 1);
        assert.notInclude(ended.stderr, "SECRET");
      }
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );
});
