/** A continuation's request has the numbers of the first one digit for digit (DESIGN.md, 16). */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { recognise } from "../../../../src/adapters/relay/RelayPlan.ts";
import type { RelayTransport } from "../../../../src/adapters/relay/RelayTransport.ts";
import { markWideNumbers } from "../../../../src/adapters/relay/seam/WideNumbers.ts";
import { layer } from "../RelayCases.ts";
import { honest, transportOf } from "./HonestModel.ts";
import { planOf, played, readAs, requests } from "./SeamCases.ts";

const again = (text: string): string => {
  const { restore: restored, text: safe } = markWideNumbers(text);
  return restored(JSON.stringify(JSON.parse(safe)));
};

describe("numbers that no double holds", () => {
  it("keep their digits where a body is parsed and written again", () => {
    for (const number of [
      ...["9007199254740993", "-9223372036854775808", "18446744073709551615", "12345678901234567890123"],
      ...["0.1000000000000000000001", "1e400", "-1.5E+999", "123456789012345678e3"],
    ]) {
      assert.strictEqual(again(`[${number},{"a":${number}}]`), `[${number},{"a":${number}}]`);
      assert.notStrictEqual(JSON.stringify(JSON.parse(number)), number);
    }
  });

  it("are told from those that a double holds, which are written as ever", () => {
    for (const [number, as] of [
      ...[
        ["0", "0"],
        ["-0.0", "0"],
        ["1.0", "1"],
        ["1e3", "1000"],
        ["0.30000000000000004", "0.30000000000000004"],
      ],
      ...[
        ["9007199254740992", "9007199254740992"],
        ["1e22", "1e+22"],
        ["100000000000000000000", "100000000000000000000"],
      ],
      ...[
        ["1.50000000000000000000", "1.5"],
        ["0.000000000000000000001", "1e-21"],
      ],
    ] as const) {
      assert.strictEqual(markWideNumbers(number).text, number);
      assert.strictEqual(again(number), as);
    }
  });

  it("are no numbers inside a text, whatever that says", () => {
    const texts = [
      "9007199254740993",
      'a "9007199254740993" b',
      "\\",
      '\\"9007199254740993',
      "number:9007199254740993",
    ];
    const text = JSON.stringify(texts);
    assert.deepStrictEqual(markWideNumbers(text).text, text);
    const both = `[${texts.map((it) => JSON.stringify(it)).join()},9007199254740993]`;
    assert.strictEqual(again(both), both);
    assert.deepStrictEqual(JSON.parse(again(both)).slice(0, -1), texts);
  });

  const said = {
    text: "The lock is taken in open() and given back in close(), which is what a caller has to know of it.",
  };

  const sent = (body: string | Uint8Array<ArrayBuffer>) =>
    Effect.gen(function* () {
      const plan = recognise({ ...planOf("openai-chat").request, body });
      if (plan === undefined) return assert.fail("not recognised");
      const bodies: Array<string> = [];
      const replies = honest("openai-chat", said, [6]);
      const { transport } = transportOf(replies);
      const keeping: RelayTransport = {
        open: (request, reporters) => {
          bodies.push(typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body));
          return transport.open(request, reporters);
        },
      };
      const got = yield* Effect.scoped(played(plan, replies, { transport: keeping }));
      return { bodies, got };
    });

  const schema = '{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}';
  const body = `${JSON.stringify({ ...requests["openai-chat"], seed: 0 }).replace('"seed":0', '"seed":12345678901234567890')}`;
  const withTool = body.replace(
    '"stream":true',
    `"stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]`,
  );

  it.live("go with the request of a continuation", () =>
    Effect.gen(function* () {
      const { bodies, got } = yield* sent(withTool);
      assert.strictEqual(bodies.length, 2);
      assert.include(bodies[1], '"seed":12345678901234567890');
      assert.include(bodies[1], schema);
      assert.deepStrictEqual([got.end, readAs("openai-chat", got.text).text], ["end", said.text]);
    }).pipe(Effect.provide(layer)),
  );

  it.live("stand beside bytes that are no text: those cannot be sent again, and nothing goes on", () =>
    Effect.gen(function* () {
      const bytes = new TextEncoder().encode(body.replace("Tell me.", "Tell ? me."));
      bytes[bytes.indexOf(0x3f)] = 0xff;
      const { bodies, got } = yield* sent(bytes);
      assert.deepStrictEqual([bodies.length, got.end], [1, "text_shown"]);
    }).pipe(Effect.provide(layer)),
  );
});
