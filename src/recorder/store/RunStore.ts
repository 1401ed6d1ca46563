/**
 * Opens a store by name: a SQLite file, a PostgreSQL database by its address, or this process's memory.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as PostgresAddress from "../postgres/PostgresAddress.ts";
import { RecorderError } from "../RecorderError.ts";
import { RunRecorder } from "../RunRecorder.ts";
import { type SqlFileOptions, SqlRunRecorder } from "../sql/SqlRunRecorder.ts";
import * as SqlFile from "../sql/sqlite/SqlFile.ts";

/** Name of the in-memory store, which ends with its process. A file with that name is `./memory`. */
export const inMemory = "memory";

/** True if the name is the address of a server. */
export const isServer = (name: string): boolean => PostgresAddress.isAddress(name);

/**
 * Returns the reason why a name is not a valid store. Unsupported addresses are refused, because SQLite would create a file of that name.
 * An address may contain a password, so the message has only its scheme.
 *
 * @returns undefined for a file, a `file:` URI of SQLite, and an address of PostgreSQL
 */
export const findProblem = (name: string): string | undefined => {
  if (isServer(name)) {
    const address = PostgresAddress.parse(name);
    return address instanceof RecorderError ? address.message : undefined;
  }
  return SqlFile.findProblem(name, "a file, memory or postgres://…");
};

/** The PostgreSQL module. It depends on an optional package, so it is loaded on demand. */
type Loaded = Pick<typeof import("../postgres/PostgresRunRecorder.ts"), "PostgresRunRecorder">;

/**
 * Provides the recorder over the store of a given name.
 *
 * Fails if the name is not a valid store. Messages call the name `db`.
 *
 * @param options.file a path, `file:`, an address of PostgreSQL, or `memory`; see `problem`
 */
export const layer = (
  options: SqlFileOptions & { readonly file: string },
  load: () => Promise<Loaded> = () => import("../postgres/PostgresRunRecorder.ts"),
): Layer.Layer<RunRecorder, RecorderError> => {
  const wrong = findProblem(options.file);
  if (wrong !== undefined) return Layer.effect(RunRecorder, Effect.fail(badName(wrong)));
  if (options.file === inMemory) return RunRecorder.layerMemory();
  if (!isServer(options.file)) return SqlRunRecorder.layerFile(options);
  const { file: address, synchronous: _, ...rest } = options;
  return Layer.unwrap(
    Effect.map(Effect.tryPromise({ try: load, catch: notLoadedError }), ({ PostgresRunRecorder }) =>
      PostgresRunRecorder.layer({ ...rest, address }),
    ),
  );
};

const badName = (why: string): RecorderError =>
  new RecorderError({ reason: "bad_option", run_id: "", message: `db: ${why}` });

const notLoadedError = (cause: unknown): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message:
      "a store on PostgreSQL needs the package @effect/sql-pg, which could not be loaded. Run npm install @effect/sql-pg",
    cause,
  });
