/**
 * Isolates the agents, the gateway and the provider from the network: they run with loopback only.
 */
import { spawnSync } from "node:child_process";
import { networkInterfaces } from "node:os";

/** The means that keep the agents off the network. */
export type Isolation = "namespace" | "proxies";

/** Environment variable that marks the process inside the namespace. */
const inside = "STREAM_RECOVERY_AGENTS_INSIDE";

/** True if `enterNamespace` started this program in the namespace. */
export const isInside = (): boolean => process.env[inside] !== undefined;

/** Brings up loopback in the new namespace and executes the given command. */
const enter = 'ip link set lo up && exec "$@"';

/**
 * Restarts the program in its own network namespace, if Linux permits one.
 *
 * @returns the exit code of the restarted program; undefined if this process must do the work, inside or without a namespace
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

/** The isolation of this program. */
export const isolation = (): Isolation => {
  const others = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ internal }) => !internal));
  return process.env[inside] === "namespace" && !others ? "namespace" : "proxies";
};

/** The environment without a namespace: non-existent proxies for everything but loopback. */
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
