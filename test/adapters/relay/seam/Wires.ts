/**
 * Writes a response in the format of each protocol, as a model server would. It shares no code with the tested sources.
 */
import type { ProtocolId } from "../../../../src/provider/Protocols.ts";

/** The content of a response. */
export interface Said {
  /** Thoughts in front of the text. */
  readonly thought?: string | undefined;
  readonly text: string;
  readonly call?: { readonly name: string; readonly input: object } | undefined;
}

/** Options of the format. */
export interface Writing {
  /** The number of the response: its ids have it. */
  readonly number: number;
  /** Maximum length of text in one event, in UTF-16 code units; a cut may split a character. */
  readonly piece: number;
}

const pieces = (text: string, size: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size));

const data = (json: object): string => `data: ${JSON.stringify(json)}\n\n`;
const named = (json: { readonly type: string }): string => `event: ${json.type}\n${data(json)}`;

const chat = ({ call, text, thought }: Said, { number, piece }: Writing): ReadonlyArray<string> => {
  const made = (delta: object, finish: string | null = null) =>
    data({
      ...{ id: `chatcmpl-${number}`, object: "chat.completion.chunk", created: 1_000 + number, model: "m" },
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  const tools =
    call === undefined
      ? []
      : [
          {
            index: 0,
            id: `call_${number}`,
            type: "function",
            function: { name: call.name, arguments: JSON.stringify(call.input) },
          },
        ];
  return [
    made({ role: "assistant", content: "" }),
    ...pieces(thought ?? "", piece).map((reasoning_content) => made({ reasoning_content })),
    ...pieces(text, piece).map((content) => made({ content })),
    ...tools.map((tool) => made({ tool_calls: [tool] })),
    made({}, call === undefined ? "stop" : "tool_calls"),
    data({
      ...{
        id: `chatcmpl-${number}`,
        object: "chat.completion.chunk",
        created: 1_000 + number,
        model: "m",
        choices: [],
      },
      usage: { prompt_tokens: 10 * number, completion_tokens: 20 * number, total_tokens: 30 * number },
    }),
    "data: [DONE]\n\n",
  ];
};

const anthropic = ({ call, text, thought }: Said, { number, piece }: Writing): ReadonlyArray<string> => {
  let index = -1;
  const block = (start: object, deltas: ReadonlyArray<object>) => {
    index += 1;
    return [
      named({ type: "content_block_start", ...{ index, content_block: start } }),
      ...deltas.map((delta) => named({ type: "content_block_delta", ...{ index, delta } })),
      named({ type: "content_block_stop", ...{ index } }),
    ];
  };
  const message = {
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  return [
    named({
      type: "message_start",
      ...{ message: { id: `msg_${number}`, ...message, usage: { input_tokens: 10 * number, output_tokens: 1 } } },
    }),
    named({ type: "ping" }),
    ...(thought === undefined
      ? []
      : block({ type: "thinking", thinking: "", signature: "" }, [
          ...pieces(thought, piece).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: `sig${number}` },
        ])),
    ...(text === ""
      ? []
      : block(
          { type: "text", text: "" },
          pieces(text, piece).map((it) => ({ type: "text_delta", text: it })),
        )),
    ...(call === undefined
      ? []
      : block({ type: "tool_use", id: `toolu_${number}`, name: call.name, input: {} }, [
          { type: "input_json_delta", partial_json: JSON.stringify(call.input) },
        ])),
    named({
      type: "message_delta",
      ...{
        delta: { stop_reason: call === undefined ? "end_turn" : "tool_use", stop_sequence: null },
        usage: { output_tokens: 20 * number },
      },
    }),
    named({ type: "message_stop" }),
  ];
};

/** An item of a response with the events between its beginning and its end. */
interface OutputItem {
  readonly added: object;
  readonly between: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>;
  readonly done: object;
}

const responses = ({ call, text, thought }: Said, { number, piece }: Writing): ReadonlyArray<string> => {
  const items: Array<OutputItem> = [];
  const part = (said: string) => ({ type: "output_text", text: said, annotations: [], logprobs: [] });
  if (thought !== undefined) {
    const item = { id: `rs_${number}`, type: "reasoning", summary: [] };
    items.push({ added: item, between: [], done: item });
  }
  if (text !== "") {
    const id = `msg_${number}`;
    const at = { item_id: id, content_index: 0 };
    const item = { id, type: "message", role: "assistant" };
    items.push({
      added: { ...item, status: "in_progress", content: [] },
      between: [
        { type: "response.content_part.added", ...at, part: part("") },
        ...pieces(text, piece).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
        { type: "response.output_text.done", ...at, text, logprobs: [] },
        { type: "response.content_part.done", ...at, part: part(text) },
      ],
      done: { ...item, status: "completed", content: [part(text)] },
    });
  }
  if (call !== undefined) {
    const id = `fc_${number}`;
    const item = { id, type: "function_call", call_id: `call_${number}`, name: call.name };
    const written = JSON.stringify(call.input);
    items.push({
      added: { ...item, status: "in_progress", arguments: "" },
      between: [
        { type: "response.function_call_arguments.delta", item_id: id, delta: written },
        { type: "response.function_call_arguments.done", item_id: id, name: call.name, arguments: written },
      ],
      done: { ...item, status: "completed", arguments: written },
    });
  }
  const response = {
    id: `resp_${number}`,
    object: "response",
    created_at: 1_000 + number,
    model: "m",
    error: null,
    incomplete_details: null,
  };
  const usage = {
    ...{ input_tokens: 10 * number, output_tokens: 20 * number, total_tokens: 30 * number },
    ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
  };
  const opened = { response: { ...response, status: "in_progress", output: [], usage: null } };
  const events = [
    { type: "response.created", ...opened },
    { type: "response.in_progress", ...opened },
    ...items.flatMap(({ added, between, done }, output_index) => [
      { type: "response.output_item.added", output_index, item: added },
      ...between.map((it) => ({ ...it, output_index })),
      { type: "response.output_item.done", output_index, item: done },
    ]),
    {
      type: "response.completed",
      response: { ...response, status: "completed", output: items.map(({ done }) => done), usage },
    },
  ];
  return events.map((event, sequence_number) => named({ ...event, ...{ sequence_number } }));
};

const gemini = ({ call, text, thought }: Said, { number, piece }: Writing): ReadonlyArray<string> => {
  const chunk = (parts: ReadonlyArray<object>, more: object = {}) =>
    data({
      candidates: [{ content: { parts, role: "model" }, index: 0, ...more }],
      ...{ responseId: `resp-${number}`, modelVersion: "m" },
      usageMetadata: { promptTokenCount: 10 * number, candidatesTokenCount: 20 * number, totalTokenCount: 30 * number },
    });
  return [
    ...pieces(thought ?? "", piece).map((it) => chunk([{ text: it, thought: true }])),
    ...pieces(text, piece).map((it) => chunk([{ text: it }])),
    ...(call === undefined ? [] : [chunk([{ functionCall: { name: call.name, args: call.input } }])]),
    chunk([{ text: "" }], { finishReason: "STOP" }),
  ];
};

const writers: Readonly<Record<ProtocolId, typeof chat>> = {
  "openai-chat": chat,
  "openai-responses": responses,
  "anthropic-messages": anthropic,
  "google-gemini": gemini,
};

/** The events of a response in their wire format. */
export const written = (protocol: ProtocolId, said: Said, writing: Writing): ReadonlyArray<string> =>
  writers[protocol](said, writing);
