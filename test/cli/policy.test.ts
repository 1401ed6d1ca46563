import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { Rule } from "../../src/domain/Decision.ts";

const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));
const run = (...args: ReadonlyArray<string>) => promisify(execFile)(process.execPath, [bin, "policy", ...args]);

describe("stream-recovery policy", () => {
  it("prints the nineteen rows and the three questions as Markdown", async () => {
    const { stdout } = await run();
    const rows = stdout.trimEnd().split("\n");
    assert.strictEqual(rows[0], "| # | if | then | rule |");
    assert.strictEqual(rows[1], "| --- | --- | --- | --- |");
    assert.deepStrictEqual(
      rows.slice(2).map((row) => row.split("|")[1]?.trim()),
      [...Array.from({ length: 19 }, (_, i) => String(i + 1)), "", "", ""],
    );
    assert.isTrue(rows.every((row) => row.split(" | ").length === 4));
    for (const rule of Rule.literals) assert.include(stdout, `\`${rule}\``);
  });

  it("prints the same rows as JSON", async () => {
    const { policy, policy_version, rows } = JSON.parse((await run("--json")).stdout);
    assert.deepStrictEqual([policy, policy_version, rows.length], ["default", "2", 22]);
    assert.deepStrictEqual(rows[1], {
      number: 2,
      if: "user cancelled",
      // biome-ignore lint/suspicious/noThenProperty: a column of the printed table.
      then: "do_not_retry",
      rules: ["user_cancelled"],
    });
  });

  it("prints the strict preset", async () => {
    const { stdout } = await run("--policy", "strict");
    assert.include(stdout, "| 19 | otherwise | replay after 1 s, once a run |");
    assert.notInclude(stdout, "resume_cursor");
  });
});
