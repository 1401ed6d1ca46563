/**
 * Opens the store that a name means: a SQLite file, a PostgreSQL database by its address, or this process's memory.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { DeliveryStore } from "../delivery/DeliveryStore.ts";
import * as PostgresAddress from "../postgres/PostgresAddress.ts";
import { RecorderError } from "../RecorderError.ts";
import { RunRecorder } from "../RunRecorder.ts";
import { type SqlFileOptions, SqlRunRecorder } from "../sql/SqlRunRecorder.ts";
import * as SqlFile from "../sql/sqlite/SqlFile.ts";

/** The name of a store that ends with its process. A file of that name is `./memory`. */
export const inMemory = "memory";

/** Whether the name is the address of a server, and of no file. */
export const isServer = (name: string): boolean => PostgresAddress.isAddress(name);

/**
 * Says why a name is none of a store, where it is an address: SQLite would make a file of that name. An address may hold a
 * password, so only its scheme is told.
 *
 * @returns undefined for a file, SQLite's own `file:` addresses, and an address of PostgreSQL
 */
export const problem = (name: string): string | undefined => {
  if (isServer(name)) {
    const address = PostgresAddress.parse(name);
    return address instanceof RecorderError ? address.message : undefined;
  }
  return SqlFile.problem(name, "a file, memory or postgres://…");
};

/** What speaks PostgreSQL. It stands on a package that nothing else needs, so it is loaded when it is asked for. */
type Loaded = Pick<typeof import("../postgres/PostgresRunRecorder.ts"), "PostgresRunRecorder">;

/**
 * The recorder over a store.
 *
 * Fails where the name is none of a store: whoever embeds this calls it `db`.
 *
 * @param options.file a path, `file:`, an address of PostgreSQL, or `memory`; see `problem`
 * @param load loads what speaks PostgreSQL
 */
export const layer = (
  options: SqlFileOptions & { readonly file: string },
  load: () => Promise<Loaded> = () => import("../postgres/PostgresRunRecorder.ts"),
): Layer.Layer<RunRecorder, RecorderError> => {
  const wrong = problem(options.file);
  if (wrong !== undefined) return Layer.effect(RunRecorder, Effect.fail(badName(wrong)));
  if (options.file === inMemory) return RunRecorder.layerMemory();
  if (!isServer(options.file)) return SqlRunRecorder.layerFile(options);
  const { file: address, synchronous: _, ...rest } = options;
  return Layer.unwrap(
    Effect.map(Effect.tryPromise({ try: load, catch: notLoaded }), ({ PostgresRunRecorder }) =>
      PostgresRunRecorder.layer({ ...rest, address }),
    ),
  );
};

/** The delivery log beside the runs of a server; its tables are those that the recorder makes. */
export const deliveries = (address: string): Layer.Layer<DeliveryStore, RecorderError, RunRecorder> =>
  Layer.unwrap(
    Effect.map(
      Effect.tryPromise({ try: () => import("../postgres/PostgresDeliveries.ts"), catch: notLoaded }),
      ({ layer: made }) => made({ address }),
    ),
  );

const badName = (why: string): RecorderError =>
  new RecorderError({ reason: "bad_option", run_id: "", message: `db: ${why}` });

const notLoaded = (cause: unknown): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message:
      "a store on PostgreSQL needs the package @effect/sql-pg, which could not be loaded: npm install @effect/sql-pg",
    cause,
  });
