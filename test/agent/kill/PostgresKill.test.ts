/**
 * Kills agents whose runs are on PostgreSQL and whose chats are files of their own machine: `--db postgres://…` without `--cluster`.
 */
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../../src/testing/index.ts";
import * as Command from "../../cli/AgentProcess.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as Nodes from "../cluster/Nodes.ts";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import * as Rig from "../Rig.ts";
import { draw } from "./Plan.ts";
import { play } from "./Play.ts";

const seed = Number(process.env.AGENT_KILL_SEED ?? 20_261_122);
const chats = 8;
const kills = 4;

describe("kill -9 of an agent over PostgreSQL", () => {
  it.live(`in the middle of its tools: each tool effect once or a question, no dangling call: seed ${seed}`, () =>
    Effect.gen(function* () {
      const outcome = yield* play(draw(seed, chats, kills), { db: yield* Databases.empty, inTools: true });
      assert.deepStrictEqual(outcome.problems, [], `AGENT_KILL_SEED=${seed}`);
      // Kills that met a chat, and calls that one cut off: without them nothing is proved.
      assert.isAtLeast(outcome.hit, 2);
      assert.isAbove(outcome.judged, 0);
    }).pipe(Effect.scoped),
  );

  it.live("while its tool runs: --resume asks, goes on, and runs nothing twice", () =>
    Effect.gen(function* () {
      const at = yield* Rig.folder;
      const db = yield* Databases.empty;
      const slow = { tool: "shell", input: { command: "echo mark >> marks; sleep 5" } };
      const provider = yield* FaultProvider.make({
        script: { answers: [{ content: [slow] }, { content: [{ text: 3 }] }] },
      });
      // The chats of a server's runs are in the state folder of their machine.
      const agent = (...args: ReadonlyArray<string>) =>
        Command.start(["--db", db, "--lease-ms", "300", "--chat", "c", ...args], false, { XDG_STATE_HOME: at });
      const [box, journal] = [join(at, "box"), join(at, "stream-recovery", "chats", "c.jsonl")];
      const first = yield* agent("--url", provider.url, "--model", "m", "--dir", box, "--prompt", "Work");
      yield* Nodes.made(join(box, "marks"));
      assert.isTrue(first.child.kill("SIGKILL"));
      yield* first.ended;
      const second = yield* agent("--resume");
      yield* second.until("it_did_not_run");
      second.child.stdin?.end("it_ran\n");
      assert.strictEqual(yield* second.ended, 0, second.printed());
      assert.lengthOf(linesOf(join(box, "marks")), 1);
      assert.lengthOf(yield* provider.log, 2);
      assert.deepStrictEqual(Judge.problems(Judge.read(journal)), []);
      assert.strictEqual(Judge.read(journal).at(-1)?._tag, "End");
      const sql = yield* Databases.client(db, "judge");
      const rows = yield* sql`SELECT run_id FROM stream_recovery_runs WHERE ended_at IS NOT NULL`;
      // The runs are there, and in no file.
      assert.isAbove(rows.length, 0);
    }).pipe(Effect.scoped),
  );
});
