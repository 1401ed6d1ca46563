/**
 * Conversations that an operator forgets: nothing of them is left, an owner that lives writes nothing more, and a name begins anew.
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Exit, Fiber } from "effect";
import * as ForgottenChats from "../../../src/agent/cluster/ForgottenChats.ts";
import * as PostgresChats from "../../../src/agent/cluster/PostgresChats.ts";
import type { Entry } from "../../../src/agent/index.ts";
import * as Command from "../../cli/AgentProcess.ts";
import * as Databases from "../../recorder/postgres/Databases.ts";
import * as StatementProxy from "../../recorder/postgres/StatementProxy.ts";
import { linesOf } from "../Marks.ts";
import * as Nodes from "./Nodes.ts";

const chat = (name: string): Entry => ({
  ...{ _tag: "Chat", version: 1, chat: name, protocol: "openai-chat", url: "http://127.0.0.1:9", model: "m" },
  ...{ dir: "/", shell: false, system: "" },
});

const said: Entry = { _tag: "User", text: "Hello" };

const opened = Effect.fnUntraced(function* (address: string) {
  const client = yield* Databases.client(address);
  yield* PostgresChats.makeTables(client, "t_");
  const forget = (which: ForgottenChats.Meant["which"], force = false) =>
    ForgottenChats.forget(client, "t_", "the store", { which, force });
  return { chats: PostgresChats.make(client, "t_", "the store", 600), client, forget };
});

/** Conversations with a first line each, and an open turn in some. */
const begun = (chats: PostgresChats.PostgresChats, names: ReadonlyArray<string>, open: ReadonlyArray<string> = []) =>
  Effect.forEach(names, (name) =>
    Effect.gen(function* () {
      const claimed = yield* chats.claim(name, "one");
      yield* claimed.journal.append(chat(name));
      if (open.includes(name)) yield* claimed.journal.append(said);
      return claimed;
    }),
  );

const refusalOf = (exit: Exit.Exit<void>): string | undefined => {
  const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined;
  return defect instanceof PostgresChats.LineRefused ? `${defect.reason}: ${defect.message}` : undefined;
};

const left = { chats: 0, lines: 0, stay: 0, staying: [] };

describe("A conversation that is forgotten", () => {
  it.live("leaves nothing, and its owner writes nothing more of it, also behind one that has begun it anew", () =>
    Effect.gen(function* () {
      const { chats, client, forget } = yield* opened(yield* Databases.empty);
      const [before] = yield* begun(chats, ["c"]);
      const [waits] = yield* begun(chats, ["d"]);
      assert.deepStrictEqual(yield* forget({ chat: "c" }), { ...left, chats: 1, lines: 1 });
      assert.deepStrictEqual(yield* forget({ chat: "c" }), left);
      assert.lengthOf(yield* client`SELECT chat FROM t_chats`, 1);
      assert.lengthOf(yield* client`SELECT chat FROM t_chat_lines`, 1);
      assert.isFalse(yield* chats.has("c"));
      assert.isFalse(yield* chats.isClaimed("c", before?.epoch ?? 0));
      // As many lines as the owner before had written, and the first claim again.
      const [after] = yield* begun(chats, ["c"]);
      const late = yield* Effect.exit(before?.journal.append(said) ?? Effect.void);
      assert.match(refusalOf(late) ?? "", /^moved: chat c has another owner/);
      yield* after?.journal.append(said) ?? Effect.void;
      assert.strictEqual((yield* chats.claim("c", "other")).journal.entries.length, 2);
      yield* forget({ chat: "d" });
      const gone = yield* Effect.exit(waits?.journal.append(said) ?? Effect.void);
      assert.strictEqual(refusalOf(gone), "moved: chat d was forgotten: nothing more of it is done here");
    }).pipe(Effect.scoped),
  );

  it.live("has no open turn, also where the turn's first line is on its way, unless that is forced", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const proxy = yield* StatementProxy.make(address);
      const { forget } = yield* opened(address);
      const [claimed] = yield* begun((yield* opened(proxy.address)).chats, ["c"]);
      // The owner's line is written, and its acknowledgement comes late.
      const line = proxy.hold(/INSERT INTO t_chat_lines/, "reply");
      const saying = yield* Effect.forkChild(Effect.exit(claimed?.journal.append(said) ?? Effect.void));
      yield* line.reached;
      assert.deepStrictEqual(yield* forget({ chat: "c" }), { ...left, stay: 1, staying: ["c"] });
      yield* line.release;
      assert.isTrue(Exit.isSuccess(yield* Fiber.join(saying)));
      assert.deepStrictEqual(yield* forget({ chat: "c" }, true), { ...left, chats: 1, lines: 2 });
    }).pipe(Effect.scoped),
  );

  it.live("waits for a line whose transaction is under way, and then sees it", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const { chats, client, forget } = yield* opened(address);
      yield* begun(chats, ["c"]);
      const other = yield* Databases.client(address, "writer");
      const forgetting = yield* Effect.orDie(
        other.withTransaction(
          Effect.gen(function* () {
            yield* other`UPDATE t_chats SET lines = 2 WHERE chat = 'c'`;
            yield* other`INSERT INTO t_chat_lines (chat, n, line) VALUES ('c', 2, ${JSON.stringify(said)})`;
            const fiber = yield* Effect.forkScoped(forget({ chat: "c" }), { startImmediately: true });
            const waits = client`SELECT 1 FROM pg_stat_activity
              WHERE datname = current_database() AND wait_event_type = 'Lock'`;
            yield* Nodes.until(Effect.map(waits, (rows) => rows.length === 1));
            return fiber;
          }),
        ),
      );
      assert.deepStrictEqual(yield* Fiber.join(forgetting), { ...left, stay: 1, staying: ["c"] });
      assert.lengthOf(yield* client`SELECT n FROM t_chat_lines`, 2);
    }).pipe(Effect.scoped),
  );

  it.live("cannot be one whose journal is damaged, unless that is forced", () =>
    Effect.gen(function* () {
      const { chats, client, forget } = yield* opened(yield* Databases.empty);
      yield* begun(chats, ["c"]);
      yield* client`UPDATE t_chat_lines SET line = '{'`;
      assert.deepInclude(yield* forget({ chat: "c" }), { chats: 0, stay: 1 });
      assert.deepInclude(yield* forget({ chat: "c" }, true), { chats: 1, stay: 0 });
    }).pipe(Effect.scoped),
  );

  it.live("is one to which nothing was added for so long: by the server's clock, page by page", () =>
    Effect.gen(function* () {
      const { chats, client, forget } = yield* opened(yield* Databases.empty);
      const names = Array.from({ length: 250 }, (_, index) => `c${index}`);
      yield* begun(chats, [...names, "new", "spoken"], ["c3", "c7"]);
      const old = client`now() - interval '31 days'`;
      yield* client`UPDATE t_chats SET claimed_at = ${old}, written_at = ${old} WHERE chat <> 'new'`;
      const spoken = yield* chats.claim("spoken", "two");
      yield* client`UPDATE t_chats SET claimed_at = ${old} WHERE chat = 'spoken'`;
      yield* spoken.journal.append(said);
      const month = { idleMs: 30 * 86_400_000 };
      assert.deepStrictEqual(yield* forget(month), { chats: 248, lines: 248, stay: 2, staying: ["c3", "c7"] });
      assert.deepStrictEqual(yield* forget(month, true), { ...left, chats: 2, lines: 4 });
      const stay = yield* client<{ readonly chat: string }>`SELECT chat FROM t_chats ORDER BY chat`;
      assert.deepStrictEqual(
        stay.map(({ chat }) => chat),
        ["new", "spoken"],
      );
    }).pipe(Effect.scoped),
  );

  it.live("is in tables of a version that did not say when a line was written", () =>
    Effect.gen(function* () {
      const { chats, client, forget } = yield* opened(yield* Databases.empty);
      yield* begun(chats, ["c"]);
      yield* client`ALTER TABLE t_chats DROP COLUMN written_at`;
      yield* PostgresChats.makeTables(client, "t_");
      assert.deepInclude(yield* forget({ idleMs: 60_000 }), { chats: 0 });
      assert.deepInclude(yield* forget({ chat: "c" }), { chats: 1 });
    }).pipe(Effect.scoped),
  );
});

