/**
 * The work of a tool call's arguments grows with their length and not faster, in all four protocols (L11). Work is counted and
 * never timed: characters that JSON.parse reads, and characters of the texts that string methods are asked of.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Continuation from "../../src/provider/Continuation.ts";
import type { Protocol, ProtocolId } from "../../src/provider/Protocols.ts";
import * as Decoder from "../../src/provider/stream/Decoder.ts";
import { protocols } from "../client/Protocols.ts";

/** How the arguments come. */
interface Shape {
  readonly name: string;
  readonly protocol: ProtocolId;
  /** The frames before, for one piece of text, and after. */
  readonly before: ReadonlyArray<object>;
  readonly piece: (text: string, index: number) => object;
  readonly after: ReadonlyArray<object>;
}

const chat = (call: object, extra: object = {}) => ({
  choices: [{ index: 0, delta: { tool_calls: [call] }, ...extra }],
});
const written = { index: 0, id: "c", type: "function" };

const shapes: ReadonlyArray<Shape> = [
  {
    name: "as the API sends them",
    protocol: "openai-chat",
    before: [chat({ ...written, function: { name: "write", arguments: '{"content":"' } })],
    piece: (text) => chat({ index: 0, function: { arguments: text } }),
    after: [
      chat({ index: 0, function: { arguments: '"}' } }),
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    ],
  },
  {
    name: "with the name in every delta",
    protocol: "openai-chat",
    before: [chat({ ...written, function: { name: "write", arguments: '{"content":"' } })],
    piece: (text) => chat({ ...written, function: { name: "write", arguments: text } }),
    after: [{ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }],
  },
  {
    name: "with another id in every delta",
    protocol: "openai-chat",
    before: [chat({ ...written, function: { name: "write", arguments: '{"content":"' } })],
    piece: (text, index) => chat({ ...written, id: `c${index}`, function: { name: "write", arguments: text } }),
    after: [{ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }],
  },
  {
    name: "with a finish in every delta",
    protocol: "openai-chat",
    before: [
      chat({ ...written, function: { name: "write", arguments: '{"content":"' } }, { finish_reason: "tool_calls" }),
    ],
    piece: (text) => chat({ index: 0, function: { arguments: text } }, { finish_reason: "tool_calls" }),
    after: [],
  },
  {
    name: "behind whole JSON",
    protocol: "openai-chat",
    before: [chat({ ...written, function: { name: "write", arguments: '{"a":1}' } })],
    piece: (text) => chat({ index: 0, function: { arguments: text } }),
    after: [],
  },
  {
    name: "as one endless number",
    protocol: "openai-chat",
    before: [chat({ ...written, function: { name: "write", arguments: "1" } })],
    piece: (text) => chat({ ...written, function: { name: "write", arguments: "1".repeat(text.length) } }),
    after: [],
  },
  {
    name: "as the API sends them",
    protocol: "anthropic-messages",
    before: [
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t", name: "write", input: {} } },
    ],
    piece: (text) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: text },
    }),
    after: [
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" } },
    ],
  },
  {
    name: "as the API sends them",
    protocol: "openai-responses",
    before: [
      {
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "function_call", call_id: "c", name: "write" },
      },
    ],
    piece: (delta) => ({ type: "response.function_call_arguments.delta", output_index: 0, delta }),
    after: [{ type: "response.completed", response: { status: "completed", output: [] } }],
  },
  {
    name: "as one text in pieces",
    protocol: "google-gemini",
    before: [{ candidates: [{ content: { parts: [{ functionCall: { name: "write", willContinue: true } }] } }] }],
    piece: (text) => gemini([{ jsonPath: "$.content", stringValue: text, willContinue: true }]),
    after: [],
  },
  {
    name: "as one path after the other",
    protocol: "google-gemini",
    before: [{ candidates: [{ content: { parts: [{ functionCall: { name: "write", willContinue: true } }] } }] }],
    piece: (text, index) => gemini([{ jsonPath: `$.c${index}`, stringValue: text }]),
    after: [],
  },
];

const gemini = (partialArgs: ReadonlyArray<object>) => ({
  candidates: [{ content: { parts: [{ functionCall: { partialArgs, willContinue: true } }] } }],
});

/** Methods that read a whole text. */
const methods = ["trim", "startsWith", "includes", "indexOf", "slice", "split", "replace"] as const;

/** Puts a counter in front of a method; the function that comes back takes it away. */
const watched = (holder: object, name: string, price: (self: unknown, args: ReadonlyArray<unknown>) => void) => {
  const original: unknown = Reflect.get(holder, name);
  if (typeof original !== "function") throw new Error(`${name} is no method`);
  const value = function (this: unknown, ...args: ReadonlyArray<unknown>): unknown {
    price(this, args);
    return Reflect.apply(original, this, args);
  };
  Object.defineProperty(holder, name, { value, configurable: true, writable: true });
  return () => Object.defineProperty(holder, name, { value: original, configurable: true, writable: true });
};

const lengthOf = (value: unknown): number =>
  typeof value === "string" || Array.isArray(value) ? value.length : value instanceof String ? value.length : 0;

/** Longest text of which a single character costs one: a longer one is a rope, which is made flat first. */
const pieceCharactersMax = 4_000;

/** Counts characters and list entries that are looked at while something runs. */
const workOf = (run: () => void): number => {
  let work = 0;
  const whole = (self: unknown) => {
    work += lengthOf(self);
  };
  const one = (self: unknown) => {
    work += lengthOf(self) > pieceCharactersMax ? lengthOf(self) : 1;
  };
  const undo = [
    watched(JSON, "parse", (_, [text]) => whole(text)),
    watched(Array.prototype, "with", whole),
    watched(String.prototype, "charCodeAt", one),
    ...methods.map((name) => watched(String.prototype, name, whole)),
  ];
  try {
    run();
  } finally {
    for (const each of undo) each();
  }
  return work;
};

const play = (protocol: Protocol, shape: Shape, pieces: number): void => {
  const decoder = Decoder.make(protocol);
  const collector = Continuation.collector(shape.protocol);
  const text = "y".repeat(20);
  let ordinal = 0;
  const push = (frame: object): void => {
    for (const part of decoder.push(new TextEncoder().encode(`data: ${JSON.stringify(frame)}\n\n`))) {
      ordinal += 1;
      collector.take(1, ordinal, part);
    }
  };
  for (const frame of shape.before) push(frame);
  for (let index = 0; index < pieces; index += 1) push(shape.piece(text, index));
  for (const frame of shape.after) push(frame);
};

describe("arguments of four times the length cost about four times the work", () => {
  for (const shape of shapes) {
    it(`${shape.protocol}, ${shape.name}`, () => {
      const [small, large] = [500, 2_000].map((pieces) => workOf(() => play(protocols[shape.protocol], shape, pieces)));
      const ratio = (large ?? 0) / (small ?? 1);
      assert.isBelow(ratio, 5, `${small} characters of work, then ${large}`);
    });
  }
});
