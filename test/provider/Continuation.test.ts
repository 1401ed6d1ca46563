import { assert, describe, it } from "@effect/vitest";
import { Result, Schema } from "effect";
import * as Continuation from "../../src/provider/Continuation.ts";
import * as A from "./anthropic/Frames.ts";
import { partsOf } from "./continuation/Story.ts";
import * as R from "./openai-responses/Frames.ts";

const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const call = [
  chunk({ content: "look" }),
  chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "bash", arguments: "{}" } }] }),
  chunk({}, "tool_calls"),
];
const received = Continuation.collect("openai-chat", partsOf("openai-chat", call));
const body = { messages: [{ role: "user", content: "hi" }] };
const settled = [{ attempt: 1, call: "0.0", outcome: "settled" }] as const;
const done = { attempt: 1, call: "0.0", output: "done" };

const refused = (input: Partial<Continuation.ContinuationInput>) => {
  const result = Continuation.build("openai-chat", { body, received, calls: settled, results: [], ...input });
  return Result.isFailure(result) ? [result.failure.reason, result.failure.field] : "built";
};

describe("Continuation.build", () => {
  it("refuses a body that is no JSON object, or larger than a request may be", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    for (const bad of [undefined, "x", null, [], 1n, cycle])
      assert.deepStrictEqual(refused({ body: bad }), ["not_json", "body"]);
    const large = { ...body, system: "x".repeat(Continuation.bodyCharactersMax) };
    assert.deepStrictEqual(refused({ body: large }), ["too_large", "body"]);
  });

  it("refuses received state that is none, of another protocol, or more than was held", () => {
    assert.deepStrictEqual(refused({ received: {} }), ["invalid", "received"]);
    assert.deepStrictEqual(refused({ received: { ...received, items: [{ type: "call" }] } }), ["invalid", "received"]);
    assert.deepStrictEqual(refused({ received: { ...received, protocol: "google-gemini" } }), [
      "invalid",
      "received.protocol",
    ]);
    const small = Continuation.collect("openai-chat", partsOf("openai-chat", call), { bytesMax: 100 });
    assert.deepStrictEqual([small.overflow, small.items], [true, []]);
    assert.deepStrictEqual(refused({ received: small }), ["too_large", "received"]);
  });

  it("refuses a result of a call that did not run, and a second result", () => {
    for (const outcome of ["not_run", "it_did_not_run"] as const)
      assert.deepStrictEqual(refused({ calls: [{ ...settled[0], outcome }], results: [done] }), [
        "contradiction",
        "results[0]",
      ]);
    assert.deepStrictEqual(refused({ results: [done, done] }), ["contradiction", "results[1]"]);
  });

  it("does not look at results and outcomes of other answers of the run", () => {
    const other = { attempt: 2, call: "0.0" };
    const input = { body, received, calls: [...settled, { ...other, outcome: "unknown" as const }] };
    const alone = Continuation.build("openai-chat", { ...input, results: [done] });
    assert.deepStrictEqual(
      Continuation.build("openai-chat", { ...input, results: [done, { ...other, output: "x" }] }),
      alone,
    );
    assert.isTrue(Result.isSuccess(alone));
  });

  it("takes the result of a call whose outcome is not on record", () => {
    const result = Continuation.build("openai-chat", { body, received, calls: [], results: [done] });
    const next = Result.isSuccess(result) ? result.success.messages : undefined;
    assert.deepInclude(next, { role: "tool", tool_call_id: "c", content: "done" });
  });

  it("received state survives JSON and its own schema", () => {
    const decode = Schema.decodeUnknownSync(Continuation.Received);
    assert.deepStrictEqual(decode(JSON.parse(JSON.stringify(received))), received);
  });
});

describe("Continuation.collector", () => {
  const text = (index: number, word: string) => A.delta(index, { type: "text_delta", text: word });

  it("forgets exactly what came after an ordinal, inside a text too", () => {
    const frames = [
      A.start,
      A.open(0, { type: "text", text: "" }),
      text(0, "a"),
      text(0, "b"),
      text(0, "c"),
      A.close(0),
    ];
    const parts = partsOf("anthropic-messages", frames);
    for (let keep = 0; keep <= frames.length; keep += 1) {
      const late = Continuation.collector("anthropic-messages");
      parts.forEach((part, at) => {
        late.take(1, at + 1, part);
      });
      late.discard(1, keep);
      const early = Continuation.collect("anthropic-messages", parts, { keepThrough: keep });
      assert.deepStrictEqual(late.received().items, early.items, `kept ${keep}`);
    }
  });

  it("gathers one answer over the attempts that resumed it", () => {
    const first = partsOf("openai-responses", [R.text(0, "a"), R.added(1, R.fn("c1", ""))]);
    const second = partsOf("openai-responses", [R.text(0, "b"), R.done(1, R.fn("c1", "{}"))]);
    const collector = Continuation.collector("openai-responses");
    first.forEach((part, at) => {
      collector.take(1, at + 1, part);
    });
    second.forEach((part, at) => {
      collector.take(2, at + 1, part);
    });
    const { items } = collector.received();
    assert.strictEqual(items[0]?.json["output_text 0"], "ab");
    assert.deepStrictEqual(
      items.flatMap((item) => (item.type === "call" && item.whole ? [[item.attempt, item.call]] : [])),
      [[2, "0.0"]],
    );
    collector.discard(2, 0);
    assert.strictEqual(collector.received().items[0]?.json["output_text 0"], "a");
  });

  it("distinguishes blocks to which a server gives the same number", () => {
    const frames = [
      A.start,
      A.open(0, { type: "text", text: "a" }),
      A.close(0),
      A.open(0, { type: "text", text: "b" }),
      A.close(0),
    ];
    const { items } = Continuation.collect("anthropic-messages", partsOf("anthropic-messages", frames));
    assert.deepStrictEqual(
      items.map((item) => item.json.text),
      ["a", "b"],
    );
  });

  it("holds a million deltas within its limit, and says so when it does not", () => {
    const [part] = partsOf("openai-chat", [chunk({ content: "word " })]);
    if (part === undefined) return assert.fail("a part");
    const collector = Continuation.collector("openai-chat");
    for (let ordinal = 1; ordinal <= 1_000_000; ordinal += 1) collector.take(1, ordinal, part);
    const { items, overflow } = collector.received();
    assert.deepStrictEqual([overflow, String(items[0]?.json.text).length], [false, 5_000_000]);
    for (let ordinal = 1; ordinal <= 2_000_000; ordinal += 1) collector.take(1, 1_000_000 + ordinal, part);
    assert.isTrue(collector.received().overflow);
  });
});
