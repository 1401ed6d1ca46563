/**
 * Loaded into a contender before its own program (`--import`), to answer the bench over the IPC channel. It reports CPU time, memory and
 * the longest turn of the event loop, and records profiles between two messages.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { dirname } from "node:path";

/** A question of the bench. */
export type Question =
  | { readonly ask: "cpu" | "heap" | "outside" | "profile" | "rss" | "peak" | "turns" | "turnMs" | "turnCpuMs" }
  | { readonly ask: "profiled"; readonly file: string };

let session: Session | undefined;

let turns: Turns | undefined;

/** Samples the turns of the event loop every millisecond: their wall time and this thread's CPU time. */
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

// Only the process that the bench started answers. Its own children use their channel for other purposes.
if (process.env.GATEWAY_BENCH_PROBE !== undefined) {
  delete process.env.GATEWAY_BENCH_PROBE;
  process.on("message", (question: Question) => {
    void answer(question).then((value) => process.send?.(value));
  });
  // Lets a program end that has nothing else to do.
  process.channel?.unref();
}
