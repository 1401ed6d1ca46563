/**
 * Keeps the delivery log in the database of the runs, over connections of its own: what clients are sent again never holds up a record.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import { DeliveryStore } from "../delivery/DeliveryStore.ts";
import * as SqlDeliveryStore from "../delivery/SqlDeliveryStore.ts";
import { RecorderError } from "../RecorderError.ts";
import { RunRecorder } from "../RunRecorder.ts";
import * as SqlTables from "../sql/SqlTables.ts";
import * as PostgresAddress from "./PostgresAddress.ts";
import * as PostgresClient from "./PostgresClient.ts";
import type { PostgresOptions } from "./PostgresRunRecorder.ts";

/** Connections of a process for the delivery log. */
const connections = 3;

/** Longest wait for a lock, in milliseconds: two processes write the same row only where a client comes back. */
const lockMs = 2_000;

/**
 * The layer of DeliveryStore.
 *
 * @param options as the recorder's, which makes the tables
 */
export const layer = (
  options: Pick<PostgresOptions, "address" | "password" | "place" | "prefix">,
): Layer.Layer<DeliveryStore, RecorderError, RunRecorder> => Layer.effect(DeliveryStore, opened(options));

const opened = Effect.fnUntraced(function* (
  options: Pick<PostgresOptions, "address" | "password" | "place" | "prefix">,
): Effect.fn.Return<DeliveryStore["Service"], RecorderError, RunRecorder | Scope.Scope> {
  const address = PostgresAddress.parse(options.address);
  if (address instanceof RecorderError) return yield* address;
  const password = options.password ?? PostgresClient.passwordOf(process.env);
  const sockets = new PostgresClient.Sockets();
  const sql = yield* PostgresClient.make({
    ...{ address, connections, lockMs, password, sockets },
    name: "stream-recovery deliveries",
  });
  // What is still under way by then has no reader: a server that does not answer would hold up the shutdown.
  yield* Effect.addFinalizer(() => Effect.sync(() => sockets.end()));
  // Every gateway over this store makes it of the store's own key.
  const secret = yield* (yield* RunRecorder).digest("the delivery log of a gateway");
  const tables = SqlTables.make(sql, options.prefix ?? address.prefix ?? SqlTables.prefixDefault);
  return SqlDeliveryStore.make(tables, options.place ?? PostgresAddress.placeOf(address), secret);
});
