/**
 * Opens the store that a name means: a SQLite file, or a PostgreSQL database by its address.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { DeliveryStore } from "../delivery/DeliveryStore.ts";
import * as PostgresAddress from "../postgres/PostgresAddress.ts";
import { RecorderError } from "../RecorderError.ts";
import type { RunRecorder } from "../RunRecorder.ts";
import { type SqlFileOptions, SqlRunRecorder } from "../sql/SqlRunRecorder.ts";

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
  if (/^\s+[a-z][a-z\d+.-]+:/i.test(name)) return "expected a name of a store without blanks in front of it";
  // One letter is a drive of Windows.
  const scheme = (/^([a-z][a-z\d+.-]+):\/\//i.exec(name) ?? /^(jdbc|sqlite|mysql|mariadb|libsql):/i.exec(name))?.[1];
  return scheme === undefined || scheme.toLowerCase() === "file"
    ? undefined
    : `expected a file, memory or postgres://…, got an address that begins with ${scheme}:`;
};

/** What speaks PostgreSQL. It stands on a package that nothing else needs, so it is loaded when it is asked for. */
type Loaded = Pick<typeof import("../postgres/PostgresRunRecorder.ts"), "PostgresRunRecorder">;

/**
 * The recorder over a store.
 *
 * @param options.file a path, `file:` or an address of PostgreSQL; see `problem`
 * @param load loads what speaks PostgreSQL
 */
export const layer = (
  options: SqlFileOptions & { readonly file: string },
  load: () => Promise<Loaded> = () => import("../postgres/PostgresRunRecorder.ts"),
): Layer.Layer<RunRecorder, RecorderError> => {
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

const notLoaded = (cause: unknown): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message:
      "a store on PostgreSQL needs the package @effect/sql-pg, which could not be loaded: npm install @effect/sql-pg",
    cause,
  });
