/**
 * Where a node of a cluster listens, as it is typed.
 */
import { assert, describe, it } from "@effect/vitest";
import { nodeOf } from "../../../src/cli/agent/ClusterAgent.ts";

describe("--node", () => {
  it("is a host and a port", () => {
    assert.deepStrictEqual(nodeOf("10.0.0.7:34431"), { host: "10.0.0.7", port: 34_431 });
    assert.deepStrictEqual(nodeOf("node-1.internal:1"), { host: "node-1.internal", port: 1 });
    assert.deepStrictEqual(nodeOf("[fd00::7]:65535"), { host: "fd00::7", port: 65_535 });
  });

  it("is nothing else", () => {
    const wrong = ["", "34431", ":34431", "host", "host:", "host:0", "host:65536", "host:1234567", "fd00::7:34431"];
    for (const text of [...wrong, "a b:1", "http://host:1", "host:1/x", "host:-1"]) {
      assert.isUndefined(nodeOf(text), text);
    }
  });
});
