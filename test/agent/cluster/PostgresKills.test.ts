/**
 * Kills the owner of a conversation in turn after turn, each time behind another line of its journal: three nodes, of which a dead
 * one is followed by a new one. The tool's own file judges.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, type Scope } from "effect";
import type * as Agents from "../../cli/AgentProcess.ts";
import * as Command from "../../cli/CommandLine.ts";
import { Dice } from "../../simulation/Dice.ts";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import * as Nodes from "./Nodes.ts";

const seed = Number(process.env.CLUSTER_KILL_SEED ?? 20_261_124);

/** Turns in which the owner is killed. */
const kills = 4;

/** The lines of a turn, about: the user's words, two requests, a call and its result. */
const linesMax = 32;

const marking = { tool: "shell", input: { command: "echo mark >> marks; sleep 0.5" } };
const turn = [
  { content: [{ text: 2 }, marking], delay_ms: 20 },
  { content: [{ text: 3 }], delay_ms: 20 },
];

/** Says what the tool's file says of the call that was cut off: one mark more than those that are accounted for. */
const verdictOf = (nodes: Nodes.Nodes) =>
  Effect.map(nodes.journal, (journal) => {
    const { ran, settled } = Judge.tally(journal, "shell");
    return linesOf(nodes.marks).length > settled + ran ? "it_ran" : "it_did_not_run";
  });

/** Stays with a turn until it has ended: answers what is asked, and calls again where no owner was found in time. */
const stayed = (nodes: Nodes.Nodes, caller: Agents.Running, number: number): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked = yield* Effect.exit(caller.until("it_did_not_run"));
    if (Exit.isSuccess(asked)) caller.child.stdin?.end(`${yield* verdictOf(nodes)}\n`);
    const code = yield* caller.ended;
    if (code === 0) return;
    assert.include([3, 4, 5], code, caller.printed());
    const run = /runs answer (\S+) --db/.exec(caller.printed())?.[1];
    if (run !== undefined) {
      const answer = ["runs", "answer", run, yield* verdictOf(nodes), "--db", nodes.db];
      const said = yield* Effect.promise(() => Command.run(answer));
      assert.strictEqual(said.code, 0, `${said.stdout}${said.stderr}`);
    }
    const begun = (yield* nodes.journal).filter(({ _tag }) => _tag === "User").length;
    const again = begun < number ? ["--prompt", `Turn ${number}`] : ["--resume"];
    return yield* stayed(nodes, yield* nodes.caller(again), number);
  });

describe("Conversations of a cluster whose owners are killed one after the other", () => {
  it.live(`have each turn once, and each effect of a tool once: seed ${seed}`, () =>
    Effect.gen(function* () {
      const dice = new Dice(seed);
      const script = [...Array.from({ length: kills }, () => turn).flat(), { content: [{ text: 3 }] }];
      const nodes = yield* Nodes.make({ answers: script });
      let living: ReadonlyArray<Nodes.Node> = yield* Effect.all([nodes.node, nodes.node, nodes.node], {
        concurrency: 3,
      });
      yield* Nodes.ready(living);
      for (let number = 1; number <= kills; number += 1) {
        const before = number === 1 ? 0 : (yield* nodes.journal).length;
        const caller = yield* nodes.caller(["--prompt", `Turn ${number}`]);
        const due = before + 1 + Math.floor(dice.next() * linesMax);
        const reached = Nodes.until(Effect.map(nodes.journal, (journal) => journal.length >= due));
        // A turn that has ended by then had a kill behind its last line.
        yield* Effect.raceFirst(reached, caller.ended);
        const { others, owner } = yield* Nodes.divided(nodes, living);
        owner.child.kill("SIGKILL");
        living = [...others, yield* nodes.node];
        yield* stayed(nodes, caller, number);
      }
      const journal = yield* nodes.journal;
      assert.deepStrictEqual(Judge.problems(journal), [], `CLUSTER_KILL_SEED=${seed}`);
      const said = journal.flatMap((entry) => (entry._tag === "User" ? [entry.text] : []));
      assert.deepStrictEqual(
        said,
        Array.from({ length: kills }, (_, index) => `Turn ${index + 1}`),
      );
      const { ran, settled, started } = Judge.tally(journal, "shell");
      assert.lengthOf(linesOf(nodes.marks), settled + ran, `CLUSTER_KILL_SEED=${seed}`);
      assert.isAbove(started, 0);
    }).pipe(Effect.scoped),
  );
});
