import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";

const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

describe("what the command line logs", () => {
  it("goes to stderr, so that stdout holds answers only", () => {
    // A port that cannot be: the server dies of it, and its defect is logged.
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, "faults", "--port", "99999999"], {
      encoding: "utf8",
    });
    assert.strictEqual(stdout, "");
    assert.match(stderr, /ERROR/);
    assert.strictEqual(status, 1);
  });
});
