/** The sample of each protocol. Suites play all of them, so a new protocol is a file here and a row below. */
import { readFileSync } from "node:fs";
import * as Json from "../../src/domain/Json.ts";
import { type ProtocolId, protocols } from "../../src/provider/Protocols.ts";
import { anthropicMessages } from "./anthropic-messages.ts";
import { bedrockConverse, bedrockInvoke } from "./bedrock.ts";
import { cohereChat } from "./cohere-chat.ts";
import { googleCodeAssist } from "./google-code-assist.ts";
import { googleGemini } from "./google-gemini.ts";
import { googleInteractions } from "./google-interactions.ts";
import { mistralConversations } from "./mistral-conversations.ts";
import { ollama } from "./ollama.ts";
import { openAiChat } from "./openai-chat.ts";
import { openAiCompletions } from "./openai-completions.ts";
import { openAiResponses } from "./openai-responses.ts";
import type { Ended, Said, Sample } from "./Sample.ts";

export type { Ended, Said } from "./Sample.ts";

export const samples: Readonly<Record<ProtocolId, Sample>> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropicMessages,
  "google-gemini": googleGemini,
  "google-code-assist": googleCodeAssist,
  ollama,
  "openai-completions": openAiCompletions,
  "cohere-chat": cohereChat,
  "bedrock-converse": bedrockConverse,
  "bedrock-invoke": bedrockInvoke,
  "google-interactions": googleInteractions,
  "mistral-conversations": mistralConversations,
};

/** All protocols, in the order of every table. */
export const allIds = Object.keys(samples) as ReadonlyArray<ProtocolId>; // the keys above

/** The protocols whose streams are text. */
export const ids = allIds.filter((id) => samples[id].encoding === undefined);

/** The protocols with conversations and calls. */
export const talkIds = ids.filter((id) => samples[id].has.calls !== "none");

/** The protocols whose shown text may be continued. */
export const seamIds = ids.filter((id) => protocols.get(id).splice !== undefined);

/** A table of one thing of each sample. */
export const byProtocol = <A>(pick: (sample: Sample) => A): Readonly<Record<ProtocolId, A>> =>
  // The ids are the keys of every such table.
  Object.fromEntries(allIds.map((id) => [id, pick(samples[id])])) as Record<ProtocolId, A>;

/** A response, event by event in its wire format. */
export const framesOf = (id: ProtocolId, said: ReadonlyArray<Said>, ended: Ended = {}): ReadonlyArray<string> =>
  samples[id].events(said, ended).map(samples[id].frame);

/** A whole response with a text, as a stream. */
export const textAnswer = (id: ProtocolId, text: string): string => framesOf(id, [{ text }]).join("");

/** A body with the user's question as the last message of a conversation. */
export const conversation = (id: ProtocolId, text: string) => {
  const { history, message, question, wrapper } = samples[id];
  const body = question(text);
  const own = { [history]: [message(text)] };
  return wrapper === undefined
    ? { ...body, ...own }
    : { ...body, [wrapper]: { ...Json.record(body[wrapper]), ...own } };
};

/** True if the protocol writes lines of JSON instead of server-sent events. */
export const hasLines = (id: ProtocolId): boolean => samples[id].frame({}).startsWith("{");

/** The events of a recorded response, each as its provider wrote it. */
export const recorded = (id: ProtocolId, name: string): ReadonlyArray<string> =>
  readFileSync(new URL(`../fixtures/streams/${id}/${name}.${hasLines(id) ? "ndjson" : "sse"}`, import.meta.url), "utf8")
    .split(hasLines(id) ? /(?<=\n)/ : /(?<=\r?\n\r?\n)/)
    .filter((event) => event.trim() !== "");

/** The JSON data of an event; undefined if it has none. */
export const dataOf = (event: string): Json.JsonRecord | undefined =>
  Json.record(Json.parse(event.startsWith("{") ? event : (/^data: ?(.*)$/m.exec(event)?.[1] ?? ""))?.json);
