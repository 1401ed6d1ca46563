/**
 * Decodes streams of text completions: OpenAI's `/v1/completions`, Mistral's `/v1/fim/completions`, and llama.cpp's `/completion` and
 * `/infill`.
 *
 * The first two send the chunks of a chat completion, with `text` or `delta`, and end as a chat completion does. llama.cpp sends `{
 * content, stop }`, and the event with `stop: true` is its terminal marker (llama.cpp, tools/server/README.md).
 *
 * A completion may rightly be empty, if nothing belongs between prefix and suffix. So the terminal marker itself counts as output.
 */
import * as Json from "../../domain/Json.ts";
import * as Chat from "../openai-chat/Decode.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { Protocol, SseEvent } from "../stream/Protocol.ts";

/** The protocol's id. */
export const id = "openai-completions";

type Part = Stream.Part<typeof id>;

/** Folds one event into the state of the chat decoder. */
const step = (state: Chat.State, event: SseEvent): readonly [Chat.State, Part] => {
  const own = event.data.includes('"stop"') ? Json.record(Json.parse(event.data)?.json) : undefined;
  const chunk = own === undefined ? undefined : chunkOf(own);
  const [next, part] = Chat.step(state, chunk === undefined ? event : { ...event, data: JSON.stringify(chunk) });
  const { observation } = part;
  const ends = observation.terminal || observation.terminal_at_end === true;
  return [
    next,
    {
      ...part,
      protocol: id,
      event,
      json: chunk === undefined ? part.json : own,
      observation: ends && observation.progress !== "output" ? { ...observation, progress: "output" } : observation,
    },
  ];
};

/**
 * Completions and FIM.
 *
 * Complete when: as in OpenAI Chat Completions, or llama.cpp's `stop: true`
 * Tolerated: as in OpenAI Chat Completions
 */
export const protocol: Protocol<Chat.State, typeof id> = {
  id,
  initial: Chat.initial,
  step,
  halt: Chat.halt,
  observe: Chat.observe,
};

/** Returns an event of llama.cpp as a chunk of OpenAI's; undefined for any other event. */
const chunkOf = (event: Json.JsonRecord): object | undefined => {
  const { content, index, stop, tokens_evaluated, tokens_predicted } = event;
  if (event.choices !== undefined || typeof content !== "string" || typeof stop !== "boolean") return undefined;
  return {
    choices: [{ index: Json.natural(index) ?? 0, text: content, finish_reason: stop ? finishOf(event) : null }],
    ...(stop ? { usage: { prompt_tokens: tokens_evaluated, completion_tokens: tokens_predicted } } : {}),
  };
};

/** Older servers have a flag for each reason in place of `stop_type`. */
const finishOf = ({ stop_type, stopped_limit }: Json.JsonRecord): string =>
  stop_type === "limit" || stopped_limit === true ? "length" : "stop";
