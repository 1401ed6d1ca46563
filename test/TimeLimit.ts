/**
 * Sets the time limit for the tests of a file, which finds hangs and does not measure speed. It grows with the load of the machine.
 * Tests that only compute have no limit, since it would only detect a busy machine.
 */
import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { expect, vi } from "vitest";

const waits = /\bit\.(?:effect|live|scoped|layer)|\basync\b|\bPromise\b/;

const path = expect.getState().testPath;
if (path !== undefined && !waits.test(readFileSync(path, "utf8"))) vi.setConfig({ testTimeout: 0, hookTimeout: 0 });
else {
  const [oneMinute = 0] = loadavg();
  // With more runnable processes than cores, each gets a fraction of the time it gets on an idle machine.
  const factor = Math.max(1, oneMinute / availableParallelism());
  const limit = Number(process.env.TEST_LIMIT_MS) * factor;
  vi.setConfig({ testTimeout: limit, hookTimeout: limit });
}
