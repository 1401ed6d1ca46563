/**
 * Lists the functions of the package that one healthy stream through the gateway calls, from `accept` to `close`.
 *
 * A gateway with a store in memory relays streams from the fault provider, all in this process. The first streams create what is created
 * once; the list holds the functions that V8 counts during the last one.
 */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Context, Effect, Layer, References } from "effect";
import { Gateway } from "../../src/gateway/Gateway.ts";
import { layer } from "../../src/gateway/GatewayLayers.ts";
import { FaultProvider } from "../../src/testing/index.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Streams before the one that is counted. */
const warmStreams = 3;

/** A file of the healthy path. */
export interface PathFile {
  readonly file: string;
  /** Names of the functions that were called, in the order of the file. Functions without a name are not listed but counted. */
  readonly functions: ReadonlyArray<string>;
  /** Number of lines of all functions that were called, without functions in them that were not. */
  readonly lines: number;
}

/** Returns the files of the healthy path, the largest part first. */
export const healthyPath: Effect.Effect<ReadonlyArray<PathFile>> = Effect.gen(function* () {
  const answer = { content: [{ text: 20 }] };
  const provider = yield* FaultProvider.make({
    script: { answers: Array.from({ length: warmStreams + 1 }, () => answer) },
  });
  const upstreams = { openai: `${provider.url}/v1`, anthropic: provider.url, gemini: provider.url };
  const services = yield* Layer.build(layer({ db: "memory", port: 0, upstreams }));
  const { url } = Context.get(services, Gateway);
  for (let n = 0; n < warmStreams; n += 1) yield* Effect.promise(() => stream(url));
  return yield* Effect.promise(() => counted(() => stream(url)));
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"), Effect.orDie);

/** Requests one stream, reads it to its end, and waits until the gateway has closed its run. */
const stream = async (url: string): Promise<void> => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [], stream: true }),
  });
  if (!(await response.text()).includes("[DONE]")) throw new Error("the stream has no end");
  await sleep(200);
};

interface Range {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly isCalled: boolean;
}

/** Runs an act, and returns the functions of src that it called. */
const counted = async (act: () => Promise<void>): Promise<ReadonlyArray<PathFile>> => {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await act();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  return result
    .flatMap(({ functions, url }) => {
      const file = url.startsWith("file:") ? relative(root, fileURLToPath(url)) : "";
      if (!file.startsWith("src/") || file.startsWith("src/testing/")) return [];
      const ranges = functions.flatMap(({ functionName, ranges }) =>
        ranges.map(
          ({ count, endOffset, startOffset }): Range => ({
            name: functionName,
            start: startOffset,
            end: endOffset,
            isCalled: count > 0,
          }),
        ),
      );
      return pathFile(file, ranges) ?? [];
    })
    .sort((a, b) => b.lines - a.lines);
};

const pathFile = (file: string, ranges: ReadonlyArray<Range>): PathFile | undefined => {
  const called = ranges.filter(({ isCalled, start }) => isCalled && start > 0);
  if (called.length === 0) return undefined;
  const text = readFileSync(`${root}/${file}`, "utf8");
  const isCounted = new Array<boolean>(text.length).fill(false);
  // An inner function comes after its outer one, so that its count replaces that of the outer one.
  for (const { end, isCalled, start } of ranges) if (start > 0) isCounted.fill(isCalled, start, end);
  let at = 0;
  let lines = 0;
  for (const line of text.split("\n")) {
    if (line.trim() !== "" && isCounted.slice(at, at + line.length).includes(true)) lines += 1;
    at += line.length + 1;
  }
  return { file, functions: [...new Set(called.flatMap(({ name }) => (name === "" ? [] : [name])))], lines };
};
