/**
 * The example of conversations on several nodes: two nodes over one PostgreSQL, of which the owner dies in the middle of a turn.
 */
import { createServer } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../src/testing/index.ts";
import * as Databases from "../recorder/postgres/Databases.ts";
import * as Program from "./Program.ts";

/** A port of this machine on which nothing listens. */
const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    server.close(() => resume(Effect.succeed(port)));
  });
});

const main = "docs/examples/cluster-agent/main.ts";

/** A database of its own: the tables of Effect Cluster have fixed names. */
const database = Effect.gen(function* () {
  const name = `cluster_example_${process.pid}`;
  const admin = yield* Databases.client(Databases.addressOf("postgres"), "admin");
  yield* Effect.acquireRelease(admin`CREATE DATABASE ${admin(name)}`, () =>
    Effect.ignore(admin`DROP DATABASE IF EXISTS ${admin(name)} WITH (FORCE)`),
  );
  return Databases.addressOf(name);
});

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
        const node = Effect.gen(function* () {
          const port = String(yield* freePort);
          const args = ["serve", "--db", db, "--model", "m", "--base", `${provider.url}/v1`, "--port", port];
          return yield* Program.start(main, args, { ANTHROPIC_API_KEY: "not-a-key" });
        });
        const nodes = yield* Effect.all([node, node], { concurrency: 2 });
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
      }).pipe(Effect.scoped),
  );
});
