import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";

const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url));

describe("what the command line has to say besides its answer", () => {
  it("goes to stderr, so that stdout holds answers only", () => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, "faults", "--port", "99999999"], {
      encoding: "utf8",
    });
    assert.strictEqual(stdout, "");
    assert.strictEqual(stderr, "faults: port: expected 0 to 65535, got 99999999\n");
    assert.strictEqual(status, 2);
  });
});
