/** Paths in states that a test defines. */
import { Effect, Layer } from "effect";
import { type PathStatus, Paths } from "../../../src/paths/Paths.ts";
import { now } from "./PageRuns.ts";

export const up: PathStatus = {
  ...{ path: "https://api.openai.com", state: "up", since: now - 3_600_000, reached: true, probes: 0, waiting: 0 },
  cooldowns: [],
};

export const down: PathStatus = {
  ...{ path: "https://api.anthropic.com via http://proxy:3128", state: "down", since: now - 42_000, reached: true },
  ...{ probes: 17, nextProbeAt: now + 4_000, code: "ECONNREFUSED", waiting: 12, cooldowns: [] },
};

export const returning: PathStatus = {
  ...{ path: "https://generativelanguage.googleapis.com", state: "returning", since: now - 3_000, reached: true },
  ...{ probes: 4, waiting: 3, cooldowns: [] },
};

export const cooling: PathStatus = {
  ...{ path: "https://api.groq.com", state: "up", since: now - 9_000, reached: true, probes: 0, waiting: 29 },
  cooldowns: [
    { kind: "rate_limited", model: "gpt-5.6-mini", credential: "0123abcd", until: now + 31_000 },
    { kind: "overloaded", until: now + 4_000 },
  ],
};

/** The paths of a process with a fixed list, and a probe on request. */
export const standing = (list: () => ReadonlyArray<PathStatus>, tried: (path: string) => void = () => undefined) =>
  Effect.map(Paths.make, (paths) =>
    Paths.of({
      ...paths,
      list,
      tryNow: (path) =>
        Effect.sync(() => {
          tried(path);
          return list().some((it) => it.path === path);
        }),
    }),
  ).pipe(Layer.effect(Paths));
