/**
 * Writes the responses of the field's dialects in all four protocols, and plays them to the relay under the test's clock.
 */
import { Effect, Fiber, type Scope } from "effect";
import { open } from "../../src/adapters/relay/Relay.ts";
import type { RelayOptions } from "../../src/adapters/relay/RelayBeginning.ts";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import type { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { client, head, pass, planOf, type Step, scripted } from "../adapters/relay/RelayCases.ts";

export const protocols = ["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"] as const;

/** Content of a response, in order. */
export type Said =
  | { readonly text: string }
  | { readonly thought: string }
  /** A call; `pieces` are its arguments as they arrive. `open` omits the event that completes them. */
  | { readonly call: string; readonly pieces: ReadonlyArray<string>; readonly open?: true };

/** The end of a response. */
export interface Ended {
  /** Output tokens; if omitted, the provider reports none. */
  readonly tokens?: number;
  /** True to omit the protocol's last event (`message_stop`, `[DONE]`). */
  readonly lacksLast?: true;
  /** True to omit the finish, like a cut stream. */
  readonly cut?: true;
}

const frame = (data: object | string): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
const typed = (data: { readonly type: string } & Record<string, unknown>): string =>
  `event: ${data.type}\n${frame(data)}`;

type Writer = (said: ReadonlyArray<Said>, ended: Ended) => string;

const hasCall = (said: ReadonlyArray<Said>): boolean => said.some((it) => "call" in it);

const chat: Writer = (said, { cut, lacksLast, tokens }) => {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    frame({ id: "c", choices: [{ index: 0, delta, finish_reason }] });
  const of = (it: Said, index: number): string => {
    if ("text" in it) return chunk({ content: it.text });
    if ("thought" in it) return chunk({ reasoning_content: it.thought });
    const begun = { index, id: `t${index}`, type: "function", function: { name: it.call, arguments: "" } };
    const pieces = it.pieces.map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
    return chunk({ tool_calls: [begun] }) + pieces.join("");
  };
  const usage = { prompt_tokens: 5, completion_tokens: tokens };
  return [
    chunk({ role: "assistant", content: "" }),
    ...said.map((it) => of(it, 0)),
    cut === true ? "" : chunk({}, hasCall(said) ? "tool_calls" : "stop"),
    cut === true || tokens === undefined ? "" : frame({ id: "c", choices: [], usage }),
    cut === true || lacksLast === true ? "" : frame("[DONE]"),
  ].join("");
};

const messages: Writer = (said, { cut, lacksLast, tokens = 1 }) => {
  const block = (index: number, content_block: object, deltas: ReadonlyArray<object>) =>
    typed({ type: "content_block_start", index, content_block }) +
    deltas.map((delta) => typed({ type: "content_block_delta", index, delta })).join("") +
    typed({ type: "content_block_stop", index });
  const of = (it: Said, index: number): string => {
    if ("text" in it) return block(index, { type: "text", text: "" }, [{ type: "text_delta", text: it.text }]);
    if ("thought" in it)
      return block(index, { type: "thinking", thinking: "" }, [{ type: "thinking_delta", thinking: it.thought }]);
    const deltas = it.pieces.map((partial_json) => ({ type: "input_json_delta", partial_json }));
    return block(index, { type: "tool_use", id: `t${index}`, name: it.call, input: {} }, deltas);
  };
  const stop_reason = hasCall(said) ? "tool_use" : "end_turn";
  const message = { id: "m", type: "message", content: [], usage: { input_tokens: 5, output_tokens: 1 } };
  return [
    typed({ type: "message_start", message }),
    ...said.map(of),
    cut === true ? "" : typed({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: tokens } }),
    cut === true || lacksLast === true ? "" : typed({ type: "message_stop" }),
  ].join("");
};

const responses: Writer = (said, { cut, tokens }) => {
  const of = (it: Said, index: number): string => {
    const item = (status: string) => {
      if ("text" in it) return { id: `i${index}`, type: "message", status, content: [] };
      if ("thought" in it) return { id: `i${index}`, type: "reasoning", summary: [] };
      return { id: `i${index}`, type: "function_call", call_id: `t${index}`, name: it.call, arguments: "", status };
    };
    const about = { output_index: index, item_id: `i${index}` };
    const added = typed({ type: "response.output_item.added", ...about, item: item("in_progress") });
    if ("text" in it)
      return added + typed({ type: "response.output_text.delta", ...about, content_index: 0, delta: it.text });
    if ("thought" in it) {
      const summary = { type: "response.reasoning_summary_text.delta", ...about, summary_index: 0, delta: it.thought };
      return added + typed(summary) + typed({ type: "response.output_item.done", ...about, item: item("completed") });
    }
    const type = "response.function_call_arguments";
    const pieces = it.pieces.map((delta) => typed({ type: `${type}.delta`, ...about, delta })).join("");
    return `${added}${pieces}${
      it.open === true ? "" : typed({ type: `${type}.done`, ...about, arguments: it.pieces.join("") })
    }`;
  };
  const response = { id: "r", status: "completed", output: [], usage: { input_tokens: 5, output_tokens: tokens } };
  return [
    typed({ type: "response.created", response: { id: "r", status: "in_progress" } }),
    ...said.map(of),
    cut === true ? "" : typed({ type: "response.completed", response }),
  ].join("");
};

