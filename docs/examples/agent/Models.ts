/**
 * The models that the agent talks to: where their requests go, and how a conversation opens. The library decodes the responses, and
 * its `Continuation` writes everything after the opening.
 */
import { Config, Effect, Option, Redacted, Stream } from "effect";
import type { AttemptContext } from "effect-stream-recovery";
import { ProviderClient, type ProviderError, type RequestHeaders } from "effect-stream-recovery/client";
import {
  AnthropicMessages,
  OpenAiChat,
  type Part,
  type Protocol,
  type ProtocolId,
  type SseEvent,
} from "effect-stream-recovery/provider";

/** The body of a request, as JSON. */
export type Body = { readonly [key: string]: unknown };

/** A tool as a model reads of it; `parameters` is a JSON schema. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly parameters: object;
}

/** One model, and the protocol that its provider speaks. */
export interface Model {
  readonly protocol: ProtocolId;
  readonly name: string;
  readonly url: string;
  /** The request before the user's first words. */
  readonly opening: (tools: ReadonlyArray<ToolDescription>) => Body;
  /** Sends a request, and gives its response part by part. */
  readonly stream: (body: Body, attempt: AttemptContext) => Stream.Stream<Part, ProviderError, ProviderClient>;
  /** Decodes events of one response that were written down. */
  readonly reader: () => (event: SseEvent) => Part;
}

const system =
  "You are a careful assistant with tools that work in one folder. Look at their results before you go on, and say in a few words what you did.";

/** Differences between providers of the same kind; `base` has the version, and `key` names a variable of the environment. */
const anthropic = {
  base: "https://api.anthropic.com/v1",
  path: "/messages",
  key: "ANTHROPIC_API_KEY",
  headers: (key: string): RequestHeaders => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  opening: (model: string, tools: ReadonlyArray<ToolDescription>): Body => ({
    ...{ model, stream: true, max_tokens: 8_192, system, messages: [] },
    tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
  }),
};

const openAi: typeof anthropic = {
  base: "https://api.openai.com/v1",
  path: "/chat/completions",
  key: "OPENAI_API_KEY",
  headers: (key) => ({ authorization: `Bearer ${key}` }),
  opening: (model, tools) => ({
    ...{ model, stream: true, messages: [{ role: "system", content: system }] },
    tools: tools.map((tool) => ({ type: "function", function: tool })),
  }),
};

const speaking =
  <S, Id extends ProtocolId>(protocol: Protocol<S, Id>, provider: typeof anthropic) =>
  (name: string, base = provider.base): Model => {
    const url = `${base}${provider.path}`;
    // The key is read for each attempt and kept nowhere.
    const headers = Effect.map(Config.option(Config.Redacted(provider.key)), (key) =>
      provider.headers(Option.match(key, { onNone: () => "", onSome: Redacted.value })),
    );
    return {
      ...{ protocol: protocol.id, name, url },
      opening: (tools) => provider.opening(name, tools),
      stream: (body, { bytes, delivery }) =>
        Stream.unwrap(
          Effect.map(ProviderClient, (client) => client.stream({ protocol, url, headers, body, bytes, delivery })),
        ),
      reader: () => {
        let state = protocol.initial();
        return (event) => {
          const [next, part] = protocol.step(state, event);
          state = next;
          return part;
        };
      },
    };
  };

/** The protocols, by the names that the library gives them. */
export const protocols = ["anthropic-messages", "openai-chat"] as const;

/** Makes a model of its name, and of the address of another server that speaks its protocol: `http://localhost:8080/v1`. */
export const speakers = {
  "anthropic-messages": speaking(AnthropicMessages.protocol, anthropic),
  "openai-chat": speaking(OpenAiChat.protocol, openAi),
} as const;
