/**
 * Measures the cost of decoding the arguments of one tool call at two lengths. It may grow no faster than the length.
 */
import * as AnthropicMessages from "../../src/provider/anthropic/Decode.ts";
import * as Gemini from "../../src/provider/gemini/Decode.ts";
import * as OpenAiChat from "../../src/provider/openai-chat/Decode.ts";
import * as OpenAiResponses from "../../src/provider/openai-responses/Decode.ts";
import * as Decoder from "../../src/provider/stream/Decoder.ts";
import { median } from "./Median.ts";

/** The size of a measurement in one process. */
export interface ArgumentsSize {
  readonly protocol: keyof typeof wires;
  /** Lengths of the arguments, in characters. */
  readonly short: number;
  readonly long: number;
  readonly rounds: number;
}

/** CPU time per character of the long arguments, in nanoseconds, and the ratio of the total costs of long and short ones. */
export interface Arguments {
  readonly ns: number;
  readonly ratio: number;
}

/** Number of characters of one delta, about as many as a provider sends at a time. */
const deltaCharacters = 20;

const sse = (frame: object): Uint8Array => new TextEncoder().encode(`data: ${JSON.stringify(frame)}\n\n`);
const chat = (called: object) => sse({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...called }] } }] });
const gemini = (functionCall: object) => sse({ candidates: [{ content: { parts: [{ functionCall }] } }] });
const item = { type: "function_call", call_id: "c", name: "write" };
const block = { type: "tool_use", id: "c", name: "write", input: {} };

const wires = {
  "openai-chat": {
    make: () => Decoder.make(OpenAiChat.protocol),
    begin: chat({ id: "c", type: "function", function: { name: "write", arguments: '{"content":"' } }),
    piece: (text: string) => chat({ function: { arguments: text } }),
  },
  "openai-responses": {
    make: () => Decoder.make(OpenAiResponses.protocol),
    begin: sse({ type: "response.output_item.added", output_index: 0, item }),
    piece: (delta: string) => sse({ type: "response.function_call_arguments.delta", output_index: 0, delta }),
  },
  "anthropic-messages": {
    make: () => Decoder.make(AnthropicMessages.protocol),
    begin: sse({ type: "content_block_start", index: 0, content_block: block }),
    piece: (partial_json: string) =>
      sse({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json } }),
  },
  "google-gemini": {
    make: () => Decoder.make(Gemini.protocol),
    begin: gemini({ name: "write", willContinue: true }),
    piece: (stringValue: string) =>
      gemini({ partialArgs: [{ jsonPath: "$.content", stringValue, willContinue: true }], willContinue: true }),
  },
};

/** Decodes both lengths in turns. The first pair warms up. */
export const measure = ({ long, protocol, rounds, short }: ArgumentsSize): Arguments => {
  const few: Array<number> = [];
  const many: Array<number> = [];
  for (let round = 0; round <= rounds; round += 1) {
    const [one, other] = [cpuNs(protocol, short), cpuNs(protocol, long)];
    if (round > 0) {
      few.push(one);
      many.push(other);
    }
  }
  return { ns: median(many) / long, ratio: median(many) / median(few) };
};

const cpuNs = (protocol: keyof typeof wires, characters: number): number => {
  const { begin, make, piece } = wires[protocol];
  const decoder = make();
  const delta = piece("y".repeat(deltaCharacters));
  const before = process.cpuUsage();
  decoder.push(begin);
  for (let at = 0; at < characters; at += deltaCharacters) decoder.push(delta);
  const { system, user } = process.cpuUsage(before);
  if (decoder.failure !== undefined) throw new Error(`${protocol} failed: ${decoder.failure.kind}`);
  return (user + system) * 1_000;
};