const gemini: Writer = (said, { cut, tokens }) => {
  const chunk = (parts: ReadonlyArray<object>, finishReason?: string) =>
    frame({
      candidates: [{ index: 0, content: { role: "model", parts }, ...(finishReason ? { finishReason } : {}) }],
      ...(finishReason && tokens !== undefined
        ? { usageMetadata: { promptTokenCount: 5, candidatesTokenCount: tokens } }
        : {}),
    });
  const of = (it: Said): string => {
    if ("text" in it) return chunk([{ text: it.text }]);
    if ("thought" in it) return chunk([{ text: it.thought, thought: true }]);
    if (it.open !== true) return chunk([{ functionCall: { name: it.call, args: JSON.parse(it.pieces.join("")) } }]);
    // Arguments that are announced as partial, and whose rest never comes.
    return it.pieces
      .map((stringValue, at) => {
        const partialArgs = [{ jsonPath: "$.cmd", stringValue, willContinue: true }];
        return chunk([{ functionCall: { ...(at === 0 ? { name: it.call } : {}), partialArgs, willContinue: true } }]);
      })
      .join("");
  };
  return [...said.map(of), cut === true ? "" : chunk([{ text: "" }], "STOP")].join("");
};

const writers: Record<ProtocolId, Writer> = {
  "openai-chat": chat,
  "openai-responses": responses,
  "anthropic-messages": messages,
  "google-gemini": gemini,
};

/** The events of one response. */
export const written = (protocol: ProtocolId, said: ReadonlyArray<Said>, ended: Ended = {}): string =>
  writers[protocol](said, ended);

/** A response that every client accepts. */
export const good = (protocol: ProtocolId): string => written(protocol, [{ text: "GOOD" }], { tokens: 40 });

const urls: Record<ProtocolId, string> = {
  "openai-chat": "https://api.example/v1/chat/completions",
  "openai-responses": "https://api.example/v1/responses",
  "anthropic-messages": "https://api.example/v1/messages",
  "google-gemini": "https://api.example/v1beta/models/m:streamGenerateContent?alt=sse",
};

/** A body of a request with a limit of output tokens. */
const bodyOf = (protocol: ProtocolId, limit: number): object => {
  switch (protocol) {
    case "openai-chat":
      return { max_tokens: limit };
    case "openai-responses":
      return { input: "x", max_output_tokens: limit };
    case "anthropic-messages":
      return { max_tokens: limit };
    case "google-gemini":
      return { contents: [], generationConfig: { maxOutputTokens: limit } };
  }
};

/** The client's result: the provider requests, the bytes that left, and the end (`end`, the rule of a break, or none yet). */
export interface Got {
  readonly requests: number;
  readonly text: string;
  readonly end: string | undefined;
}

/** Plays attempts to the relay. Each is a response, with its own head or status 200, and its connection's end. The last one repeats. */
export const played = (
  protocol: ProtocolId,
  attempts: ReadonlyArray<ReadonlyArray<Step>>,
  { limit = 1000, seconds = 60, ...options }: Partial<RelayOptions> & { limit?: number; seconds?: number } = {},
): Effect.Effect<Got, never, StreamProcessor | Scope.Scope> =>
  Effect.gen(function* () {
    const all = attempts.map(([first, ...rest]) =>
      typeof first === "object" && "status" in first
        ? [first, ...rest]
        : [head, ...(first === undefined ? [] : [first]), ...rest],
    );
    const last = all.at(-1) ?? [];
    const { seen, timed } = scripted(...all, last, last, last, last, last);
    const transport = yield* timed;
    const plan = planOf(bodyOf(protocol, limit), urls[protocol]);
    const opening = yield* Effect.forkScoped(
      open(plan, { head: "content", emptyIsFailure: true, ...options, transport }),
      { startImmediately: true },
    );
    const reading = yield* Effect.forkScoped(
      Fiber.join(opening).pipe(
        Effect.flatMap(({ read }) => client(read)),
        Effect.catch((error) => Effect.succeed({ text: "", end: error.rule })),
      ),
      { startImmediately: true },
    );
    yield* pass(seconds);
    if (reading.pollUnsafe() === undefined) return { requests: seen.opened, text: "", end: undefined };
    const { end, text } = yield* Fiber.join(reading);
    return { requests: seen.opened, text, end };
  });
