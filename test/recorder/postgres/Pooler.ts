/**
 * Starts a minimal PgBouncer in front of the suite's server, on a Unix socket in a temporary folder.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, type Scope } from "effect";
import * as Databases from "./Databases.ts";

/** Neither PgBouncer nor PostgreSQL runs as root. */
const user = "postgres";

/** The port, which is part of the socket's name. */
const port = 6_432;

/** The recorder's startup parameters, which a pooler must accept or drop. */
export const startupParameters =
  "lock_timeout,statement_timeout,idle_in_transaction_session_timeout,enable_seqscan,jit,search_path";

/** The configuration line that drops them. */
export const ignoredParameters = `ignore_startup_parameters = ${startupParameters}`;

/** Path of the program; undefined if this machine has none and it cannot be installed. */
export const program = (): string | undefined => {
  const found = () => ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((path) => existsSync(path));
  if (found() === undefined && process.getuid?.() === 0) {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    spawnSync("apt-get", ["install", "-qqy", "--no-install-recommends", "pgbouncer"], { env, stdio: "ignore" });
  }
  return found();
};

/** Options of a pooler. */
export interface PoolerOptions {
  readonly mode: "session" | "transaction" | "statement";
  /** The folder of the server's Unix socket. */
  readonly server: string;
  /** Additional configuration lines. */
  readonly more?: ReadonlyArray<string>;
}

/** Starts a pooler that ends with the scope; returns the folder of its socket and its port. */
export const start = (options: PoolerOptions): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => started(options)),
      ({ child, folder }) =>
        Effect.promise(async () => {
          const exited = child.exitCode === null ? once(child, "exit") : undefined;
          child.kill("SIGKILL");
          await exited;
          rmSync(folder, { recursive: true, force: true });
        }),
    ),
    ({ folder }) => `host=${encodeURIComponent(folder)}&port=${port}`,
  );

const started = async ({ mode, more = [], server }: PoolerOptions) => {
  const path = program();
  if (path === undefined) throw new Error("this test needs PgBouncer");
  const folder = mkdtempSync(join(tmpdir(), "recorder-pool-"));
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(join(folder, "users.txt"), '"postgres" ""\n"gateway" ""\n');
  writeFileSync(
    config,
    [
      "[databases]",
      `* = host=${server}`,
      "[pgbouncer]",
      "listen_addr =",
      `unix_socket_dir = ${folder}`,
      `listen_port = ${port}`,
      "auth_type = trust",
      `auth_file = ${join(folder, "users.txt")}`,
      `pool_mode = ${mode}`,
      ...(more.some((line) => line.startsWith("default_pool_size")) ? [] : ["default_pool_size = 20"]),
      ...more,
    ].join("\n"),
  );
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    const id = (flag: string) => Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
    for (const name of ["", "users.txt", "pgbouncer.ini"]) chownSync(join(folder, name), id("-u"), id("-g"));
  }
  // PgBouncer drops root by itself if it is given a user.
  const child = spawn(path, ["-q", ...(isRoot ? ["-u", user] : []), config], { stdio: "ignore" });
  await listening(child, join(folder, `.s.PGSQL.${port}`));
  return { child, folder };
};

const listening = async (child: ChildProcess, path: string): Promise<void> => {
  while (child.exitCode === null) {
    const answers = await new Promise<boolean>((resolve) => {
      const socket = connect(path, () => resolve(true)).on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (answers) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("PgBouncer does not start");
};

let made = 0;

/** Settings of the role, as in docs/postgres.md. */
export const kept: Readonly<Record<string, string>> = {
  lock_timeout: "5s",
  statement_timeout: "15s",
  idle_in_transaction_session_timeout: "10s",
  jit: "off",
};

/**
 * The address of a new database behind a pooler, with the role's own settings in it: a pooler drops those that a connection starts
 * with.
 */
export const database = Effect.fnUntraced(function* (
  mode: PoolerOptions["mode"],
  server: string,
  more: ReadonlyArray<string>,
  settings = kept,
) {
  const pool = yield* start({ mode, server, more });
  const admin = yield* Databases.client(Databases.addressOf("postgres"), "operator");
  made += 1;
  const name = `pool${process.pid}_${made}`;
  yield* admin.unsafe(`CREATE DATABASE ${name}`);
  yield* Effect.addFinalizer(() => Effect.ignore(admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)));
  for (const [key, value] of Object.entries(settings)) {
    yield* admin.unsafe(`ALTER ROLE postgres IN DATABASE ${name} SET ${key} = '${value}'`);
  }
  return `postgres:///${name}?user=postgres&${pool}`;
}, Effect.orDie);
