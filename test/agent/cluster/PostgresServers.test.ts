/**
 * Conversations of a cluster over a server of their own: it is stopped under them, and it has a role that may make nothing.
 */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { blocks } from "../../package/Markdown.ts";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import * as Nodes from "./Nodes.ts";

const server = Effect.acquireRelease(
  Effect.sync(() => {
    const programs = Cluster.programs();
    if (programs === undefined) throw new Error("the suite has found PostgreSQL before");
    return Cluster.make(programs);
  }),
  (it) => Effect.sync(() => it.remove()),
);

const answer = { content: [{ text: 3 }] };

/** A call that leaves its mark at once and takes so long. */
const marking = (seconds: number) => ({ tool: "shell", input: { command: `echo mark >> marks; sleep ${seconds}` } });

/** What a page tells to type into the database. */
const grants = (page: string): string =>
  blocks(readFileSync(new URL(`../../../docs/${page}`, import.meta.url), "utf8")).find(({ text }) =>
    text.includes("GRANT SELECT, INSERT"),
  )?.text ?? "";

describe("Conversations of a cluster whose server is away", () => {
  it.live("wait for one that is started again, and write each line once", () =>
    Effect.gen(function* () {
      const postgres = yield* server;
      const nodes = yield* Nodes.make({ answers: [{ content: [marking(2)] }, answer] }, postgres.address("postgres"));
      const one = yield* nodes.node;
      yield* Nodes.ready([one]);
      const caller = yield* nodes.caller(["--prompt", "Work"]);
      yield* Nodes.made(nodes.marks);
      postgres.stop("fast");
      postgres.start();
      const code = yield* Nodes.answered(nodes, caller);
      assert.strictEqual(code, 0, `${caller.printed()}\n${one.printed()}`);
      assert.deepStrictEqual(Judge.problems(yield* nodes.journal), []);
      assert.lengthOf(linesOf(nodes.marks), 1);
      assert.lengthOf(yield* nodes.provider.log, 2);
    }).pipe(Effect.scoped),
  );

  it.live("end their turns where it stays away, and go on with them once somebody asks again", () =>
    Effect.gen(function* () {
      const postgres = yield* server;
      const nodes = yield* Nodes.make({ answers: [{ content: [marking(1)] }, answer] }, postgres.address("postgres"));
      const one = yield* nodes.node;
      yield* Nodes.ready([one]);
      const caller = yield* nodes.caller(["--prompt", "Work"]);
      yield* Nodes.made(nodes.marks);
      postgres.stop("immediate");
      yield* one.until("turn 1 ends here");
      assert.include([3, 5], yield* caller.ended, caller.printed());
      postgres.start();
      const asked = yield* Nodes.asked(nodes, yield* nodes.caller(["--resume"]));
      asked.child.stdin?.end("it_ran\n");
      assert.strictEqual(yield* asked.ended, 0, asked.printed());
      assert.deepStrictEqual(Judge.problems(yield* nodes.journal), []);
      assert.lengthOf(linesOf(nodes.marks), 1);
      assert.lengthOf(yield* nodes.provider.log, 2);
    }).pipe(Effect.scoped),
  );
});

describe("Conversations of a cluster under a role that may make no tables", () => {
  it.live("need the rights that the page names, and no more", () =>
    Effect.gen(function* () {
      const postgres = yield* server;
      postgres.psql("postgres", "CREATE DATABASE recovery");
      postgres.psql("recovery", "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
      const owner = postgres.address("recovery");
      yield* Effect.scoped(
        Effect.gen(function* () {
          const made = yield* (yield* Nodes.make({ answers: [answer] }, owner)).node;
          yield* Nodes.ready([made]);
        }),
      );
      postgres.psql("recovery", grants("postgres.md"));
      postgres.psql("recovery", grants("cluster.md"));
      const nodes = yield* Nodes.make({ answers: [answer] }, owner.replace("user=postgres", "user=recovery"));
      const one = yield* nodes.node;
      yield* Nodes.ready([one]);
      const caller = yield* nodes.caller(["--prompt", "Hello"]);
      assert.strictEqual(yield* Nodes.answered(nodes, caller), 0, `${caller.printed()}\n${one.printed()}`);
      assert.lengthOf(yield* nodes.provider.log, 1);
    }).pipe(Effect.scoped),
  );
});
