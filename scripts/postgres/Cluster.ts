/**
 * Starts and stops a private PostgreSQL server in a temporary folder, without a port or a password and independent of the machine's
 * own server.
 *
 * PostgreSQL refuses to run as root. If this process is root, the server runs as `postgres`, the user that Debian's package creates.
 */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A running server. */
export interface Cluster {
  /** The folder of its Unix socket. */
  readonly socket: string;
  /** Returns the address of one of its databases. */
  readonly address: (database: string) => string;
  /** Runs SQL with psql and returns its output. */
  readonly psql: (database: string, sql: string) => string;
  /** Runs SQL like `psql`, but asynchronously. */
  readonly query: (database: string, sql: string) => Promise<string>;
  /** Returns the process id of its postmaster. */
  readonly pid: () => number;
  /** Stops the server in a mode of `pg_ctl`; `start` starts it again. */
  readonly stop: (mode: "fast" | "immediate") => void;
  readonly start: () => void;
  /** Stops and starts it asynchronously. */
  readonly restart: (mode: "fast" | "immediate") => Promise<void>;
  /** Stops it and removes its folder. */
  readonly remove: () => void;
}

const debianFolder = "/usr/lib/postgresql";

/** The user that Debian's package creates. */
const serverUser = "postgres";

/** The port, which is also a part of the socket's name. */
const portDefault = 5432;

const superuser = "postgres";

/** Settings of the server. A test's data need not survive a crash of the machine. */
const settings = [
  ...["fsync=off", "max_connections=200", "shared_buffers=32MB", "log_min_messages=fatal"],
  // The default before PostgreSQL 14 is md5, but pg_hba.conf here requires SCRAM.
  "password_encryption=scram-sha-256",
];

/** Finds the folder of the newest PostgreSQL on this machine; undefined if there is none. */
export const programs = (): string | undefined => {
  const named = process.env.POSTGRES_BIN;
  if (named !== undefined && named !== "") return named;
  if (existsSync(debianFolder)) {
    const versions = readdirSync(debianFolder).sort((a, b) => Number(b) - Number(a));
    const found = versions.map((version) => join(debianFolder, version, "bin"));
    const complete = found.find((folder) => existsSync(join(folder, "initdb")));
    if (complete !== undefined) return complete;
  }
  const onPath = (process.env.PATH ?? "").split(":").find((folder) => existsSync(join(folder, "initdb")));
  return onPath;
};

/**
 * Installs Debian's package, if this process is root.
 *
 * @returns true if PostgreSQL is available now
 */
export const install = (): boolean => {
  if (process.getuid?.() !== 0) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args: ReadonlyArray<string>) => spawnSync("apt-get", args, { env, stdio: "ignore" }).status === 0;
  return (
    run("update", "-qq") && run("install", "-qqy", "--no-install-recommends", "postgresql") && programs() !== undefined
  );
};

/** Options of a server that also listens on a local port, with TLS and password authentication. */
export interface Listening {
  readonly port: number;
  /** Certificate and key of the server, as PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Roles that authenticate with a client certificate instead, and the CA that signs it, as PEM. */
  readonly certified?: { readonly roles: ReadonlyArray<string>; readonly root: string };
}

const accessOf = ({ certified }: Listening): string =>
  [
    "local all all trust",
    ...(certified?.roles ?? []).map((role) => `hostssl all ${role} all cert`),
    "host all all all scram-sha-256\n",
  ].join("\n");

/**
 * Creates a server and starts it.
 *
 * @param folder the folder of PostgreSQL's programs
 * @param listening adds a TCP port; without it, the server has only its Unix socket
 * @param more additional settings, as `name=value`
 * @param base a base backup to start from; without it, the server is empty
 */
export const make = (
  folder: string,
  listening?: Listening,
  more: ReadonlyArray<string> = [],
  base?: string,
): Cluster => {
  const root = mkdtempSync(join(tmpdir(), "recorder-pg-"));
  const data = join(root, "data");
  const isRoot = process.getuid?.() === 0;
  const own = (path: string) => {
    if (!isRoot) return;
    const id = (flag: string) => Number(execFileSync("id", [flag, serverUser], { encoding: "utf8" }));
    chownSync(path, id("-u"), id("-g"));
  };
  const write = (name: string, content: string): string => {
    const path = join(root, name);
    writeFileSync(path, content, { mode: 0o600 });
    own(path);
    return path;
  };
  own(root);
  const commandOf = (program: string, args: ReadonlyArray<string>): readonly [string, ReadonlyArray<string>] => {
    const path = join(folder, program);
    return isRoot ? ["runuser", ["-u", serverUser, "--", path, ...args]] : [path, args];
  };
  const run = (program: string, ...args: ReadonlyArray<string>): string => {
    const [command, all] = commandOf(program, args);
    return execFileSync(command, all, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  };
  if (base === undefined)
    run("initdb", "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync");
  else {
    execFileSync("cp", ["-a", base, data]);
    if (isRoot) execFileSync("chown", ["-R", `${serverUser}:`, data]);
    chmodSync(data, 0o700);
  }
  const listens =
    listening === undefined
      ? ["listen_addresses=''"]
      : [
          `listen_addresses='127.0.0.1,127.0.0.2'`,
          `port=${listening.port}`,
          "ssl=on",
          `ssl_cert_file='${write("server.pem", listening.certificate)}'`,
          `ssl_key_file='${write("server.key", listening.key)}'`,
          ...(listening.certified === undefined
            ? []
            : [`ssl_ca_file='${write("roles.pem", listening.certified.root)}'`]),
          `hba_file='${write("hba.conf", accessOf(listening))}'`,
        ];
  const options = [...settings, ...listens, ...more, `unix_socket_directories='${root}'`]
    .map((setting) => `-c ${setting}`)
    .join(" ");
  const runMeanwhile = async (program: string, args: ReadonlyArray<string>): Promise<string> => {
    const [command, all] = commandOf(program, args);
    const { stdout } = await promisify(execFile)(command, all, {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout.trim();
  };
  // Its output goes to a file, because the server would keep an inherited pipe open and `run` would never return.
  const starting = ["-D", data, "-w", "-l", join(root, "log"), "-o", options];
  const start = () => void run("pg_ctl", ...starting, "start");
  const stop = (mode: string) => void run("pg_ctl", "-D", data, "-w", "-m", mode, "stop");
  start();
  const port = listening?.port ?? portDefault;
  const asking = (database: string, sql: string): ReadonlyArray<string> => [
    ...["-h", root, "-p", String(port), "-U", superuser, "-d", database, "-qAt", "-v", "ON_ERROR_STOP=1", "-c", sql],
  ];
  return {
    socket: root,
    address: (database) => `postgres:///${database}?user=${superuser}&host=${encodeURIComponent(root)}&port=${port}`,
    psql: (database, sql) => run("psql", ...asking(database, sql)).trim(),
    query: (database, sql) => runMeanwhile("psql", asking(database, sql)),
    pid: () => Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]),
    stop,
    start,
    restart: async (mode) => void (await runMeanwhile("pg_ctl", [...starting, "-m", mode, "restart"])),
    remove: () => {
      try {
        stop("immediate");
      } catch {
        // It has already stopped.
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
};
