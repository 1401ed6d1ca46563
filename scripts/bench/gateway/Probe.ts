/**
 * Loaded into a contender before its own program (`--import`): answers the bench over the channel between parent and child.
 * It says what the process has spent, what its heap holds and how long its longest turn was, and profiles it from one message to
 * another.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { dirname } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";

/** What the bench may ask of a contender. */
export type Question =
  | { readonly ask: "cpu" | "heap" | "profile" | "rss" | "peak" | "turns" | "longest" }
  | { readonly ask: "profiled"; readonly file: string };

let session: Session | undefined;

const turns = monitorEventLoopDelay({ resolution: 1 });

const answer = async (question: Question): Promise<number> => {
  switch (question.ask) {
    case "cpu": {
      const { system, user } = process.cpuUsage();
      return (system + user) * 1000;
    }
    case "heap":
      for (let times = 0; times < 3; times += 1) globalThis.gc?.();
      return process.memoryUsage().heapUsed;
    case "rss":
      return process.memoryUsage.rss();
    case "peak":
      return process.resourceUsage().maxRSS * 1024;
    // From one word to the other; in milliseconds.
    case "turns":
      turns.reset();
      turns.enable();
      return 0;
    case "longest":
      turns.disable();
      return turns.max / 1e6;
    case "profile":
      session = new Session();
      session.connect();
      await session.post("Profiler.enable");
      await session.post("Profiler.setSamplingInterval", { interval: 200 });
      await session.post("Profiler.start");
      return 0;
    case "profiled": {
      const ended = await session?.post("Profiler.stop");
      mkdirSync(dirname(question.file), { recursive: true });
      writeFileSync(question.file, JSON.stringify(ended?.profile));
      return 0;
    }
  }
};

// Only the process that the bench has started is asked: those that it starts in turn have a channel for other things.
if (process.env.GATEWAY_BENCH_PROBE !== undefined) {
  delete process.env.GATEWAY_BENCH_PROBE;
  process.on("message", (question: Question) => {
    void answer(question).then((value) => process.send?.(value));
  });
  // A program that has nothing else to do may end.
  process.channel?.unref();
}
