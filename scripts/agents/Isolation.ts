/**
 * Takes the network away: the agents, the gateway and the provider run where only loopback exists.
 */
import { spawnSync } from "node:child_process";
import { networkInterfaces } from "node:os";

/** What keeps the agents off the network. */
export type Isolation = "namespace" | "proxies";

/** Says to the program that it is inside. */
const inside = "STREAM_RECOVERY_AGENTS_INSIDE";

/** Whether the program was started in the namespace by `enterNamespace`. */
export const isInside = (): boolean => process.env[inside] !== undefined;

/** Brings loopback up in the new namespace and becomes the command behind it. */
const enter = 'ip link set lo up && exec "$@"';

/**
 * Starts the program once more in a network namespace of its own, where Linux gives one.
 *
 * @returns the exit code of that program; undefined where this one has to do the work, inside or without a namespace
 */
export const enterNamespace = (args: ReadonlyArray<string>): number | undefined => {
  if (isInside() || process.platform !== "linux") return undefined;
  const flags = process.getuid?.() === 0 ? ["--net"] : ["--map-root-user", "--net"];
  const shell = [...flags, "sh", "-c", enter, "sh"];
  if (spawnSync("unshare", [...shell, "true"], { stdio: "ignore" }).status !== 0) return undefined;
  const self = [process.execPath, "--no-warnings", ...args];
  const env = { ...process.env, [inside]: "namespace" };
  return spawnSync("unshare", [...shell, ...self], { stdio: "inherit", env }).status ?? 1;
};

/** How this program is kept off the network. */
export const isolation = (): Isolation => {
  const others = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ internal }) => !internal));
  return process.env[inside] === "namespace" && !others ? "namespace" : "proxies";
};

/** Without a namespace: proxies that do not exist, for everything but loopback. */
export const environmentOf = (kind: Isolation): Readonly<Record<string, string>> => {
  if (kind === "namespace") return {};
  const nowhere = "http://127.0.0.1:9";
  const local = "127.0.0.1,localhost";
  return {
    HTTP_PROXY: nowhere,
    HTTPS_PROXY: nowhere,
    ALL_PROXY: nowhere,
    NO_PROXY: local,
    http_proxy: nowhere,
    https_proxy: nowhere,
    all_proxy: nowhere,
    no_proxy: local,
  };
};
