/**
 * The example of conversations on several nodes: two nodes over one PostgreSQL, of which the owner dies in the middle of a turn.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { freePort } from "../../scripts/programs/FreePort.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import { found } from "../Polling.ts";
import * as Databases from "../recorder/postgres/Databases.ts";
import * as Program from "./Program.ts";

const main = "docs/examples/cluster-agent/main.ts";

let databases = 0;

/** A database of its own: the tables of Effect Cluster have fixed names. */
const database = Effect.gen(function* () {
  databases += 1;
  const name = `cluster_example_${process.pid}_${databases}`;
  const admin = yield* Databases.client(Databases.addressOf("postgres"), "admin");
  yield* Effect.acquireRelease(admin`CREATE DATABASE ${admin(name)}`, () =>
    Effect.ignore(admin`DROP DATABASE IF EXISTS ${admin(name)} WITH (FORCE)`),
  );
  return Databases.addressOf(name);
});

/** Starts a node, which listens at a port of its own. */
const startNode = (db: string, provider: string) =>
  Effect.gen(function* () {
    const port = String(yield* freePort);
    const args = ["serve", "--db", db, "--model", "m", "--base", `${provider}/v1`, "--port", port];
    return yield* Program.start(main, args, { ANTHROPIC_API_KEY: "not-a-key" });
  });

/** Fails once one of the nodes ends by itself. A caller waits for ever if no node is left. */
const endOf = (nodes: ReadonlyArray<Program.Running>) =>
  Effect.raceAllFirst(
    nodes.map(({ child, ended, printed }) =>
      Effect.flatMap(ended, (code) =>
        child.killed ? Effect.never : Effect.die(new Error(`a node ended with ${code}: ${printed()}`)),
      ),
    ),
  );

describe("the example of conversations on several nodes", () => {
  it.live(
    "ends a turn whose owner was killed after its tool: at another node, with one seat, and one answer a turn",
    () =>
      Effect.gen(function* () {
        const db = yield* database;
        const book = { tool: "book_seat", input: { seat: "12A" } };
        const hangs = { content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 2 } } as const;
        const answers = [{ content: [book] }, hangs, { content: [{ text: 3 }] }];
        const provider = yield* FaultProvider.make({ script: { answers } });
        const node = startNode(db, provider.url);
        const nodes = yield* Effect.all([node, node], { concurrency: 2 });
        const play = Effect.gen(function* () {
          yield* Effect.forEach(nodes, (it) => it.until("a node at"));
          const say = (text: string, turn: string) => Program.start(main, ["say", text, "--db", db, "--turn", turn]);
          const caller = yield* say("Book me a seat", "1");
          yield* provider.until((rows) => (rows.length >= 2 ? rows : undefined));
          const sql = yield* Databases.client(db, "judge");
          const owners = nodes.filter((it) => it.printed().includes("turn 1 of chat"));
          assert.lengthOf(owners, 1);
          owners[0]?.child.kill("SIGKILL");
          assert.include(yield* caller.succeeded, "r3.0·r3.1·r3.2·");
          assert.lengthOf(yield* sql`SELECT seat FROM seats`, 1);
          const again = yield* say("Book me a seat", "1");
          assert.include(yield* again.succeeded, "r3.0·r3.1·r3.2·");
          assert.lengthOf(yield* provider.log, 3);
        });
        yield* Effect.raceFirst(play, endOf(nodes));
      }).pipe(Effect.scoped),
  );

  it.live("starts a node while another one creates the same table", () =>
    Effect.gen(function* () {
      const db = yield* database;
      const sql = yield* Databases.client(db, "judge");
      const node = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`CREATE TABLE seats (run text, attempt integer, call text, seat text, PRIMARY KEY (run, attempt, call))`;
          const started = yield* startNode(db, "http://127.0.0.1:1");
          const watch = yield* Databases.client(db, "watch");
          yield* found(
            Effect.map(
              watch`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%seats%'`,
              (rows) => (rows.length > 0 ? true : undefined),
            ),
          );
          return started;
        }),
      );
      yield* node.until("a node at");
    }).pipe(Effect.scoped),
  );
});
