/**
 * A node that joins while another one is in the middle of a turn: the conversation moves to it, behind the turn or with it.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber, HashRing, Layer, Logger, References } from "effect";
import { RunnerAddress } from "effect/cluster";
import { ClusterCarrier, layerNode, makeCaller, type NodeAddress } from "../../../src/agent/cluster/index.ts";
import * as PostgresChats from "../../../src/agent/cluster/PostgresChats.ts";
import { layer } from "../../../src/agent/index.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as Judge from "../JournalJudge.ts";
import { linesOf } from "../Marks.ts";
import * as Rig from "../Rig.ts";
import * as Nodes from "./Nodes.ts";

/** A tool that leaves its mark at once, and ends when it is told to. */
const call = { tool: "shell", input: { command: "echo mark >> marks; until [ -e go ]; do sleep 0.05; done" } };

const addressAt = (port: number): NodeAddress => ({ host: "127.0.0.1", port });

const nameOf = ({ host, port }: NodeAddress) => `${host}:${port}`;

/** The number of the shard of the conversation `c`, from 0, as Effect draws it from the name. */
const shard = (((5_381 * 33) ^ "c".charCodeAt(0)) & 0xbfffffff) % 32;

/** An address to which the conversation `c` moves from a node's: which of two has a shard follows from what they are called. */
const taking = (from: NodeAddress): Effect.Effect<NodeAddress> =>
  Effect.gen(function* () {
    while (true) {
      const address = addressAt(yield* Nodes.freePort);
      const ring = HashRing.make<RunnerAddress.RunnerAddress>();
      for (const { host, port } of [from, address]) HashRing.add(ring, RunnerAddress.make(host, port));
      if (HashRing.getShards(ring, 32)?.[shard]?.port === address.port) return address;
    }
  });

/** A node that owns `c`, in the middle of a turn, and what makes another one join. */
const turning = Effect.fnUntraced(function* (graceMs: number) {
  const [db, at] = [yield* Databases.empty, yield* Rig.folder];
  const provider = yield* FaultProvider.make({
    script: { answers: [{ content: [call] }, { content: [{ text: 2 }] }, { content: [{ text: 2 }] }] },
  });
  const given = Deferred.makeUnsafe<void>();
  const logger = Logger.make<unknown, void>(({ message }) => {
    if (String(message).includes("conversation c: this node gives it away")) Deferred.doneUnsafe(given, Effect.void);
  });
  const log = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info" as const));
  const nodeAt = (address: NodeAddress) =>
    Layer.build(
      Layer.fresh(
        layerNode(db, address, { dir: at, graceMs, model: "m", url: provider.url }).pipe(
          Layer.provide(layer({ db, leaseMs: 300, ask: () => Effect.succeed("parked" as const) })),
          Layer.provide(log),
        ),
      ),
    );
  const one = addressAt(yield* Nodes.freePort);
  yield* nodeAt(one);
  const recorder = PostgresRunRecorder.layer({ address: db, retention: false });
  const services = yield* Layer.build(Layer.fresh(Layer.provide(ClusterCarrier.layer(db), recorder)));
  const caller = makeCaller("c", Context.get(services, ClusterCarrier), { ownerWaitMs: 60_000 });
  const saying = yield* Effect.forkChild(caller.say(1, "Work"));
  yield* Nodes.made(join(at, "c", "marks"));
  const sql = yield* Databases.client(db, "judge");
  const owner = Effect.map(
    sql<{ readonly owner: string; readonly epoch: string }>`SELECT owner, epoch::text FROM stream_recovery_chats`,
    ([row]) => ({ owner: row?.owner ?? "", epoch: Number(row?.epoch) }),
  );
  const before = yield* owner;
  assert.strictEqual(before.owner, nameOf(one));
  const two = yield* taking(one);
  yield* nodeAt(two);
  yield* Deferred.await(given);
  const ends = () => writeFileSync(join(at, "c", "go"), "");
  /** The journal and the logs, when the turn has ended; its owner behind the next one. */
  const judged = Effect.gen(function* () {
    assert.strictEqual((yield* caller.say(2, "More")).how, "done");
    const now = yield* owner;
    assert.strictEqual(now.owner, nameOf(two));
    assert.strictEqual(now.epoch, before.epoch + 1);
    const lines = yield* sql<{ readonly line: string }>`SELECT line FROM stream_recovery_chat_lines ORDER BY n`;
    assert.deepStrictEqual(Judge.problems(yield* Effect.forEach(lines, ({ line }) => PostgresChats.entryOf(line))), []);
    assert.lengthOf(linesOf(join(at, "c", "marks")), 1);
    assert.lengthOf(yield* provider.log, 3);
  });
  return { caller, ends, judged, owner, one, saying, two };
});

const quiet = Effect.provideService(References.MinimumLogLevel, "None" as const);

describe("A node that joins in the middle of a turn", () => {
  it.live("leaves the turn to its owner while that may end it, and has the next one", () =>
    Effect.gen(function* () {
      const { ends, judged, one, owner, saying } = yield* turning(60_000);
      // The shard is the new node's by now, and no other owner has the conversation before its turn has ended.
      assert.strictEqual((yield* owner).owner, nameOf(one));
      ends();
      assert.deepInclude(yield* Fiber.join(saying), { turns: 1, how: "done" });
      yield* judged;
    }).pipe(Effect.scoped, quiet),
  );

  it.live("takes up a turn that did not end in time: its tool is asked about, and is not run again", () =>
    Effect.gen(function* () {
      const { caller, judged, owner, saying, two } = yield* turning(0);
      const rests = yield* Fiber.join(saying);
      assert.deepInclude(rests, { turns: 1, how: "parked", node: nameOf(two) });
      assert.strictEqual((yield* owner).owner, nameOf(two));
      const { attempt, call, tool } = rests.call ?? assert.fail("no call is asked about");
      const ended = yield* caller.goOn(rests, { attempt, call, tool, verdict: "it_ran" });
      assert.deepInclude(ended, { turns: 1, how: "done" });
      yield* judged;
    }).pipe(Effect.scoped, quiet),
  );
});
