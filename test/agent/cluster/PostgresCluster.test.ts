/**
 * Conversations of a cluster, by real processes: killed, stopped, told to end. The tool's own file, the provider's own log and the
 * journal judge.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import * as Nodes from "./Nodes.ts";

const answer = { content: [{ text: 3 }] };

/** A call that leaves its mark at once and takes so long. */
const marking = (seconds: number) => ({ tool: "shell", input: { command: `echo mark >> marks; sleep ${seconds}` } });

describe("Conversations of a cluster", () => {
  it.live("go on at the survivor behind a kill -9 in the middle of a tool, which has run once", () =>
    Effect.gen(function* () {
      const nodes = yield* Nodes.make({ answers: [answer, { content: [marking(5)] }, answer] });
      // Both at once, over a schema in which there is no table.
      const two = yield* Effect.all([nodes.node, nodes.node], { concurrency: 2 });
      yield* Nodes.ready(two);
      const first = yield* nodes.caller(["--prompt", "Hello"]);
      assert.strictEqual(yield* first.ended, 0, first.printed());
      assert.include(first.printed(), "r1.0·r1.1·r1.2·");
      const second = yield* nodes.caller(["--prompt", "Work"]);
      yield* Nodes.made(nodes.marks);
      const { owner, others } = yield* Nodes.divided(nodes, two);
      owner.child.kill("SIGKILL");
      const asked = yield* Nodes.asked(nodes, second);
      asked.child.stdin?.end("it_ran\n");
      assert.strictEqual(yield* asked.ended, 0, asked.printed());
      assert.strictEqual(yield* nodes.owner, others[0]?.address);
      const journal = yield* nodes.journal;
      assert.deepStrictEqual(Judge.problems(journal), []);
      assert.lengthOf(linesOf(nodes.marks), 1);
      assert.lengthOf(
        journal.filter(({ _tag }) => _tag === "User"),
        2,
      );
      assert.lengthOf(yield* nodes.provider.log, 3);
    }).pipe(Effect.scoped),
  );

  it.live("an owner that stood still for longer than its lock writes nothing when it wakes up, and sends nothing", () =>
    Effect.gen(function* () {
      const nodes = yield* Nodes.make({ answers: [{ content: [marking(1)] }, answer, answer] });
      const two = yield* Effect.all([nodes.node, nodes.node], { concurrency: 2 });
      yield* Nodes.ready(two);
      const caller = yield* nodes.caller(["--prompt", "Work"]);
      yield* Nodes.made(nodes.marks);
      const { owner, others } = yield* Nodes.divided(nodes, two);
      owner.child.kill("SIGSTOP");
      const asked = yield* Nodes.asked(nodes, caller);
      asked.child.stdin?.end("it_ran\n");
      assert.strictEqual(yield* asked.ended, 0, asked.printed());
      const [before, sent] = [yield* nodes.journal, (yield* nodes.provider.log).length];
      owner.child.kill("SIGCONT");
      // Its line is refused, or its shard is seen to be gone: whichever it comes to first.
      yield* owner.until("turn 1 ends here");
      const again = yield* nodes.caller(["--prompt", "More"]);
      assert.strictEqual(yield* again.ended, 0, again.printed());
      const journal = yield* nodes.journal;
      assert.deepStrictEqual(journal.slice(0, before.length), before);
      assert.deepStrictEqual(Judge.problems(journal), []);
      assert.lengthOf(linesOf(nodes.marks), 1);
      assert.strictEqual(sent, 2);
      assert.lengthOf(yield* nodes.provider.log, 3);
      assert.lengthOf(others, 1);
    }).pipe(Effect.scoped),
  );

  it.live("a node that is told to end gives its turns away: the caller gets its response from another one", () =>
    Effect.gen(function* () {
      const stalled = { content: [{ text: 3 }], break: { kind: "stall", at: "event", n: 3 } } as const;
      const nodes = yield* Nodes.make({ answers: [stalled, answer] });
      const two = yield* Effect.all([nodes.node, nodes.node], { concurrency: 2 });
      yield* Nodes.ready(two);
      const caller = yield* nodes.caller(["--prompt", "Hello"]);
      yield* Nodes.until(Effect.map(nodes.journal, (journal) => journal.some(({ _tag }) => _tag === "Attempt")));
      const { owner, others } = yield* Nodes.divided(nodes, two);
      owner.child.kill("SIGTERM");
      assert.strictEqual(yield* owner.ended, 0, owner.printed());
      // Nobody has seen what had come, so nobody is asked.
      assert.strictEqual(yield* Nodes.answered(nodes, caller), 0, caller.printed());
      assert.strictEqual(yield* nodes.owner, others[0]?.address);
      assert.deepStrictEqual(Judge.problems(yield* nodes.journal), []);
    }).pipe(Effect.scoped),
  );

  it.live("take a turn a line from a pipe, and a port that is taken is told", () =>
    Effect.gen(function* () {
      const nodes = yield* Nodes.make({ answers: [answer] });
      const one = yield* nodes.node;
      yield* Nodes.ready([one]);
      const caller = yield* nodes.caller([]);
      caller.child.stdin?.end("Hello\nMore\n");
      assert.strictEqual(yield* caller.ended, 0, caller.printed());
      assert.match(caller.printed(), /r1\.0·r1\.1·r1\.2·\n.*r2\.0·r2\.1·r2\.2·\n/s);
      const said = (yield* nodes.journal).flatMap((entry) => (entry._tag === "User" ? [entry.text] : []));
      assert.deepStrictEqual(said, ["Hello", "More"]);
      const other = yield* nodes.nodeAt(one.address);
      assert.strictEqual(yield* other.ended, 2, other.printed());
      assert.include(other.printed(), "agent: --node: ");
    }).pipe(Effect.scoped),
  );

  it.live("Ctrl-C at a caller cancels the running request at its owner, with its tool", () =>
    Effect.gen(function* () {
      const nodes = yield* Nodes.make({ answers: [{ content: [marking(60)] }, answer] });
      const one = yield* nodes.node;
      yield* Nodes.ready([one]);
      const caller = yield* nodes.caller(["--prompt", "Wait"]);
      yield* Nodes.made(nodes.marks);
      caller.child.kill("SIGINT");
      assert.strictEqual(yield* caller.ended, 130, caller.printed());
      const last = (yield* nodes.journal).at(-1);
      assert.isTrue(last?._tag === "End" && last.ending === "cancelled");
      assert.lengthOf(yield* nodes.provider.log, 1);
    }).pipe(Effect.scoped),
  );

  it.live("a call for which there is no owner says so behind its limit, and names what it has waited for", () =>
    Effect.gen(function* () {
      const nodes = yield* Nodes.make({ answers: [answer] });
      const caller = yield* nodes.caller(["--prompt", "Hello"]);
      assert.strictEqual(yield* caller.ended, 5, caller.printed());
      assert.match(
        caller.printed(),
        /^agent: conversation c: waited 10 s for a live owner; none has answered; no node is registered: /,
      );
      assert.lengthOf(yield* nodes.provider.log, 0);
    }).pipe(Effect.scoped),
  );
});
