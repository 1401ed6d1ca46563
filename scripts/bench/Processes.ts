/**
 * Runs measurements in separate Node processes, one after another.
 */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { MeasurementName, Measurements } from "./Measurements.ts";

/** A child process returned no result. Its output is on stderr. */
export class MeasurementFailed extends Error {}

const entry = fileURLToPath(new URL("./index.ts", import.meta.url));

/** Measures once in a fresh process. */
export const once = async <N extends MeasurementName>(
  name: N,
  size: Measurements[N]["size"],
): Promise<Measurements[N]["result"]> => {
  const args = ["--expose-gc", "--no-warnings", entry, "--measure", name, JSON.stringify(size)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  const [said, code] = await Promise.all([text(child.stdout), ended]);
  const line = said.trim().split("\n").at(-1) ?? "";
  if (code !== 0) throw new MeasurementFailed(`${name} ended with code ${code}: ${JSON.stringify(size)}`);
  // Safe: the child printed the result of the measurement with this name.
  return JSON.parse(line) as Measurements[N]["result"];
};

/** Measures in several fresh processes, one after another. */
export const several = async <N extends MeasurementName>(
  processes: number,
  name: N,
  size: Measurements[N]["size"],
): Promise<ReadonlyArray<Measurements[N]["result"]>> => {
  const results: Array<Measurements[N]["result"]> = [];
  for (let process = 0; process < processes; process += 1) results.push(await once(name, size));
  return results;
};
