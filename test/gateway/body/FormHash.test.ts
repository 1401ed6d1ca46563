import { createHash } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { canonical, canonicalBytesMax, sharedBytesMax } from "../../../src/adapters/relay/form/CanonicalBody.ts";
import { partsOf } from "../../../src/adapters/relay/form/RequestForm.ts";
import { wholeBytesMax } from "../../../src/gateway/body/BodyOutline.ts";
import { formHash } from "../../../src/gateway/body/FormHash.ts";

const hashOf = (body: string | Uint8Array<ArrayBuffer>) => {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  return formHash({ words: ["w", 1], body: bytes, leftOut: new Set(["stream"]) }, createHash("sha256"));
};

/** A body of so many bytes. */
const bodyOf = (bytes: number): string => {
  const text = '{"stream":true, "model":"m","input":""}';
  return text.replace('""', `"${"a".repeat(bytes - text.length)}"`);
};

describe("The digest of a request's form", () => {
  it("is there at once for a body that is parsed whole, and is the same digest for a large one", async () => {
    for (const bytes of [wholeBytesMax, wholeBytesMax + 1]) {
      const body = Buffer.from(bodyOf(bytes));
      const digest = hashOf(body);
      assert.strictEqual(typeof digest === "string", bytes === wholeBytesMax);
      const form = canonical(body, new Set(["stream"]));
      if (form === undefined) return assert.fail("no form");
      const expected = createHash("sha256").update('[false,"w",1]').update(form).digest("hex");
      assert.strictEqual(await digest, expected);
    }
  });

  it("of a large body is the same for every spelling, and for no other body", async () => {
    for (const bytes of [2 * wholeBytesMax, canonicalBytesMax + 9_000]) await comparesSpellings(bodyOf(bytes));
  });

  const comparesSpellings = async (body: string) => {
    const same = [
      body.replace('"stream":true, ', ""),
      body.replace('"m",', '"m" ,\n'),
      JSON.stringify({ input: JSON.parse(body).input, model: "m" }),
    ];
    for (const other of same) assert.strictEqual(await hashOf(other), await hashOf(body));
    const others = [`${body} x`, body.replace("aa", "ab"), body.replace('"m"', '"n"'), body.replace("}", ',"n":1}')];
    const digests = await Promise.all([...others, body].map(hashOf));
    assert.strictEqual(new Set(digests).size, digests.length);
  };

  it("is that of the body alone, whatever was made a digest of before, and also where it is asked for a step later", async () => {
    const formOf = (bytes: number) => JSON.stringify({ input: "a".repeat(bytes), model: "m" });
    for (const bytes of [1, sharedBytesMax - 100, 10, sharedBytesMax + 1, 100]) {
      const expected = createHash("sha256").update('[false,"w",1]').update(formOf(bytes)).digest("hex");
      assert.strictEqual(hashOf(`{ "model":"m", "input":"${"a".repeat(bytes)}" }`), expected);
    }
    const blobs = [7, 3].map((bytes) => {
      return new Blob(partsOf({ words: [], body: Buffer.from(formOf(bytes)), leftOut: new Set() }));
    });
    const texts = await Promise.all(blobs.map((blob) => blob.text()));
    assert.deepStrictEqual(
      texts,
      [7, 3].map((bytes) => `[false]${formOf(bytes)}`),
    );
  });
});
