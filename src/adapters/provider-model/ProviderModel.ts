/**
 * Provides a language model of `effect/ai` that uses this package's own decoders and client.
 *
 * The model retries nothing and hides no failure: a broken stream is an `AiError`, and so is a clean end without the provider's terminal
 * marker. `EffectAi.layer` recovers it. For that, the model also reports how far a request was sent and how many bytes arrived.
 */
import { Cause, type Config, Effect, Layer, type Pull, Redacted, Stream } from "effect";
import { AiError, IdGenerator, LanguageModel, type Response } from "effect/ai";
import {
  type ClientConfigError,
  ProviderClient,
  type ProviderClientOptions,
  type ProviderError,
} from "../../client/index.ts";
import { type Part, type ProtocolId, protocols, type Tolerance } from "../../provider/Protocols.ts";
import { CurrentAttempt } from "../effect-ai/Call.ts";
import { ofExchange } from "../effect-ai/LanguageModelError.ts";
import { writeAnthropicMessages, writeBedrockInvoke } from "./AnthropicMessages.ts";
import { writeBedrockConverse } from "./BedrockConverse.ts";
import { writeGoogleGemini } from "./GoogleGemini.ts";
import { writeOpenAiChat } from "./OpenAiChat.ts";
import { writeOpenAiResponses } from "./OpenAiResponses.ts";
import { PartWriter } from "./PartWriter.ts";
import { type Body, codecTransformer, type Written } from "./Request.ts";

/** The model, its server, and additions to its requests. */
export interface Options {
  readonly protocol: WrittenProtocol;
  readonly model: string;
  /** Base URL, to which the protocol's path is appended. Default: the vendor's own API. */
  readonly baseUrl?: string;
  /** The complete address. It replaces the base URL and the protocol's path. */
  readonly url?: string;
  /** API key, sent in the header of the protocol. Omit it for servers that require no key. */
  readonly apiKey?: Redacted.Redacted | Config.Config<Redacted.Redacted>;
  /** Further headers. They override those of this package. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the request body (`temperature`, `max_tokens`, `reasoning`). They override those of this package. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Ways in which this server's healthy streams differ from the protocol. */
  readonly tolerance?: Tolerance;
}

/**
 * Provides a language model with its own client.
 *
 * @param options the model, its server and its key
 * @param client the connection options of the client
 */
export const layer = (
  options: Options,
  client: ProviderClientOptions = {},
): Layer.Layer<LanguageModel.LanguageModel, ClientConfigError | Config.ConfigError> =>
  Layer.effect(LanguageModel.LanguageModel, make(options)).pipe(Layer.provide(ProviderClient.layer(client)));

/**
 * Creates a language model on an existing client.
 *
 * @param options the model, its server and its key
 */
export const make = Effect.fnUntraced(function* (
  options: Options,
): Effect.fn.Return<LanguageModel.LanguageModel, Config.ConfigError, ProviderClient> {
  const client = yield* ProviderClient;
  const { apiKey } = options;
  const key = apiKey === undefined || Redacted.isRedacted(apiKey) ? apiKey : yield* apiKey;
  const stream = (request: LanguageModel.ProviderOptions) => streamResponse(client, options, key, request);
  return yield* LanguageModel.make({
    streamText: stream,
    generateText: (request) => collect(stream(request)),
    codecTransformer: codecTransformer(options.protocol),
  });
});

/** Maximum wait for data after the terminal marker (usage, `[DONE]`, the end of the body), in milliseconds. */
const tailMs = 10_000;

const streamResponse = (
  client: ProviderClient["Service"],
  options: Options,
  key: Redacted.Redacted | undefined,
  request: LanguageModel.ProviderOptions,
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError, IdGenerator.IdGenerator> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const attempt = yield* CurrentAttempt;
      const body = yield* bodyOf({ ...request, protocol: options.protocol, model: options.model });
      const protocol = protocols.get(options.protocol);
      const writer = new PartWriter(protocol, yield* (yield* IdGenerator.IdGenerator).generateId());
      const value = key === undefined ? undefined : Redacted.value(key);
      const parts = client.stream({
        protocol,
        url: urlOf(options),
        headers: { ...protocol.address.headers(value), ...options.headers },
        body: { ...body, ...options.body },
        ...(options.tolerance === undefined ? {} : { tolerance: options.tolerance }),
        ...(attempt === undefined ? {} : { delivery: attempt.delivery, bytes: attempt.bytes }),
      });
      return encodeParts(parts, writer);
    }),
  );

