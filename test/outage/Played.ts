/**
 * Starts a scenario of World.ts in a network namespace of its own, where Linux gives one.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** What was seen of a scenario. Times are milliseconds. */
export interface Seen {
  readonly status: number;
  /** The client has the whole answer. */
  readonly whole: boolean;
  /** Requests that the provider saw for it. */
  readonly requests: number;
  /** Each break that the gateway found: by which code, and how long behind the last byte. */
  readonly feltMs: ReadonlyArray<{ readonly code: string; readonly ms: number }>;
  /** Requests that the provider saw since all was well again: how long behind that. */
  readonly nextMs: ReadonlyArray<number>;
}

const flags = process.getuid?.() === 0 ? ["--net"] : ["--map-root-user", "--net"];

/** What a scenario needs of the machine: namespaces, cables and buckets. */
const needs =
  "ip link set lo up && ip link add a type veth peer name b && tc qdisc add dev a root tbf rate 8bit burst 1 limit 1 && command -v nsenter ss";

/** Whether this machine can play one. */
export const canPlay: boolean =
  process.platform === "linux" && spawnSync("unshare", [...flags, "sh", "-c", needs], { stdio: "ignore" }).status === 0;

/** Plays a scenario. */
export const played = async (scenario: string): Promise<Seen> => {
  const world = fileURLToPath(new URL("./World.ts", import.meta.url));
  const child = spawn(
    "unshare",
    [...flags, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", process.execPath, "--no-warnings", world, scenario],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await once(child, "close");
  // World.ts has written it.
  return JSON.parse(said.trim().split("\n").at(-1) ?? "null") as Seen;
};
