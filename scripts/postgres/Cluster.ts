/**
 * Starts a PostgreSQL of its own in a temporary folder, and stops it: no port, no password, nothing of the machine's own server.
 *
 * PostgreSQL refuses to run as root. Where this process is root the server runs as `postgres`, the user that Debian's package
 * makes.
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
  /** The address of a database of it. */
  readonly address: (database: string) => string;
  /** Runs SQL with its own client, and gives what that prints. */
  readonly psql: (database: string, sql: string) => string;
  /** The same, while this process does other things. */
  readonly query: (database: string, sql: string) => Promise<string>;
  /** The process that has started all others of it. */
  readonly pid: () => number;
  /** Stops it as `pg_ctl` calls it, and starts it again. */
  readonly stop: (mode: "fast" | "immediate") => void;
  readonly start: () => void;
  /** The same, one after the other, while this process does other things. */
  readonly restart: (mode: "fast" | "immediate") => Promise<void>;
  /** Stops it and removes its folder. */
  readonly remove: () => void;
}

/** Where Debian keeps each version's programs. */
const debianFolder = "/usr/lib/postgresql";

/** The user whom Debian's package makes. */
const serverUser = "postgres";

/** Its port, which is a part of its socket's name too. */
const portDefault = 5432;

/** Its role that may do anything. */
const superuser = "postgres";

/** What the server is told: a test's data need not outlive the machine, and nothing listens on a port. */
const settings = [
  ...["fsync=off", "max_connections=200", "shared_buffers=32MB", "log_min_messages=fatal"],
  // Below PostgreSQL 14 a password is kept otherwise than its clients are asked for it here.
  "password_encryption=scram-sha-256",
];

/** The folder of the newest PostgreSQL of this machine; undefined where there is none. */
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
 * Installs Debian's package, where this is root on a Debian.
 *
 * @returns whether it is there now
 */
export const install = (): boolean => {
  if (process.getuid?.() !== 0) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args: ReadonlyArray<string>) => spawnSync("apt-get", args, { env, stdio: "ignore" }).status === 0;
  return (
    run("update", "-qq") && run("install", "-qqy", "--no-install-recommends", "postgresql") && programs() !== undefined
  );
};

/** What a server has besides: it listens on a port of this machine, with TLS, and asks there for a password. */
export interface Listening {
  readonly port: number;
  /** Certificate and key of the server, as PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Roles that are known by a certificate alone, and who signs those, as PEM. */
  readonly certified?: { readonly roles: ReadonlyArray<string>; readonly root: string };
}

const accessOf = ({ certified }: Listening): string =>
  [
    "local all all trust",
    ...(certified?.roles ?? []).map((role) => `hostssl all ${role} all cert`),
    "host all all all scram-sha-256\n",
  ].join("\n");

/**
 * Makes a server and starts it.
 *
 * @param folder where the programs are
 * @param listening left out, only its Unix socket is there
 * @param more further settings, as `name=value`
 * @param base a base backup that it begins with; left out, it is empty
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
  // Its output goes to a file: a pipe that it keeps open would never end.
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
        // It is down already.
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
};
