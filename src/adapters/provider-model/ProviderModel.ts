/**
 * Provides a language model of `effect/ai` on this package's own decoders and client.
 *
 * It retries nothing and hides nothing: a broken stream is an `AiError`, and so is a clean end without the provider's terminal marker.
 * `EffectAi.layer` recovers it. This model also reports to it how far a request got and which bytes arrived.
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
import { anthropicMessages } from "./AnthropicMessages.ts";
import { googleGemini } from "./GoogleGemini.ts";
import { openAiChat } from "./OpenAiChat.ts";
import { openAiResponses } from "./OpenAiResponses.ts";
import { PartWriter } from "./PartWriter.ts";
import { type Body, codecTransformer, type Written } from "./Request.ts";

/** The model, its server, and additions to its requests. */
export interface Options {
  readonly protocol: WrittenProtocol;
  readonly model: string;
  /** Base URL that the protocol's path is appended to. Default: the vendor's own API. */
  readonly baseUrl?: string;
  /** The whole address, in place of the base URL and the protocol's path. */
  readonly url?: string;
  /** Sent in the protocol's own way. Omit it for servers that require no key. */
  readonly apiKey?: Redacted.Redacted | Config.Config<Redacted.Redacted>;
  /** Further headers, which override this package's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the request body (`temperature`, `max_tokens`, `reasoning`), which override this package's own. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Deviations of this server's healthy streams. */
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

/** Maximum wait for the tail after the marker (usage, `[DONE]`, the end of the body), in milliseconds. */
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

/** Emits the parts of a stream, and its finish when it is over. After the marker nothing can fail. */
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
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropicMessages,
  "google-gemini": googleGemini,
} satisfies Partial<Record<ProtocolId, (written: Written) => Body>>;

/** The protocols that prompts of `effect/ai` can be written in. */
export type WrittenProtocol = keyof typeof writers;

/** Fails if the caller uses content that the protocol cannot express, or a schema that cannot be written. */
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

/** Runs a stream and returns its whole response: deltas joined to their blocks, in the order in which the blocks began. */
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

/** Only one block is open at a time: the last text or reasoning. */
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
