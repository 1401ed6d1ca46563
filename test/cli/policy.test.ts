import * as NodeServices from "@effect/platform-node/NodeServices";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { Command } from "effect/cli";
import { policyCommand } from "../../src/cli/policy.ts";
import { Rule } from "../../src/domain/Decision.ts";
import { moveMarkdown, moveTable } from "../../src/policy/PolicyTable.ts";
import { vetoes } from "../../src/policy/RetryBudget.ts";
import { printed } from "./Printed.ts";

const run = (...args: ReadonlyArray<string>) =>
  printed(Command.runWith(policyCommand, { version: "0" })(args)).pipe(Effect.provide(NodeServices.layer));

describe("stream-recovery policy", () => {
  it.effect("prints the nineteen rows and the questions in order as Markdown", () =>
    Effect.gen(function* () {
      const { stdout } = yield* run();
      const [table = ""] = stdout.split("\n\n");
      const rows = table.split("\n");
      assert.strictEqual(rows[0], "| # | if | then | rule |");
      assert.strictEqual(rows[1], "| --- | --- | --- | --- |");
      assert.deepStrictEqual(
        rows.slice(2).map((row) => row.split("|")[1]?.trim()),
        [...Array.from({ length: 19 }, (_, i) => String(i + 1)), ...vetoes.map(() => "")],
      );
      assert.isTrue(rows.every((row) => row.split(" | ").length === 4));
      for (const [index, { rule }] of vetoes.entries()) assert.include(rows[index + 21] ?? "", `\`${rule}\``);
      for (const rule of Rule.literals) assert.include(stdout, `\`${rule}\``);
    }),
  );

  it.effect("prints the table of moves to another route after them", () =>
    Effect.gen(function* () {
      const [, moves = ""] = (yield* run()).stdout.trimEnd().split("\n\n");
      assert.deepStrictEqual(moves.split("\n"), moveMarkdown().split("\n"));
      assert.include(moves, "| path down | at once, before waiting |");
      assert.deepStrictEqual(JSON.parse((yield* run("--json")).stdout).moves, moveTable());
    }),
  );

  it.effect("prints the same rows as JSON", () =>
    Effect.gen(function* () {
      const { policy, policy_version, rows } = JSON.parse((yield* run("--json")).stdout);
      assert.deepStrictEqual([policy, policy_version, rows.length], ["default", "3", 24]);
      assert.deepStrictEqual(rows[1], {
        number: 2,
        if: "user cancelled",
        // biome-ignore lint/suspicious/noThenProperty: a column of the printed table.
        then: "do_not_retry",
        rules: ["user_cancelled"],
      });
    }),
  );

  it.effect("prints the strict preset", () =>
    Effect.gen(function* () {
      const { stdout } = yield* run("--policy", "strict");
      assert.include(stdout, "| 19 | otherwise | replay after 1 s, once per run |");
      assert.notInclude(stdout, "resume_cursor");
      assert.notInclude(stdout, "next route");
    }),
  );
});
