/** Real processes and real signals: a shutdown is recorded correctly, and nothing keeps a process alive. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";

const program = fileURLToPath(new URL("../../fixtures/Interrupted.ts", import.meta.url));

/** Maximum life of a process, in milliseconds. It is killed after that, and the signal fails the test. */
const longestMs = 20_000;

/** Maximum time from the signal, or the last event, to the exit of the process, in milliseconds. The shortest watchdog has 90 s. */
const promptMs = 10_000;

const start = (mode: "endless" | "closing" | "complete") =>
  spawn(process.execPath, [program, mode], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: longestMs,
    killSignal: "SIGKILL",
  });

/** Collects the lines of the process; `streaming` completes with the first event of the stream. */
const watch = (child: ChildProcess) => {
  const printed = { out: "", err: "" };
  const streaming = new Promise<void>((resolve) => {
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      printed.out += chunk;
      if (printed.out.includes("streaming\n")) resolve();
    });
  });
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    printed.err += chunk;
  });
  const gone = once(child, "close").then(([code, signal]: Array<unknown>) => ({ code, signal }));
  return { printed, streaming: Promise.race([streaming, gone]), gone };
};

/** The record's end, which the process prints last. */
const endOf = ({ out, err }: { readonly out: string; readonly err: string }): unknown => {
  const last = out.trimEnd().split("\n").at(-1) ?? "";
  return last.startsWith("{") ? JSON.parse(last) : `no end was printed: ${out}${err}`;
};

describe("L10 in a real process", () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`${signal} under runMain is caller_interrupted on record, and the process exits promptly`, async () => {
      const child = start("endless");
      const { gone, printed, streaming } = watch(child);
      await streaming;
      const sent = performance.now();
      child.kill(signal);
      const exit = await gone;
      assert.deepStrictEqual(endOf(printed), {
        state: "stopped",
        reason: "caller_interrupted",
        rule: "caller_interrupted",
        failure: { kind: "cancelled", by: "caller" },
      });
      assert.isNull(exit.signal, `it had to be killed: ${printed.err}`);
      assert.isBelow(performance.now() - sent, promptMs);
    });
  }

  it("a processor that is closed first leaves lifecycle_closed, and its process ends by itself", async () => {
    const { gone, printed } = watch(start("closing"));
    assert.deepStrictEqual(await gone, { code: 0, signal: null });
    assert.include(printed.out, "stopped lifecycle_closed\n");
    assert.deepStrictEqual(endOf(printed), {
      state: "stopped",
      reason: "lifecycle_closed",
      rule: "lifecycle_closed",
      failure: { kind: "cancelled", by: "lifecycle" },
    });
  });

  it("a process whose run has completed ends by itself: no timer and no fiber keeps it alive", async () => {
    const { gone, printed, streaming } = watch(start("complete"));
    await streaming;
    const streamed = performance.now();
    assert.deepStrictEqual(await gone, { code: 0, signal: null });
    assert.isBelow(performance.now() - streamed, promptMs);
    assert.deepStrictEqual(endOf(printed), { state: "completed", reason: "stop" });
  });
});
