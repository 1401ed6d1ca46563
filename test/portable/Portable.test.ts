/**
 * The entries that promise to run without Node are bundled as a browser's bundler does, and run where no Node is.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { assert, beforeAll, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { type Bundle, bundle } from "./Bundle.ts";

const root = join(import.meta.dirname, "../..");

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    exports: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Struct({ default: Schema.String })])),
  }),
);
const manifest = Schema.decodeSync(Manifest)(readFileSync(join(root, "package.json"), "utf8"));

/** The source of an entry of the package. */
const sourceOf = (entry: string): string => {
  const target = manifest.exports[entry];
  if (target === undefined || typeof target === "string") throw new Error(`package.json exports no ${entry}`);
  return join(root, target.default.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts"));
};

describe("an entry that runs without Node", () => {
  for (const entry of [
    ".",
    "./policy",
    "./provider",
    "./fetch",
    "./promise",
    "./ai-sdk",
    "./effect-ai",
    "./stages",
    "./otlp",
  ]) {
    it(`imports nothing of a runtime's, with all that it loads of effect: ${entry}`, async () => {
      const { complaints, outside } = await bundle(sourceOf(entry));
      assert.deepStrictEqual(outside, []);
      assert.deepStrictEqual(complaints, []);
    });
  }

  it("is told from one that needs Node", async () => {
    const { outside } = await bundle(sourceOf("./provider-model"));
    assert.include(outside.join("\n"), "node:net from ");
    assert.include(outside.join("\n"), "@effect/platform-node/Undici from ");
  });
});

/** What a page has, and no `process`, `Buffer`, `require` or `setImmediate`. */
const page = {
  AbortController,
  AbortSignal,
  Blob,
  DOMException,
  Headers,
  ReadableStream,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  TransformStream,
  URL,
  URLSearchParams,
  WritableStream,
  clearInterval,
  clearTimeout,
  console,
  crypto,
  performance,
  queueMicrotask,
  setInterval,
  setTimeout,
  structuredClone,
  // A page has one realm: bytes of its streams are of the page's own class.
  ArrayBuffer,
  Uint8Array,
};

describe("a page without Node", () => {
  let built: Bundle;
  beforeAll(async () => {
    built = await bundle(join(import.meta.dirname, "Turns.ts"));
  });

  const play = async (turn: string): Promise<unknown> => {
    const context = createContext({ ...page });
    runInContext(built.code, context);
    assert.strictEqual(runInContext("typeof process + typeof Buffer + typeof require", context), "undefined".repeat(3));
    return JSON.parse(String(await runInContext(`bundled.${turn}.then(JSON.stringify)`, context)));
  };

  const recovered = { text: "GOOD", requests: 2 };

  for (const turn of ["processor()", "effectAi()", "aiSdk()"]) {
    it(`recovers a broken stream: ${turn}`, async () => {
      assert.deepStrictEqual(await play(turn), recovered);
    });
  }

  for (const [whose, words] of [
    ["Chromium", "network error"],
    ["Firefox", "Error in input stream"],
    ["Safari", "Load failed"],
    ["Workers", "Network connection lost."],
    ["Deno", "error reading a body from connection"],
    ["Bun", "The socket connection was closed unexpectedly. For more information, pass `verbose: true`"],
  ] as const) {
    it(`recovers a body that breaks in the words of ${whose} through ./fetch`, async () => {
      const broken = `fetched(() => new TypeError(${JSON.stringify(words)}))`;
      assert.deepStrictEqual(await play(broken), recovered);
    });
  }
});
