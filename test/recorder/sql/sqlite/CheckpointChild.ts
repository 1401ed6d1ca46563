/**
 * A separate process that commits rows to a file until it must close, and reports how many are on record.
 */
import { Effect, ManagedRuntime } from "effect";
import { SqlClient } from "effect/sql/SqlClient";
import * as SqlNodeSqlite from "../../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";

const [file = "", name = ""] = process.argv.slice(2);

/** Rows per turn of the event loop, each in a separate commit. */
const rowsInTurn = 16;

const runtime = ManagedRuntime.make(SqlNodeSqlite.layerOfStore({ file, synchronous: "normal" }));
const sql = await runtime.runPromise(SqlClient);
const step = SqlNodeSqlite.stepOf(sql);
// The first statement opens the connection.
await runtime.runPromise(sql`SELECT 1`);

let [row, isClosing] = [0, false];
process.on("message", () => {
  isClosing = true;
});

const body = "x".repeat(5_000);

const turn = (): void => {
  const before = row;
  for (let n = 0; n < rowsInTurn; n += 1) {
    const made = step?.([["INSERT INTO t VALUES (?, ?, ?)", [name, row, body]]]);
    // Another process commits at this moment.
    if (made === "locked") break;
    if (made !== true) throw new Error("a row was not taken");
    row += 1;
  }
  if (row > before) process.send?.({ rows: row });
  if (isClosing) void closed();
  else setImmediate(turn);
};

const closed = async (): Promise<void> => {
  await Effect.runPromise(runtime.disposeEffect);
  process.disconnect();
};

turn();
