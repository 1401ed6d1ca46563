/**
 * The journals of a cluster: who claims one writes it, and nobody who claimed it before. And a turn that is asked for several times.
 */
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Cause, Context, Effect, Exit, Fiber, Layer, References, Scope } from "effect";
import * as ForgottenChats from "../../../src/agent/cluster/ForgottenChats.ts";
import { ClusterCarrier, ConversationError, layerNode, type Order } from "../../../src/agent/cluster/index.ts";
import * as PostgresChats from "../../../src/agent/cluster/PostgresChats.ts";
import { type Entry, layer } from "../../../src/agent/index.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { FaultProvider } from "../../../src/testing/index.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as StatementProxy from "../../recorder/postgres/StatementProxy.ts";
import * as Rig from "../Rig.ts";
import * as Nodes from "./Nodes.ts";

const said = (text: string): Entry => ({ _tag: "User", text });

const chats = Effect.fnUntraced(function* (address: string, patienceMs = 8_000) {
  const client = yield* Databases.client(address);
  yield* PostgresChats.makeTables(client, "t_");
  return PostgresChats.make(client, "t_", "the store", patienceMs);
});

const refusalOf = (exit: Exit.Exit<void>): PostgresChats.LineRefused | undefined => {
  const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined;
  return defect instanceof PostgresChats.LineRefused ? defect : undefined;
};

describe("The journals of a cluster", () => {
  it.live("take no line of an owner behind another one's claim, also where it is on its way", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const proxy = yield* StatementProxy.make(address);
      const before = yield* (yield* chats(proxy.address)).claim("c", "one");
      yield* before.journal.append(said("first"));
      const line = proxy.hold(/INSERT INTO t_chat_lines/);
      const late = yield* Effect.forkChild(Effect.exit(before.journal.append(said("late"))));
      yield* line.reached;
      const now = yield* (yield* chats(address)).claim("c", "other");
      assert.deepStrictEqual(now.journal.entries, [said("first")]);
      assert.strictEqual(now.epoch, before.epoch + 1);
      yield* line.release;
      assert.strictEqual(refusalOf(yield* Fiber.join(late))?.reason, "moved");
      yield* now.journal.append(said("second"));
      assert.strictEqual(refusalOf(yield* Effect.exit(before.journal.append(said("later"))))?.reason, "moved");
      const last = yield* (yield* chats(address)).claim("c", "third");
      assert.deepStrictEqual(last.journal.entries, [said("first"), said("second")]);
    }).pipe(Effect.scoped),
  );

  it.live("have a line once whose acknowledgement was lost", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* Databases.empty);
      const { journal } = yield* (yield* chats(proxy.address)).claim("c", "one");
      const reply = proxy.hold(/INSERT INTO t_chat_lines/, "reply");
      const adding = yield* Effect.forkChild(journal.append(said("once")));
      yield* reply.reached;
      proxy.cut();
      yield* reply.release;
      yield* Fiber.join(adding);
      yield* journal.append(said("next"));
      const { journal: after } = yield* (yield* chats(proxy.address)).claim("c", "other");
      assert.deepStrictEqual(after.entries, [said("once"), said("next")]);
    }).pipe(Effect.scoped),
  );

  it.live("end what a line was to begin where the server stays away, and every later one", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const proxy = yield* StatementProxy.make(address);
      const { journal } = yield* (yield* chats(proxy.address, 600)).claim("c", "one");
      proxy.isDown = true;
      proxy.cut();
      assert.strictEqual(refusalOf(yield* Effect.exit(journal.append(said("away"))))?.reason, "store");
      proxy.isDown = false;
      assert.strictEqual(refusalOf(yield* Effect.exit(journal.append(said("later"))))?.reason, "store");
      const { journal: after } = yield* (yield* chats(address)).claim("c", "other");
      assert.deepStrictEqual(after.entries, []);
    }).pipe(Effect.scoped),
  );

  it.live("are of one name each: a name that is none of a file is refused", () =>
    Effect.gen(function* () {
      const store = yield* chats(yield* Databases.empty);
      const error = yield* Effect.flip(store.claim("../c", "one"));
      assert.strictEqual(error.reason, "refused");
    }).pipe(Effect.scoped),
  );
});

