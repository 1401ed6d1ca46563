/**
 * Loaded into a contender before its own program (`--import`): answers the bench over the channel between parent and child.
 * It says what the process has spent, what its heap holds and how long its longest turn was, and profiles it from one message to
 * another.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { dirname } from "node:path";

/** What the bench may ask of a contender. */
export type Question =
  | { readonly ask: "cpu" | "heap" | "outside" | "profile" | "rss" | "peak" | "turns" | "turnMs" | "turnCpuMs" }
  | { readonly ask: "profiled"; readonly file: string };

let session: Session | undefined;

let turns: Turns | undefined;

/** Looks once a millisecond how long the last turn of the event loop was: by the clock, and by what this thread has worked. */
class Turns {
  longestMs = 0;
  longestCpuMs = 0;
  #at = performance.now();
  #cpu = threadCpuMs();

  constructor() {
    setInterval(() => this.#look(), 1).unref();
  }

  #look(): void {
    const [at, cpu] = [performance.now(), threadCpuMs()];
    this.longestMs = Math.max(this.longestMs, at - this.#at);
    this.longestCpuMs = Math.max(this.longestCpuMs, cpu - this.#cpu);
    this.#at = at;
    this.#cpu = cpu;
  }
}

const threadCpuMs = (): number => {
  const { system, user } = process.threadCpuUsage();
  return (system + user) / 1000;
};

const answer = async (question: Question): Promise<number> => {
  switch (question.ask) {
    case "cpu": {
      const { system, user } = process.cpuUsage();
      return (system + user) * 1000;
    }
    case "heap":
      for (let times = 0; times < 3; times += 1) globalThis.gc?.();
      return process.memoryUsage().heapUsed;
    case "outside":
      return process.memoryUsage().external;
    case "rss":
      return process.memoryUsage.rss();
    case "peak":
      return process.resourceUsage().maxRSS * 1024;
    case "turns":
      turns = new Turns();
      return 0;
    case "turnMs":
      return turns?.longestMs ?? Number.NaN;
    case "turnCpuMs":
      return turns?.longestCpuMs ?? Number.NaN;
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
