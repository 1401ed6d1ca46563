/**
 * Which chats of a folder an earlier process left open.
 */
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Chats from "../../../src/agent/conversation/Chats.ts";
import type { Entry } from "../../../src/agent/conversation/Entry.ts";
import * as Rig from "../Rig.ts";

const first = (chat: string): Entry => ({
  _tag: "Chat",
  version: 1,
  chat,
  protocol: "openai-chat",
  url: "http://h/v1",
  model: "m",
  dir: "/d",
  shell: true,
  system: "s",
});
const said: Entry = { _tag: "User", text: "pay" };
const begun: Entry = { _tag: "Run", run: "r" };
const ended = (ending: "completed" | "cut" | "cancelled"): Entry => ({ _tag: "End", run: "r", ending });

const textOf = (entries: ReadonlyArray<Entry>) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");

describe("the chats of a folder", () => {
  it.live("are open where a turn has not come to its end, and are only looked at", () =>
    Effect.gen(function* () {
      const folder = join(yield* Rig.folder, "chats");
      assert.deepStrictEqual(yield* Chats.find(folder), { all: 0, open: [], unreadable: [] });
      mkdirSync(folder);
      const chats: Readonly<Record<string, string>> = {
        whole: textOf([first("whole"), said, begun, ended("completed")]),
        cancelled: textOf([first("cancelled"), said, begun, ended("cancelled")]),
        begun: textOf([first("begun")]),
        unasked: textOf([first("unasked"), said]),
        asking: textOf([first("asking"), said, begun]),
        cut: `${textOf([first("cut"), said, begun, ended("cut")])}{"_tag":"Us`,
        torn: `${textOf([first("torn")])}no line\n`,
        empty: "",
      };
      let at = 1_000;
      for (const [chat, text] of Object.entries(chats)) {
        const file = join(folder, `${chat}.jsonl`);
        writeFileSync(file, text);
        utimesSync(file, at, at);
        at += 1;
      }
      const found = yield* Chats.find(folder);
      assert.deepStrictEqual(
        found.open.map(({ chat, model }) => `${chat} ${model}`),
        ["cut m", "asking m", "unasked m"],
      );
      assert.strictEqual(found.all, 8);
      assert.match(found.unreadable[0]?.message ?? "", /torn\.jsonl: line 2/);
      for (const [chat, text] of Object.entries(chats))
        assert.strictEqual(readFileSync(join(folder, `${chat}.jsonl`), "utf8"), text);
    }).pipe(Effect.scoped),
  );
});
