/**
 * Creates databases for tests of the PostgreSQL recorder, and recorders over them.
 */
import { Context, Effect, Layer, type Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { inject } from "vitest";
import * as PostgresAddress from "../../../src/recorder/postgres/PostgresAddress.ts";
import * as PostgresClient from "../../../src/recorder/postgres/PostgresClient.ts";
import { type PostgresOptions, PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { Recorder } from "../suite/Bench.ts";

let made = 0;

/** The address of a database on the suite's server. */
export const addressOf = (database: string): string =>
  `postgres:///${database}?user=postgres&host=${encodeURIComponent(inject("postgresSocket"))}`;

/** A separate client, like that of another program. */
export const client = (address: string, name = "test"): Effect.Effect<SqlClient, RecorderError, Scope.Scope> => {
  const parsed = PostgresAddress.parse(address);
  if (parsed instanceof RecorderError) return Effect.fail(parsed);
  return PostgresClient.make({ address: parsed, password: undefined, connections: 4, lockMs: 5_000, name });
};

/** The address of an empty schema. To a recorder it is like a database, and creating it is much faster. */
export const empty: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function* () {
  made += 1;
  const name = `t${process.pid}_${made}`;
  const admin = yield* client(addressOf("postgres"));
  yield* Effect.acquireRelease(admin`CREATE SCHEMA ${admin(name)}`, () =>
    Effect.ignore(admin`DROP SCHEMA IF EXISTS ${admin(name)} CASCADE`),
  );
  return `${addressOf("postgres")}&schema=${name}`;
}).pipe(Effect.orDie);

/** A separate recorder, like that of another process. */
export const open = (options: PostgresOptions): Effect.Effect<Recorder, RecorderError, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(PostgresRunRecorder.layer({ retention: false, ...options }))), (it) =>
    Context.get(it, RunRecorder),
  );

/** The schema of an address made by `empty`. */
export const schemaOf = (address: string): string => new URL(address).searchParams.get("schema") ?? "public";