type Parts = readonly [Response.StreamPartEncoded, ...Array<Response.StreamPartEncoded>];

/** Emits the parts of a stream, and the finish at its end. After the terminal marker the stream cannot fail any more. */
const encodeParts = (
  parts: Stream.Stream<Part, ProviderError>,
  writer: PartWriter,
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.transformPull(parts, (pull) => {
    let marked = false;
    let over = false;
    const read = Effect.suspend(() =>
      marked ? Effect.timeoutOrElse(pull, { duration: tailMs, orElse: () => Cause.done() }) : pull,
    );
    const onEnd = (error: ProviderError | Cause.Done) => {
      if (!Cause.isDone(error) && !marked) return Effect.fail(ofExchange("streamText", error));
      over = true;
      return Effect.succeed(writer.end());
    };
    const next: Pull.Pull<Parts, AiError.AiError> = Effect.gen(function* () {
      while (!over) {
        const [first, ...rest] = yield* read.pipe(
          Effect.map((events) => {
            marked ||= events.some(isMarker);
            return events.flatMap((event) => writer.take(event));
          }),
          Effect.catch(onEnd),
        );
        if (first !== undefined) return [first, ...rest] satisfies Parts;
      }
      return yield* Cause.done();
    });
    return Effect.succeed(next);
  });

const isMarker = ({ observation }: Part): boolean => observation.terminal && observation.failure === undefined;

const writers = {
  "openai-chat": writeOpenAiChat,
  "openai-responses": writeOpenAiResponses,
  "anthropic-messages": writeAnthropicMessages,
  "google-gemini": writeGoogleGemini,
  "bedrock-converse": writeBedrockConverse,
  "bedrock-invoke": writeBedrockInvoke,
} satisfies Partial<Record<ProtocolId, (written: Written) => Body>>;

/** The protocols in which `effect/ai` prompts can be written. */
export type WrittenProtocol = keyof typeof writers;

/** Writes the body. Fails if the prompt contains content that the protocol cannot express, or if a schema cannot be converted. */
const bodyOf = (request: Written & { readonly protocol: WrittenProtocol }): Effect.Effect<Body, AiError.AiError> =>
  Effect.try({
    try: () => writers[request.protocol](request),
    catch: (error) =>
      AiError.isAiError(error)
        ? error
        : AiError.make({
            module: "ProviderModel",
            method: "streamText",
            reason: new AiError.UnsupportedSchemaError({ description: String(error) }),
          }),
  });

const urlOf = ({ baseUrl, model, protocol, url }: Options): string => {
  if (url !== undefined) return url;
  const { path, query, vendor } = protocols.get(protocol).address;
  const asked = query === undefined ? "" : `?${new URLSearchParams(query)}`;
  return `${(baseUrl ?? vendor).replace(/\/+$/, "")}${path(model)}${asked}`;
};

type StreamPart = Response.StreamPartEncoded;

/** Runs a stream and returns the whole response. Deltas are joined to blocks, in the order in which the blocks started. */
export const collect = <R>(
  stream: Stream.Stream<StreamPart, AiError.AiError, R>,
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError, R> =>
  Stream.runFold(stream, (): Array<Response.PartEncoded> => [], add);

const add = (content: Array<Response.PartEncoded>, part: StreamPart): Array<Response.PartEncoded> => {
  switch (part.type) {
    case "text-start":
      content.push({ type: "text", text: "" });
      return content;
    case "reasoning-start":
      content.push({ type: "reasoning", text: "" });
      return content;
    case "text-delta":
    case "reasoning-delta":
      return grow(content, part.delta);
    case "text-end":
    case "reasoning-end":
      return grow(content, "", part.metadata);
    case "tool-params-start":
    case "tool-params-delta":
    case "tool-params-end":
    case "error":
      return content;
    default:
      content.push(part);
      return content;
  }
};

/** Appends to the last text or reasoning block. Only one such block is open at a time. */
const grow = (
  content: Array<Response.PartEncoded>,
  text: string,
  metadata?: Response.ProviderMetadata,
): Array<Response.PartEncoded> => {
  const at = content.findLastIndex(({ type }) => type === "text" || type === "reasoning");
  const block = content[at];
  if (block?.type === "text" || block?.type === "reasoning")
    content[at] = { ...block, text: block.text + text, ...(metadata === undefined ? {} : { metadata }) };
  return content;
};
