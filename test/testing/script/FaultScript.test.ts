import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultScript } from "../../../src/testing/index.ts";

const refused: ReadonlyArray<readonly [unknown, string]> = [
  [3, "script: "],
  [{ answer: [] }, "answer: "],
  [{ answers: [] }, "answers: "],
  [{ answers: [{ delay: 3 }] }, "answers[0].delay: "],
  [{ answers: [{}, { status: 700 }] }, "answers[1].status: "],
  [{ answers: [{ break: { kind: "rts", at: "event" } }] }, 'answers[0].break.kind: Expected "rst"'],
  [{ answers: [{ break: { kind: "rst", at: "evnet" } }] }, "answers[0].break.at: "],
  [
    { answers: [{ break: { kind: "end", at: "before_head" } }] },
    "answers[0].break: Expected rst, fin or stall at before_head",
  ],
  [{ answers: [{ content: [{ text: 1, tool: "bash" }] }] }, "answers[0].content[0]: Expected exactly one of"],
  [{ answers: [{ content: [{ text: -1 }] }] }, "answers[0].content[0].text: "],
  [{ answers: [{ content: [{ text: 1e9 }] }] }, "answers[0].content[0].text: "],
  [{ scripts: { b: [{ keep_alive: { every_ms: 0 } }] } }, "scripts.b[0].keep_alive.every_ms: "],
];

describe("FaultScript", () => {
  for (const [input, line] of refused) {
    it.effect(`names the field of ${JSON.stringify(input)} in one line`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(FaultScript.decode(input));
        assert.strictEqual(error.reason, "invalid");
        assert.isTrue(error.message.startsWith(line), error.message);
        assert.notInclude(error.message, "\n");
      }),
    );
  }

  it.effect("reports a text that is not JSON", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(FaultScript.parse("{"))).reason, "not_json");
    }),
  );

  it.effect("fills in the defaults of an empty script and of an empty answer", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* FaultScript.parse("{}"), { after: "repeat" });
      const script = yield* FaultScript.decode({ answers: [{ break: { kind: "rst", at: "event" } }] });
      assert.deepStrictEqual(script.answers, [
        { status: 200, usage: true, framing: "chunked", break: { kind: "rst", at: "event", n: 0 } },
      ]);
    }),
  );
});
