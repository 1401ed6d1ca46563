/** Plays a whole gateway in simulated worlds, in a process of its own, because it replaces that process's clocks and sockets. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { campaign } from "../../Campaigns.ts";

const root = new URL("../../..", import.meta.url).pathname;

/** Runs the command. */
const simulate = async (...given: ReadonlyArray<string>): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, ["scripts/simulate.ts", "--gateway", ...given], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
};

const runs = campaign(60);

describe("a gateway in simulated worlds", () => {
  it(`keeps every law over ${runs} seeds`, async () => {
    assert.include(await simulate("--runs", String(runs)), `${runs} runs, 0 with violations`);
  });

  it("plays the same world for the same seed, also after other worlds", async () => {
    const digests = async (from: number, count: number) =>
      (await simulate("--seed", String(from), "--runs", String(count), "--trace")).match(/^world \d+ \w+$/gm) ?? [];
    const [three, last] = [await digests(20, 3), await digests(22, 1)];
    assert.lengthOf(three, 3);
    assert.deepStrictEqual(three.slice(2), last);
  });
});