/** A node of this process, and what calls it with a recorder's key. */
const clustered = Effect.fnUntraced(function* (
  script: FaultScriptInput = { answers: [{ content: [{ text: 2 }] }] },
  graceMs = 60_000,
) {
  const db = yield* Databases.empty;
  const at = yield* Rig.folder;
  const provider = yield* FaultProvider.make({ script });
  const address = { host: "127.0.0.1", port: yield* Nodes.freePort };
  const services = layer({ db, leaseMs: 300, ask: () => Effect.succeed("parked" as const) });
  const node = layerNode(db, address, { dir: at, graceMs, model: "m", url: provider.url });
  const life = yield* Scope.fork(yield* Effect.scope);
  yield* Layer.build(Layer.fresh(Layer.provide(node, services))).pipe(Scope.provide(life));
  const carrierOf = (recorder: Layer.Layer<RunRecorder, unknown>) =>
    Effect.map(Layer.build(Layer.fresh(Layer.provide(ClusterCarrier.layer(db), recorder))), (it) =>
      Context.get(it, ClusterCarrier),
    );
  const own = yield* carrierOf(PostgresRunRecorder.layer({ address: db, retention: false }));
  return { at, carrierOf, db, life, own, provider };
});

const quiet = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
  effect.pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"));

describe("A turn of a cluster", () => {
  it.live("begins once, however often it is asked for", () =>
    quiet(
      Effect.gen(function* () {
        const { db, own, provider } = yield* clustered();
        assert.deepInclude(yield* own.look("typo"), { turns: 0, how: "none" });
        const client = yield* Databases.client(db);
        assert.lengthOf(yield* client`SELECT chat FROM stream_recovery_chats`, 0);
        const order: Order = { turn: 1, text: "Hello" };
        yield* Effect.all(
          Array.from({ length: 5 }, () => own.turn("c", order)),
          { concurrency: 5 },
        );
        yield* Nodes.until(Effect.map(own.turn("c", order), ({ how }) => how === "done"));
        assert.lengthOf(yield* provider.log, 1);
        const told = yield* own.turn("c", order);
        assert.deepInclude(told, { turns: 1, how: "done", text: "r1.0·r1.1·" });
        const refused = yield* Effect.all([
          Effect.flip(own.turn("c", { turn: 1, text: "Another" })),
          Effect.flip(own.turn("c", { turn: 3, text: "Hello" })),
        ]);
        assert.deepStrictEqual(
          refused.map((error) => (error instanceof ConversationError ? error.reason : error)),
          ["taken", "out_of_turn"],
        );
        // Its owner has it open still, and tells of it what there is.
        const meant = { which: { chat: "c" }, force: false };
        assert.deepInclude(yield* ForgottenChats.forget(client, "stream_recovery_", "the store", meant), { chats: 1 });
        assert.deepInclude(yield* own.look("c"), { turns: 0, how: "none", text: "" });
      }),
    ),
  );

  it.live("may end when its node is told to, and is given away where it does not", () =>
    quiet(
      Effect.gen(function* () {
        for (const [graceMs, seconds] of [
          [60_000, 2],
          [0, 60],
        ] as const) {
          const call = { tool: "shell", input: { command: `echo mark >> marks; sleep ${seconds}` } };
          const script = { answers: [{ content: [call] }, { content: [{ text: 2 }] }] };
          const { at, db, life, own } = yield* clustered(script, graceMs);
          const asking = yield* Effect.forkChild(Effect.exit(own.turn("c", { turn: 1, text: "Hello" })));
          yield* Nodes.made(join(at, "c", "marks"));
          yield* Scope.close(life, Exit.void);
          yield* Fiber.interrupt(asking);
          const client = yield* Databases.client(db);
          const ends = yield* client`SELECT n FROM stream_recovery_chat_lines WHERE line LIKE '{"_tag":"End"%'`;
          assert.lengthOf(ends, graceMs === 0 ? 0 : 2);
        }
      }),
    ),
  );

  it.live("is begun by nobody who has not the store's key", () =>
    quiet(
      Effect.gen(function* () {
        const { carrierOf, provider } = yield* clustered();
        const stranger = yield* carrierOf(RunRecorder.layerMemory());
        for (const call of [
          stranger.look("c"),
          stranger.turn("c", { turn: 1, text: "Hello" }),
          stranger.cancel("c", 1),
        ]) {
          const error = yield* Effect.flip(call);
          assert.strictEqual(error instanceof ConversationError ? error.reason : error, "forbidden");
        }
        assert.lengthOf(yield* provider.log, 0);
      }),
    ),
  );
});
