/**
 * What was said in the newest turn, by the journal.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { ChatState } from "../../../src/agent/conversation/ChatState.ts";
import type { Chat, Entry } from "../../../src/agent/conversation/Entry.ts";

const chat: Chat = {
  ...{ _tag: "Chat", version: 1, chat: "c", protocol: "openai-chat", url: "http://localhost", model: "m" },
  ...{ dir: "/", shell: false, system: "" },
};

const attempt = (run: string, number: number, request: "first" | "continue" = "first"): Entry => ({
  ...{ _tag: "Attempt", run, attempt: number, request, calls: [] },
});

const part = (run: string, number: number, ordinal: number, content: string): Entry => ({
  ...{ _tag: "Part", run, attempt: number, ordinal, event: "message" },
  data: JSON.stringify({ choices: [{ index: 0, delta: { content } }] }),
});

const turnOf = (...entries: ReadonlyArray<Entry>) => {
  const state = new ChatState(chat, [], () => Effect.void);
  for (const entry of entries) state.apply(entry);
  return state.turn;
};

const begun: ReadonlyArray<Entry> = [{ _tag: "User", text: "Hello" }, { _tag: "Run", run: "a" }, attempt("a", 1)];

describe("The newest turn of a chat", () => {
  it("is none before anything was said", () => {
    assert.strictEqual(turnOf(chat).number, 0);
    assert.isUndefined(turnOf(chat).asked);
  });

  it("has the text of its responses, a paragraph each", () => {
    const turn = turnOf(
      ...begun,
      part("a", 1, 1, "I "),
      part("a", 1, 2, "look."),
      { _tag: "End", run: "a", ending: "completed" },
      { _tag: "Run", run: "b" },
      attempt("b", 1),
      part("b", 1, 1, "Done."),
      { _tag: "End", run: "b", ending: "stopped" },
    );
    assert.strictEqual(turn.said, "I look.\n\nDone.");
    assert.strictEqual(turn.asked, "Hello");
    assert.strictEqual(turn.ending, "stopped");
  });

  it("has nothing that was withdrawn, or asked for again from the start", () => {
    const shown = [...begun, part("a", 1, 1, "I "), part("a", 1, 2, "look.")];
    assert.strictEqual(turnOf(...shown, { _tag: "Discard", run: "a", attempt: 1, keep_through: 1 }).said, "I ");
    assert.strictEqual(turnOf(...shown, attempt("a", 2), part("a", 2, 1, "Again.")).said, "Again.");
    assert.strictEqual(turnOf(...shown, attempt("a", 2, "continue"), part("a", 2, 1, " More.")).said, "I look. More.");
  });

  it("begins with what the user says next", () => {
    const turn = turnOf(
      ...begun,
      part("a", 1, 1, "Yes."),
      { _tag: "End", run: "a", ending: "completed" },
      {
        _tag: "User",
        text: "More",
      },
    );
    assert.deepStrictEqual([turn.number, turn.asked, turn.said, turn.ending], [2, "More", "", undefined]);
  });
});
