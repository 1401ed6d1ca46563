import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Runtime, Stdio, Stream } from "effect";
import { Command } from "effect/cli";
import { decideCommand } from "../../src/cli/decide.ts";
import { printed } from "./Printed.ts";

/** Runs the command in this process and returns the exit code that its process would have. */
const run = (args: ReadonlyArray<string>, input = "") =>
  Effect.gen(function* () {
    const stdin = Stream.make(new TextEncoder().encode(input));
    const { exit, stderr, stdout } = yield* printed(Command.runWith(decideCommand, { version: "0" })(args)).pipe(
      Effect.provide(Layer.merge(NodeServices.layer, Stdio.layerTest({ stdin }))),
    );
    const error = exit._tag === "Failure" ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : null;
    return { code: error === null ? 0 : Runtime.getErrorExitCode(error), stdout, stderr };
  });

const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "");
const decided = (text: string): ReadonlyArray<Record<string, unknown>> => lines(text).map((line) => JSON.parse(line));

describe("stream-recovery decide", () => {
  it.effect("decides the issue's example: text was shown, so a person is asked", () =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* run(
        [],
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
    }),
  );

  it.effect("decides the design's example: a fenced call is replayed after 375 ms", () =>
    Effect.gen(function* () {
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
      const { stdout } = yield* run([], `${JSON.stringify(document)}\n`);
      assert.deepInclude(decided(stdout)[0], {
        action: "auto_retry_once",
        rule: "tool_calls_fenced",
        mode: "replay",
        delay_ms: 375,
        policy_version: "3",
      });
    }),
  );

  it.effect("says what a retry waits for and which route it takes, and accepts every field of a run by its name", () =>
    Effect.gen(function* () {
      const failure = { kind: "transport", code: "ECONNREFUSED" };
      const waits = { failure, run: { path: "down", waited_ms: 4_000 }, budget: { max_outage_ms: "forever" } };
      const goes = { failure, run: { path: "down", next_route: "up", own_route: true, moves: 1, route_failures: 2 } };
      const asks = {
        failure,
        run: { wasted_tokens: 900, next_tokens: 200, tokens_estimated: true, group_retries: 1, group_wasted_tokens: 5 },
        budget: { max_wasted_tokens: 1_000, max_group_retries: 9, max_group_wasted_tokens: 9_000, max_moves: 2 },
      };
      const { stdout } = yield* run(["--explain"], [waits, goes, asks].map((it) => JSON.stringify(it)).join("\n"));
      const [first, second, third] = decided(stdout);
      assert.deepInclude(first, { rule: "not_sent", mode: "replay", delay_ms: 0, wait_for: "path" });
      assert.include(first?.message, "It is sent when the provider can be reached again.");
      assert.deepInclude(second, { rule: "not_sent", mode: "replay", delay_ms: 0, route: "next" });
      assert.include(second?.message, "It is sent to the next route.");
      assert.deepInclude(third, { action: "ask_user", rule: "token_budget" });
      assert.include(third?.message, "The count is an estimate");
    }),
  );

  it.effect("names the line and the field of an invalid input, and decides the others", () =>
    Effect.gen(function* () {
      const input = [
        '{"failure":{"kind":"truncated"}}',
        "",
        '{"facts":{"shown":"x"},"failure":{"kind":"transport"}}',
        "\t",
        "not json",
        '{"failure":{"kind":"oops"}}\r',
        '{"failure":{"kind":"unknown"}}',
      ].join("\n");
      const { code, stdout, stderr } = yield* run([], input);
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
    }),
  );

  it.effect("refuses a line that is longer than its limit, and continues after it", () =>
    Effect.gen(function* () {
      const input = `${'"'.padEnd(1_100_000, "a")}\n{"failure":{"kind":"transport"}}\n`;
      const { code, stdout, stderr } = yield* run([], input);
      assert.strictEqual(code, 2);
      assert.strictEqual(stderr, "line 1: input: longer than 1048576 bytes");
      assert.strictEqual(lines(stdout).length, 1);
    }),
  );

  it.effect("adds a sentence with --explain, and decides with the strict preset with --policy", () =>
    Effect.gen(function* () {
      const input = '{"facts":{"delivery":"accepted","shown":"reasoning"},"failure":{"kind":"truncated"}}';
      const [usual, strict] = yield* Effect.all([run(["--explain"], input), run(["--policy", "strict"], input)]);
      assert.match(String(decided(usual.stdout)[0]?.message), /^The model's answer ended early.*so a retry is safe\.$/);
      assert.strictEqual(decided(usual.stdout)[0]?.rule, "only_reasoning_shown");
      assert.deepInclude(decided(strict.stdout)[0], { action: "ask_user", rule: "text_shown" });
    }),
  );

  it.effect("decides ten thousand lines in order", () =>
    Effect.gen(function* () {
      const kinds = ["transport", "unknown", "caller_failed"];
      const input = Array.from({ length: 10_000 }, (_, i) => `{"failure":{"kind":"${kinds[i % 3]}"}}`).join("\n");
      const { code, stdout } = yield* run([], input);
      assert.strictEqual(code, 0);
      const rules = decided(stdout).map(({ rule }) => rule);
      assert.strictEqual(rules.length, 10_000);
      assert.isTrue(rules.every((rule, i) => rule === ["not_sent", "unknown_failure", "not_retryable"][i % 3]));
    }),
  );

  it.effect("prints nothing for no input", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run([], "\n\n"), { code: 0, stdout: "", stderr: "" });
    }),
  );
});
