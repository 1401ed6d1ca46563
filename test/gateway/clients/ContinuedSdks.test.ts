/** The official SDKs read a response that was continued after a break as a whole one (DESIGN.md, 16). */
import { createOpenAI } from "@ai-sdk/openai";
import { assert, describe, it } from "@effect/vitest";
import { streamText } from "ai";
import { Effect } from "effect";
import OpenAI from "openai";
import { protocols } from "../../../src/provider/Protocols.ts";
import { honest, type Said, serveModel, written } from "../../adapters/relay/seam/HonestModel.ts";
import { readAs } from "../../adapters/relay/seam/SeamCases.ts";
import { front } from "../GatewayCases.ts";
import { type SdkReader, sdkReaders } from "./SdkReaders.ts";

const said: Said = {
  text: "The lock is taken in open() and given back in close(). A second caller waits for it, and goes on once it may.",
  call: { name: "read", input: { path: "lock.ts" } },
};

/** Removes the differences between readings that split the text differently or count two requests. */
const together = (value: unknown): unknown => {
  if (Array.isArray(value)) return joined(value.map(together));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => !counted.has(key));
  return Object.fromEntries(kept.map(([key, it]) => [key, together(it)]));
};

const counted = new Set([
  "usage",
  "usageMetadata",
  "usage_metadata",
  "totalUsage",
  "raw",
  "providerMetadata",
  "sequence_number",
]);

/** Merges neighbours that differ only in their text. */
const joined = (list: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const out: Array<unknown> = [];
  for (const one of list) {
    if (typeof one === "object" && one !== null && (Object.keys(one).length === 0 || "promptTokenCount" in one))
      continue;
    const last = out.at(-1);
    const both = textsOf(last, one);
    if (both === undefined) out.push(one);
    else out[out.length - 1] = both;
  }
  return out;
};

const textsOf = (last: unknown, one: unknown): object | undefined => {
  if (typeof last !== "object" || last === null || typeof one !== "object" || one === null) return undefined;
  if (!("text" in last) || !("text" in one)) return undefined;
  const text = `${String(last.text)}${String(one.text)}`;
  const alike = JSON.stringify({ ...last, text: "" }) === JSON.stringify({ ...one, text: "" });
  return alike ? { ...last, text } : undefined;
};

/** Responses that OpenAI does not store, which the shared readers do not request: a stored response is never continued. */
const unstored: ReadonlyArray<SdkReader> = [
  {
    name: "openai, responses.stream()",
    protocol: "openai-responses",
    read: (origin, maxRetries) =>
      new OpenAI({ apiKey: "k", baseURL: `${origin}/v1`, maxRetries }).responses
        .stream({ model: "m", input: "hi", store: false })
        .finalResponse(),
  },
  {
    name: "AI SDK, openai.responses",
    protocol: "openai-responses",
    read: async (origin, maxRetries) => {
      const model = createOpenAI({ apiKey: "k", baseURL: `${origin}/v1` }).responses("m");
      const providerOptions = { openai: { store: false } };
      const result = streamText({ model, prompt: "hi", maxRetries, providerOptions, onError: () => undefined });
      for await (const part of result.fullStream) if (part.type === "error") throw part.error;
      const { id } = await result.response;
      const calls = (await result.toolCalls).map(({ input, toolName }) => ({ input, toolName }));
      return { id, calls, text: await result.text, finish: await result.finishReason };
    },
  },
];

const isStored = ({ protocol }: SdkReader): boolean => protocol === "openai-responses";

const readers = [
  ...sdkReaders.filter((reader) => !reader.name.endsWith(", raw") && !isStored(reader)),
  ...unstored,
].filter(({ protocol }) => protocols.get(protocol).splice !== undefined);

describe("an SDK with a gateway that has --continue-text auto", () => {
  for (const { name, protocol, read } of readers) {
    it.live(`${name} (${protocol}) reads the same as from a response that never broke`, () =>
      Effect.gen(function* () {
        const events = written(protocol, said, { number: 1, piece: 7 });
        const firstText = events.findIndex((event) => readAs(protocol, event).text !== "");
        const whole = yield* serveModel(() => ({ events }));
        const expected = yield* Effect.promise(() => read(whole.url, 0));
        for (const at of [firstText + 2, firstText + 9]) {
          const model = yield* serveModel(honest(protocol, said, [at]));
          const gateway = yield* front(model.url, { continueText: "auto", reveal: "live" });
          const got = yield* Effect.promise(() => read(gateway.url, 0));
          assert.strictEqual(model.asked[1]?.quote === undefined, false);
          assert.deepStrictEqual(named(together(got)), named(together(expected)));
        }
      }),
    );
  }
});

/** Removes the numbers of calls, because those of a continuation have their own names. */
const named = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/"(call|toolu|fc|rs)_[\d_]+"/g, '"$1"'));
