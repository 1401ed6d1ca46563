/**
 * Describes the two streaming protocols of Amazon Bedrock: their addresses, and the events that this package itself writes.
 *
 * Text is not continued after a break: the splice writes server-sent events, and a request with another body needs a new signature.
 */
import * as Json from "../../domain/Json.ts";
import { anthropicMessages } from "../anthropic/Protocol.ts";
import { refusal } from "../continuation/Input.ts";
import { type Address, bearer, type Claim, type Target } from "../protocol/Address.ts";
import { endingPauseMs, type GivenUpForm, type NoOp, recoveryCodeField } from "../protocol/StreamEvent.ts";
import { wireProtocol } from "../protocol/WireProtocol.ts";
import { writeEvent } from "../stream/EventStream.ts";
import * as Converse from "./Converse.ts";
import * as Invoke from "./Invoke.ts";

/** Accepts `/model/MODEL/CALL`, and `/model/MODEL/STREAMING` for a stream. */
const claimOf =
  (call: string, streaming: string) =>
  ({ path }: Target): Claim | undefined => {
    const [, model, asked] = /\/model\/([^/]+)\/([a-z-]+)$/.exec(path) ?? [];
    if (model === undefined || (asked !== call && asked !== streaming)) return undefined;
    return { model: unescapeColons(model), streaming: asked === streaming };
  };

/** SDKs escape the colon of a model's name. */
const unescapeColons = (model: string): string => model.replaceAll(/%3a/gi, ":");

const shared = {
  family: "bedrock",
  vendor: "https://bedrock-runtime.us-east-1.amazonaws.com",
  headers: bearer,
} as const;

/** The address of `POST /model/MODEL/converse-stream`. */
const converseAddress: Address = {
  ...shared,
  examples: ["/model/M/converse-stream"],
  path: (model) => `/model/${encodeURIComponent(model)}/converse-stream`,
  claim: claimOf("converse", "converse-stream"),
  isRequestBody: (body) => Array.isArray(body.messages),
  choices: () => undefined,
  outputTokens: ({ inferenceConfig }) => Json.natural(Json.record(inferenceConfig)?.maxTokens),
};

/** The address of `POST /model/MODEL/invoke-with-response-stream`. Only Anthropic's models take a body with `anthropic_version`. */
const invokeAddress: Address = {
  ...shared,
  examples: ["/model/M/invoke-with-response-stream"],
  path: (model) => `/model/${encodeURIComponent(model)}/invoke-with-response-stream`,
  claim: claimOf("invoke", "invoke-with-response-stream"),
  isRequestBody: (body) => Array.isArray(body.messages) && Json.string(body.anthropic_version) !== "",
  choices: () => undefined,
  outputTokens: ({ max_tokens }) => Json.natural(max_tokens),
};

/**
 * An event of a type that the API does not have. Amazon's SDKs drop such events, so that the API can get new ones
 * (`getUnmarshalledStream` of `@smithy/core`, `EventStream` of `botocore`).
 */
const noOp: NoOp = () => ({ event: "ping", data: {} });

/** The exception that keeps clients from retrying. */
const exception = "validationException";

/** The body of an error response. Amazon's SDKs read the type of an error from `__type` if no header names it. */
const document: GivenUpForm["document"] = (message, code) => ({
  __type: "ValidationException",
  message,
  ...recoveryCodeField(code),
});

const ending: GivenUpForm["ending"] = (message) => [
  { text: "", bytes: writeEvent(exception, { message }), pauseMs: endingPauseMs },
];

const givenUp: GivenUpForm = { document, ending };

/** Converts a document of Converse to events, each as the only member of an object. */
const eventsOf = ({ output, stopReason, usage }: Json.JsonRecord): ReadonlyArray<Json.JsonRecord> => [
  ...Json.list(Json.record(Json.record(output)?.message)?.content).flatMap((it, contentBlockIndex) => {
    const { reasoningContent, text, toolUse } = Json.record(it) ?? {};
    const { text: thought } = Json.record(Json.record(reasoningContent)?.reasoningText) ?? {};
    const call = Json.record(toolUse);
    const delta =
      call !== undefined
        ? { toolUse: { input: JSON.stringify(call.input) } }
        : thought !== undefined
          ? { reasoningContent: { text: thought } }
          : { text };
    return [
      ...(call === undefined ? [] : [{ contentBlockStart: { contentBlockIndex, start: { toolUse } } }]),
      { contentBlockDelta: { contentBlockIndex, delta } },
      { contentBlockStop: { contentBlockIndex } },
    ];
  }),
  { messageStop: { stopReason } },
  { metadata: { usage } },
];

/** The wire protocol of `converse-stream`. */
export const bedrockConverse = wireProtocol(Converse.protocol, {
  name: "Bedrock Converse",
  address: converseAddress,
  continuation: {
    build: () =>
      refusal("invalid", "body", "expected another protocol: requests of Bedrock Converse are not continued"),
    turn: { list: "messages", content: "content", bare: false, part: (text) => ({ text }) },
  },
  seamRefusal: () => "no_seam",
  noOp,
  givenUp,
  takesComments: false,
  eventsOf,
  usage: { cachedApart: true, reasoningApart: false },
});

/** The wire protocol of `invoke-with-response-stream`, for Anthropic's models. */
export const bedrockInvoke = wireProtocol(Invoke.protocol, {
  name: "Bedrock invoke (Anthropic's models)",
  address: invokeAddress,
  continuation: anthropicMessages.continuation,
  seamRefusal: () => "no_seam",
  noOp,
  givenUp,
  takesComments: false,
  eventsOf: anthropicMessages.eventsOf,
  usage: anthropicMessages.usage,
});
