/**
 * Runs a program next to a network that it can cut: a second namespace, joined by one link that silently drops packets when its
 * address is taken away.
 */
import { spawn, spawnSync } from "node:child_process";

/** Returns true if this machine lets a test create network namespaces. */
export const hasNamespaces = (): boolean =>
  process.platform === "linux" &&
  ["ip", "nsenter", "unshare"].every((tool) => spawnSync(tool, ["-V"], { stdio: "ignore" }).error === undefined) &&
  spawnSync("unshare", [...flags, "sh", "-c", "ip link add v0 type veth peer name v1"], { stdio: "ignore" }).status ===
    0;

const flags = ["--map-root-user", "--net"];

/** Addresses of the near and the far side. */
const near = "10.99.0.1";
export const far = "10.99.0.2";

/**
 * Joins two namespaces, and becomes the program in the near one. The near side has a permanent neighbour entry for the far side:
 * without it the loss of the far side would show as a failed lookup, and no packet would be sent.
 */
const setup = `
set -e
exec 3<&0
ip link set lo up
unshare --net sleep 600 & far=$!
trap 'kill $far' EXIT
while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do :; done
ip link add v0 type veth peer name v1
ip link set v1 netns $far
nsenter -t $far -n sh -c 'ip link set lo up; ip addr add ${far}/24 dev v1; ip link set v1 up'
ip addr add ${near}/24 dev v0
ip link set v0 up
ip neigh replace ${far} lladdr "$(nsenter -t $far -n cat /proc/net/arp >/dev/null; nsenter -t $far -n ip -o link show v1 | sed 's/.*ether \\([0-9a-f:]*\\).*/\\1/')" dev v0 nud permanent
FAR_SIDE=$far "$@" <&3 & program=$!
wait $program
`;

/**
 * Runs a program on the near side to its end, and returns the lines of JSON that it printed.
 *
 * @param program file and arguments
 */
export const played = (program: ReadonlyArray<string>, timeout: number): Promise<ReadonlyArray<unknown>> =>
  new Promise((resolve, reject) => {
    const child = spawn("unshare", [...flags, "sh", "-c", setup, "sh", process.execPath, "--no-warnings", ...program], {
      // A separate process group, so that all of the program's children end with it.
      detached: true,
      stdio: ["pipe", "pipe", "inherit"],
      timeout,
      killSignal: "SIGKILL",
    });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.on("exit", (code) => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // The group has already ended.
      }
      if (code !== 0) reject(new Error(`the program ended with ${code}: ${out}`));
    });
    child.on("close", (code) => {
      if (code === 0)
        resolve(
          out
            .trim()
            .split("\n")
            .map((line): unknown => JSON.parse(line)),
        );
    });
  });

/** Ends this program with its parent. */
export const dieWithParent = (): void => {
  process.stdin.on("end", () => process.exit(1)).resume();
};

/** The link as the program on the near side uses it. */
export const link = () => {
  const side = process.env.FAR_SIDE ?? "";
  const ip = (...args: ReadonlyArray<string>): void => {
    const done = spawnSync("ip", args);
    if (done.status !== 0) throw new Error(`ip ${args.join(" ")}: ${done.stderr.toString()}`);
  };
  const farIp = (...args: ReadonlyArray<string>): void => {
    const done = spawnSync("nsenter", ["-t", side, "-n", "ip", ...args]);
    if (done.status !== 0) throw new Error(`far ip ${args.join(" ")}: ${done.stderr.toString()}`);
  };
  return {
    /** Starts a program on the far side, and waits until it has printed the given number of lines. */
    start: (program: string, lines: number): Promise<() => void> =>
      new Promise((resolve) => {
        const args = ["-t", side, "-n", process.execPath, "--no-warnings", program];
        const child = spawn("nsenter", args, { stdio: ["pipe", "pipe", "inherit"] });
        let seen = 0;
        child.stdout.setEncoding("utf8").on("data", (text: string) => {
          seen += text.split("\n").length - 1;
          if (seen >= lines) resolve(() => child.kill());
        });
      }),
    /** Silently drops every packet in both directions. */
    drop: () => farIp("addr", "del", `${far}/24`, "dev", "v1"),
    heal: () => farIp("addr", "add", `${far}/24`, "dev", "v1"),
    /** Takes the near side's link down. */
    unplug: () => ip("link", "set", "v0", "down"),
    plug: () => {
      ip("link", "set", "v0", "up");
    },
    /** Deletes the neighbour entry of the far side, so its address resolves to no host. */
    forget: () => ip("neigh", "del", far, "dev", "v0"),
  };
};
