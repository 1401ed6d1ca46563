import { assert, describe, it } from "@effect/vitest";
import { CallRegistry, handedOverMax } from "../../../src/adapters/ai-sdk/CallRegistry.ts";

const of = (run: string) => ({ run_id: run, attempt: 1, call: "0.0" });
const call = (input: string, toolCallId = "0") => ({ toolCallId, toolName: "bash", input });
const taken = (book: CallRegistry, input: unknown, id = "0", tool = "bash") => {
  const found = book.take(tool, { id, input });
  return found === undefined ? undefined : found.run_id;
};

describe("the call that a tool runs for", () => {
  it("is each of two that nothing tells apart, once; then the guard is left to refuse", () => {
    const book = new CallRegistry();
    book.register(of("a"), call("{}"));
    book.register(of("b"), call("{}"));
    assert.deepEqual([taken(book, {}), taken(book, {})].sort(), ["a", "b"]);
    assert.isDefined(taken(book, {}));
  });

  it("is the one with the same input, else the newest of its id and its tool", () => {
    const book = new CallRegistry();
    book.register(of("a"), call('{ "cmd": "ls" }'));
    book.register(of("b"), call('{"cmd":"pwd"}'));
    book.register(of("c"), call("not json"));
    assert.strictEqual(taken(book, { cmd: "ls" }), "a");
    assert.strictEqual(taken(book, { cmd: "repaired" }), "c");
    assert.strictEqual(taken(book, { cmd: "repaired" }), "b");
    assert.isUndefined(taken(book, {}, "1"));
    assert.isUndefined(taken(book, {}, "0", "other"));
  });

  it("is forgotten when too many have come after it", () => {
    const book = new CallRegistry();
    book.register(of("first"), call("{}", "first"));
    for (let index = 0; index < handedOverMax; index += 1) book.register(of("later"), call("{}", `${index}`));
    assert.isUndefined(taken(book, {}, "first"));
    assert.strictEqual(taken(book, {}, "0"), "later");
  });
});