describe("agent --cluster --forget", () => {
  it.live(
    "forgets a conversation under its living owner: its tool's end is not written, and the next turn is the first",
    () =>
      Effect.gen(function* () {
        const call = { tool: "shell", input: { command: "echo mark >> marks; until [ -e go ]; do sleep 0.1; done" } };
        const nodes = yield* Nodes.make({ answers: [{ content: [call] }, { content: [{ text: 3 }] }] });
        const node = yield* nodes.node;
        yield* Nodes.ready([node]);
        const forget = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
          const it = yield* Command.start(["--cluster", "--db", nodes.db, "--forget", ...args]);
          return { code: yield* it.ended, text: it.printed() };
        });
        const caller = yield* nodes.caller(["--prompt", "Work"]);
        yield* Nodes.made(nodes.marks);
        const open = yield* forget("--chat", "c");
        assert.strictEqual(open.code, 2, open.text);
        assert.match(open.text, /conversation c has a turn that is open.*--force/);
        const forced = yield* forget("--chat", "c", "--force");
        assert.strictEqual(forced.code, 0, forced.text);
        assert.match(forced.text, /^forgot one conversation \(\d+ lines\)$/m);
        // The tool ends only now: that it has is the first line behind the deletion.
        writeFileSync(join(dirname(nodes.marks), "go"), "");
        yield* node.until("was forgotten");
        // Its caller is told that there is no such turn any more, and nothing is asked for a second time.
        assert.strictEqual(yield* caller.ended, 2, caller.printed());
        assert.lengthOf(yield* nodes.provider.log, 1);
        assert.deepStrictEqual(yield* nodes.journal, []);
        const again = yield* nodes.caller(["--prompt", "Hello"]);
        assert.strictEqual(yield* Nodes.answered(nodes, again), 0, again.printed());
        assert.lengthOf(linesOf(nodes.marks), 1);
        // The owner has it open, and what is told of it is what there is.
        const idle = yield* forget("--older-than", "0s");
        assert.strictEqual(idle.code, 0, idle.text);
        const gone = yield* nodes.caller(["--resume"]);
        assert.strictEqual(yield* gone.ended, 0, gone.printed());
        assert.match(gone.printed(), /no turn was left open/);
        const none = yield* forget("--chat", "c");
        assert.strictEqual(none.code, 2, none.text);
        assert.match(none.text, /no conversation c is in this store/);
      }).pipe(Effect.scoped),
  );
});
