/**
 * The one tool of the conversations: it books a seat. Its table has a row for each call, so the tool can say of a call whose node
 * died whether it happened, and no person has to be asked.
 */
import { Context, Effect, Layer, Schema } from "effect";
import { SqlClient } from "effect/sql";
import { type ReadyCall, ToolGuard } from "effect-stream-recovery";

const Input = Schema.Struct({ seat: Schema.String });
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Input));
const Booked = Schema.Struct({ attempt: Schema.Natural, call: Schema.String, seat: Schema.String });
const decodeBooked = Schema.decodeUnknownEffect(Schema.Array(Booked));

/** Creates a table. If two nodes create it at the same time, PostgreSQL refuses one of them, which tries again. */
export const create = <A, E, R>(table: Effect.Effect<A, E, R>) => Effect.retry(table, { times: 1 });

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const guard = yield* ToolGuard;
  yield* create(sql`CREATE TABLE IF NOT EXISTS seats (run text, attempt integer, call text, seat text,
    PRIMARY KEY (run, attempt, call))`);
  const book = ({ attempt, call, input, run_id }: ReadyCall) =>
    Effect.flatMap(
      decode(input),
      ({ seat }) => sql`INSERT INTO seats VALUES (${run_id}, ${attempt}, ${call}, ${seat})`,
    );
  const verify = ({ attempt, call, run_id }: ToolGuard.UnknownCall) =>
    Effect.map(sql`SELECT 1 FROM seats WHERE run = ${run_id} AND attempt = ${attempt} AND call = ${call}`, (rows) =>
      rows.length === 1 ? "it_ran" : "it_did_not_run",
    );
  return {
    tool: guard.mutating("book_seat", book, { verify }),
    description: {
      ...{ name: "book_seat", description: "Books a seat. Every call books one more." },
      input_schema: Schema.toJsonSchemaDocument(Input).schema,
    },
    /** The results of the calls of a run. */
    results: (run: string) =>
      Effect.map(
        Effect.flatMap(sql`SELECT attempt, call, seat FROM seats WHERE run = ${run}`, (rows) => decodeBooked(rows)),
        (booked) => booked.map(({ seat, ...call }) => ({ ...call, output: `Booked ${seat}.` })),
      ),
  };
});

/** The tool, and what it has done. */
export class Seats extends Context.Service<Seats, Effect.Success<typeof make>>()("examples/cluster-agent/Seats") {
  static readonly layer = Layer.effect(Seats, make);
}
