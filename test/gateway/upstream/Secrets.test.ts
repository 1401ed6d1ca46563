import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import type { Bytes } from "../../../src/gateway/upstream/ContentDecoding.ts";
import { Secrets, secretsOf } from "../../../src/gateway/upstream/Secrets.ts";

const key = 'sk-Ab/+"é-0123456789';

async function* piecesOf(text: Buffer, size: number): AsyncGenerator<Bytes> {
  for (let at = 0; at < text.length; at += size) yield new Uint8Array(text.subarray(at, at + size));
}

const collected = async (chunks: AsyncIterable<Bytes>): Promise<ReadonlyArray<Bytes>> => {
  const all: Array<Bytes> = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
};

describe("an operator's secret", () => {
  const secrets = new Secrets([key]);
  const spellings = [
    ...[key, JSON.stringify(key).slice(1, -1), JSON.stringify(key).slice(1, -1).replaceAll("/", "\\/")],
    ...[encodeURIComponent(key), encodeURIComponent(key).toLowerCase().replace("ab", "Ab")],
  ];

  it.live("is masked in each spelling, cut anywhere, and every other byte stays", () =>
    Effect.promise(async () => {
      for (const spelling of spellings) {
        const text = Buffer.from(`sk-Ab ${spelling}${spelling}, sk-Ab/+ sk-sk-${spelling} sk`);
        for (let size = 1; size <= text.length; size += 1) {
          const masked = Buffer.concat(await collected(secrets.body(piecesOf(text, size)))).toString();
          assert.strictEqual(Buffer.byteLength(masked), text.length);
          const stars = "*".repeat(Buffer.byteLength(spelling));
          assert.strictEqual(masked, `sk-Ab ${stars}${stars}, sk-Ab/+ sk-sk-${stars} sk`);
        }
        assert.notInclude(secrets.text(`a ${spelling}`), spelling);
      }
    }),
  );

  it.live("holds no bytes back but those that may begin it", () =>
    Effect.promise(async () => {
      const chunks = await collected(secrets.body(piecesOf(Buffer.from("data: 1\n\ndata: 2\n\nsk-"), 9)));
      assert.deepStrictEqual(
        chunks.map((chunk) => Buffer.from(chunk).toString()),
        ["data: 1\n\n", "data: 2\n\n", "sk-"],
      );
    }),
  );

  it("is the credential, and each header that holds one, without its scheme", () => {
    const headers = [
      ["authorization", "Bearer other-secret-1"],
      ["x-api-key", "other-secret-2"],
      ["x-team", "our-team"],
    ] as const;
    const found = secretsOf({ name: "a", url: "https://a", headers, credential: Redacted.make("secret-3") });
    assert.strictEqual(
      found?.text("Bearer other-secret-1, other-secret-2, our-team, secret-3"),
      "Bearer **************, **************, our-team, ********",
    );
    assert.isUndefined(secretsOf({ name: "a", url: "https://a", headers: [["x-team", "our-team"]] }));
  });

  it("is no placeholder, which stands in ordinary words", () => {
    assert.strictEqual(new Secrets(["x", "none"]).text("x is none"), "x is none");
  });
});
