/**
 * The check of `npm run agents` for newer versions of the pinned agents.
 */
import { assert, describe, it } from "@effect/vitest";
import { agents } from "../../../scripts/agents/Agents.ts";
import { pinnedVersion } from "../../../scripts/agents/Install.ts";
import { successorsOf } from "../../../scripts/agents/Successors.ts";

const versions = (newest: Readonly<Record<string, string | undefined>>) => ({
  pinned: () => "1.0.0",
  newest: (name: string) => newest[name],
});

describe("newer versions of pinned agents", () => {
  it("are named with both versions, and a package in its newest version is not", () => {
    const { found, unknown } = successorsOf(["one", "two"], versions({ one: "1.0.0", two: "1.0.1" }));
    assert.lengthOf(found, 1);
    assert.match(found[0] ?? "", /^two is pinned at 1\.0\.0, and 1\.0\.1 is available.*--newest/);
    assert.isUndefined(unknown);
  });

  it("are unknown without a network, which is reported in one sentence", () => {
    const { found, unknown } = successorsOf(["one", "two"], versions({ two: "1.0.1" }));
    assert.deepStrictEqual(found, []);
    assert.match(unknown ?? "", /cannot look up the newest version of one: without a network/);
  });

  it("are searched for with exact versions", () => {
    for (const { packageName } of agents) assert.match(pinnedVersion(packageName) ?? "", /^\d+\.\d+\.\d+/, packageName);
  });
});
