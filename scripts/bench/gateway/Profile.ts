/**
 * Profiles a gateway under load and lists its hot spots.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Burst, playBurst, playPaced, warmUp } from "./Client.ts";
import { gateway } from "./Contenders.ts";
import type { Options } from "./Options.ts";
import { type ProfileNode, partsOf } from "./ProfileParts.ts";
import { flagsOf, nameOf, settingsOf } from "./Settings.ts";
import type { Protocol } from "./Wires.ts";

/** A CPU profile in the inspector's format. */
export interface CpuProfile {
  readonly nodes: ReadonlyArray<ProfileNode>;
  readonly samples: ReadonlyArray<number>;
  readonly timeDeltas: ReadonlyArray<number>;
}

/** Self time of a function, a file or a part, in microseconds. */
export interface Spent {
  readonly where: string;
  readonly us: number;
}

/** Self times by part, function and file, in descending order, without idle time and the inspector itself. */
export const selfTimes = ({
  nodes,
  samples,
  timeDeltas,
}: CpuProfile): Readonly<Record<"parts" | "functions" | "files", ReadonlyArray<Spent>>> => {
  const frames = new Map(nodes.map(({ callFrame, id }) => [id, callFrame]));
  const partOf = partsOf(nodes);
  const [parts, functions, files] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  for (const [index, sample] of samples.entries()) {
    const frame = frames.get(sample);
    if (frame === undefined || frame.functionName === "(idle)" || frame.url === "node:inspector") continue;
    const file = fileOf(frame.url);
    const name = frame.functionName === "" ? "(anonymous)" : frame.functionName;
    const us = timeDeltas[index] ?? 0;
    const [inFile, inFunction] = file === "" ? [name, name] : [file, `${name} ${file}:${frame.lineNumber + 1}`];
    const part = partOf.get(sample) ?? "";
    parts.set(part, (parts.get(part) ?? 0) + us);
    files.set(inFile, (files.get(inFile) ?? 0) + us);
    functions.set(inFunction, (functions.get(inFunction) ?? 0) + us);
  }
  return { parts: most(parts), functions: most(functions), files: most(files) };
};

/** Shortens a URL to the path within its package: `src/…`, `effect/src/…`, `node:…`. */
const fileOf = (url: string): string =>
  url.includes("node_modules/")
    ? url.replace(/^.*node_modules\//, "")
    : url.replace(/^file:\/\/.*?\/(?=(src|scripts|dist)\/)/, "");

const most = (spent: ReadonlyMap<string, number>): ReadonlyArray<Spent> =>
  [...spent].map(([where, us]) => ({ where, us })).toSorted((a, b) => b.us - a.us);

/** Formats a list: share of the total time, and microseconds per unit of the load. */
export const listing = (title: string, spent: ReadonlyArray<Spent>, units: number, rows: number): string => {
  const all = spent.reduce((sum, { us }) => sum + us, 0);
  return [
    `${title}: ${(all / units).toFixed(1)} µs a unit`,
    ...spent
      .slice(0, rows)
      .map(
        ({ us, where }) =>
          `${((100 * us) / all).toFixed(1).padStart(5)} %  ${(us / units).toFixed(2).padStart(8)} µs  ${where}`,
      ),
  ].join("\n");
};

const burst: Burst = { play: "burst", streams: 1500, events: 20, concurrent: 16 };

/** Profiles the first gateway that the options select, with paced streams and with bursts, into files of a folder. */
export const profile = async (
  protocol: Protocol,
  upstream: string,
  options: Options,
  folder: string,
): Promise<void> => {
  const [setting] = settingsOf(protocol, options);
  if (setting === undefined) throw new Error("no gateway to profile");
  const contender = await gateway(nameOf(setting), upstream, setting.store, flagsOf(setting, options));
  await warmUp(contender, protocol);
  const paced = { streams: options.streams[0] ?? 50, events: options.events, everyMs: 20 };
  const loads = [
    { name: "paced", units: paced.streams * paced.events, play: () => playPaced(contender, protocol, paced) },
    { name: "burst", units: burst.streams, play: () => playBurst(contender, protocol, burst) },
  ];
  for (const load of loads) {
    const file = join(folder, `${protocol}-${setting.reveal}-${setting.store}-${load.name}.cpuprofile`);
    await contender.probe?.({ ask: "profile" });
    await load.play();
    await contender.probe?.({ ask: "profiled", file });
    // Written by the contender's inspector in this format.
    const { files, functions, parts } = selfTimes(JSON.parse(readFileSync(file, "utf8")) as CpuProfile);
    console.log(`\n${contender.name}, ${protocol}, ${load.name}: ${file}\n`);
    console.log(listing("by part", parts, load.units, 20));
    console.log(`\n${listing("by file", files, load.units, 30)}`);
    console.log(`\n${listing("by function", functions, load.units, 45)}`);
  }
  await contender.end();
};
