import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { canonical, depthMax } from "../../../../src/adapters/relay/form/CanonicalBody.ts";
import {
  CanonicalSpans,
  membersMax,
  pieceBytes,
  spansMax,
} from "../../../../src/adapters/relay/form/CanonicalSpans.ts";
import { scanned } from "../../../../src/adapters/relay/form/JsonScan.ts";
import { takeParts } from "../../../../src/adapters/relay/form/RequestForm.ts";
import { seeded } from "../../../Seeded.ts";
import { nearlyJson, parsed } from "./JsonTexts.ts";

const none: ReadonlySet<string> = new Set();

const formOf = Effect.fnUntraced(function* (body: Uint8Array | string, leftOut = none) {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const spans = new CanonicalSpans(bytes);
  const pieces = (yield* scanned(bytes, spans)) === "json" ? spans.pieces(leftOut) : undefined;
  return pieces === undefined ? undefined : Buffer.concat(Array.from(pieces, (piece) => Buffer.from(piece)));
});

describe("The canonical form of a large body", () => {
  it.effect("is that of a small one, byte for byte, and none where that has none", () =>
    Effect.gen(function* () {
      let forms = 0;
      for (let seed = 1; seed <= 4_000; seed += 1) {
        const bytes = nearlyJson(seeded(seed));
        // The form of a small body is asked of it before anybody has looked whether it is JSON.
        const expected = parsed(bytes) === undefined ? undefined : canonical(bytes, leftOut);
        const form = yield* formOf(bytes, leftOut);
        const said = `seed ${seed}: ${Buffer.from(bytes).toString("latin1")}`;
        assert.strictEqual(form?.toString("latin1"), expected && Buffer.from(expected).toString("latin1"), said);
        if (form !== undefined) forms += 1;
      }
      assert.isAbove(forms, 400);
    }),
  );

  it.effect("is the same for every order of keys and every spacing, over many pieces", () =>
    Effect.gen(function* () {
      const message = (n: number) => ({
        role: "user",
        content: [{ type: "text", text: `"${n}" ${"é".repeat(n % 999)}` }],
      });
      const messages = Array.from({ length: 2_000 }, (_, n) => message(n));
      const turned = messages.map(({ content, role }) => ({ content, role }));
      const one = yield* formOf(JSON.stringify({ model: "m", messages }));
      const other = yield* formOf(JSON.stringify({ messages: turned, model: "m" }, null, 2));
      assert.isAbove(one?.length ?? 0, 10 * pieceBytes);
      assert.isTrue(other !== undefined && one?.equals(other));
      assert.strictEqual(
        one?.toString(),
        JSON.stringify({
          messages: turned.map(({ content: [text], role }) => ({
            content: [{ text: text?.text, type: "text" }],
            role,
          })),
          model: "m",
        }),
      );
    }),
  );

  it.effect("ends within its limits: what has more parts, members or levels has none", () =>
    Effect.gen(function* () {
      const list = (count: number) => `{"a":[${Array.from({ length: count }, () => '{"b":1,"a":2}').join(",")}]}`;
      const wide = (count: number) => objectOf(Array.from({ length: count }, (_, n) => `k${n}`));
      const nested = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
      assert.isDefined(yield* formOf(list(spansMax / 5 - 9)));
      assert.isUndefined(yield* formOf(list(spansMax / 4)));
      assert.isDefined(yield* formOf(wide(membersMax)));
      assert.isUndefined(yield* formOf(wide(membersMax + 1)));
      assert.isDefined(yield* formOf(nested(depthMax - 1)));
      assert.isUndefined(yield* formOf(nested(depthMax)));
      // What stands as it stands in the form is one part, however many values it holds.
      assert.isDefined(yield* formOf(`{"a":[${"[1,2],".repeat(spansMax / 2)}1]}`));
    }),
  );

  it.effect("stands behind its words, and a body without one is another than that of the same bytes", () =>
    Effect.gen(function* () {
      const parts = Effect.fnUntraced(function* (body: string) {
        const taken: Array<string> = [];
        const bytes = Buffer.from(body);
        yield* takeParts({ words: ["w"], body: bytes, leftOut: new Set(["stream"]) }, bytes, (part) =>
          taken.push(typeof part === "string" ? part : Buffer.from(part).toString()),
        );
        return taken;
      });
      assert.deepStrictEqual(yield* parts('{"b":1, "stream":true, "a":2}'), ['[false,"w"]', '{"a":2,"b":1}']);
      assert.deepStrictEqual(yield* parts('{"b":1,"b":2}'), ['[true,"w"]', '{"b":1,"b":2}']);
      const long = `${"x".repeat(3 * pieceBytes)}`;
      assert.strictEqual((yield* parts(long)).slice(1).join(""), long);
    }),
  );
});

const leftOut: ReadonlySet<string> = new Set(["messages", "0"]);

const objectOf = (keys: ReadonlyArray<string>): string => `{${keys.map((key) => `"${key}":1`).join(",")}}`;
