/**
 * Starts a scenario of World.ts in a separate network namespace, if Linux provides one.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Seen } from "../../scripts/outage/machines/Seen.ts";

const flags = process.getuid?.() === 0 ? ["--net"] : ["--map-root-user", "--net"];

/** The machine's features that a scenario needs: namespaces, cables and buckets. */
const needs =
  "ip link set lo up && ip link add a type veth peer name b && tc qdisc add dev a root tbf rate 8bit burst 1 limit 1 && command -v nsenter ss";

/** Returns true if this machine can play a scenario. */
export const canPlay: boolean =
  process.platform === "linux" && spawnSync("unshare", [...flags, "sh", "-c", needs], { stdio: "ignore" }).status === 0;

/** Plays a scenario. */
export const played = async (scenario: string): Promise<Seen> => {
  const world = fileURLToPath(new URL("../../scripts/outage/machines/World.ts", import.meta.url));
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
