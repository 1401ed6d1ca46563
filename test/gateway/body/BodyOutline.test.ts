import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { levelsMax } from "../../../src/adapters/relay/form/JsonScan.ts";
import { recognise, recogniseBody } from "../../../src/adapters/relay/RelayPlan.ts";
import * as Json from "../../../src/domain/Json.ts";
import {
  type KnownBody,
  outlineBytesMax,
  readKnownBody,
  textBytesMax,
  wholeBytesMax,
} from "../../../src/gateway/body/BodyOutline.ts";
import { standIn } from "../../../src/gateway/body/OutlineText.ts";
import { samples } from "../../samples/index.ts";
import { boundBodies, free } from "../routes/BoundBodies.ts";
import { compareOutlines, leftOf } from "./OutlineCases.ts";

const bytesOf = (text: string) => Buffer.from(text, "utf8");

/** A text of a body that is large only by its conversation. */
const large = (body: object, list: "messages" | "input" | "contents" = "messages"): string =>
  JSON.stringify({ ...body, [list]: [{ role: "user", content: "word ".repeat(wholeBytesMax / 5) }] });

const known = (text: string | Uint8Array<ArrayBuffer>) =>
  Effect.map(readKnownBody(typeof text === "string" ? bytesOf(text) : text), (found) => found);

const jsonOf = (found: KnownBody | string): Json.JsonRecord => {
  if (typeof found === "string") throw new Error(found);
  return found.json;
};

describe("The outline of a large body", () => {
  it("is JSON.parse's value without what is left out, whatever the body says and however it is spelt", () => {
    assert.isAbove(compareOutlines(1, 4_001), 1_000);
  });

  it.effect("is made of a body that is longer than one which is parsed whole, by one byte", () =>
    Effect.gen(function* () {
      const ofLength = (bytes: number) => {
        const body = '{"model":"m","messages":[""]}';
        return body.replace('""', `"${"a".repeat(bytes - body.length)}"`);
      };
      const whole = yield* known(ofLength(wholeBytesMax));
      const beyond = yield* known(ofLength(wholeBytesMax + 1));
      assert.deepInclude(whole, { isOutline: false });
      assert.lengthOf(Json.list(jsonOf(whole).messages), 1);
      assert.deepInclude(beyond, { isOutline: true });
      assert.deepStrictEqual(jsonOf(beyond), { model: "m", messages: [] });
    }),
  );

  it.effect("has what a request is recognised by: its plan is that of the whole body, in every protocol", () =>
    Effect.gen(function* () {
      const bodies = [...boundBodies.map(([, protocol, body]) => [protocol, body] as const), ...Object.entries(free)];
      for (const [protocol, body] of bodies) {
        // The registry's ids are the keys of both tables.
        const url = `https://api.test${samples[protocol as keyof typeof samples].path}`;
        const padded = { ...body, instructions: "word ".repeat(wholeBytesMax / 5) };
        const request = { method: "POST", url, headers: [], body: JSON.stringify(padded) };
        const found = yield* known(request.body);
        assert.deepInclude(found, { isOutline: true });
        const { request: _, ...plan } = recognise(request) ?? { request, protocol: undefined };
        const { request: __, ...planned } = recogniseBody(request, jsonOf(found)) ?? {};
        assert.isDefined(plan.protocol, request.body.slice(0, 99));
        assert.deepStrictEqual(planned, plan, request.body.slice(0, 99));
      }
    }),
  );

  it.effect("uses the last of two members with the same name, and keeps __proto__ as a member", () =>
    Effect.gen(function* () {
      const text = large({ model: "first" }).replace(/}$/, ',"model":"last","messages":"none","__proto__":{"n":3}}');
      const json = jsonOf(yield* known(text));
      assert.strictEqual(JSON.stringify(json), '{"model":"last","messages":"","__proto__":{"n":3}}');
      assert.isUndefined(json.n);
    }),
  );

  it.effect("has a stand-in for a text that is longer than any name, and the longest name as it is", () =>
    Effect.gen(function* () {
      const name = "n".repeat(textBytesMax - 2);
      const json = jsonOf(yield* known(large({ model: name, user: `${name}n`, tools: [`${name}n`] })));
      assert.deepInclude(json, { model: name, user: standIn, tools: [standIn] });
    }),
  );

  it.effect("is none where no object of JSON stands: what follows a long conversation counts too", () =>
    Effect.gen(function* () {
      const text = large({ model: "m" });
      for (const other of [
        `${text}x`,
        text.slice(0, -1),
        text.replace(/^{/, "["),
        `[${text}]`,
        JSON.stringify(text),
        text.replace("word", "\n"),
      ])
        assert.strictEqual(yield* known(other), "not_an_object", other.slice(0, 20));
      assert.notTypeOf(yield* known(`\ufeff${text}`), "string");
    }),
  );

  it.effect("is none where more stands beside the conversation than is kept, or more levels than are read", () =>
    Effect.gen(function* () {
      const tools = (count: number) => Array.from({ length: count }, () => ({ name: "x".repeat(1_000) }));
      assert.strictEqual(yield* known(large({ tools: tools(outlineBytesMax / 1_000) })), "unread");
      assert.notTypeOf(yield* known(large({ tools: tools(outlineBytesMax / 1_024) })), "string");
      const deep = (levels: number) =>
        `{"messages":[" ${"a".repeat(wholeBytesMax)}",${"[".repeat(levels)}${"]".repeat(levels)}]}`;
      assert.notTypeOf(yield* known(deep(levelsMax - 2)), "string");
      assert.strictEqual(yield* known(deep(levelsMax - 1)), "unread");
      const described = tools(300).map((tool) => ({
        ...tool,
        name: "f",
        description: "d".repeat(9_000),
        input_schema: { tool },
      }));
      const body = { model: "m", tools: described };
      assert.deepStrictEqual(jsonOf(yield* known(large(body))), leftOf({ ...body, messages: [] }));
    }),
  );
});
