/**
 * Contains the table of fields that bind a request to its provider's account: the field, the thing it refers to, and the protocols.
 *
 * A bound request moves only between routes whose upstreams have the same `state`. A row that matches too often prevents a possible move. A
 * missing row sends data that no other provider can read.
 */
import * as Json from "../../domain/Json.ts";
import type { ToolBoundary } from "../../domain/SideEffects.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** An object in a request's body, as the input of `BoundRow.isBinding`. */
export interface Held {
  readonly record: Json.JsonRecord;
  /** True if the object is the whole body. */
  readonly outermost: boolean;
  readonly protocol: string;
}

/** A field that binds a request. */
export interface BoundRow {
  /** Name of the field, also in logs. */
  readonly field: string;
  /** The thing that the field refers to, as docs/routes.md prints it. */
  readonly refersTo: string;
  /** Protocols whose own APIs define the field. The search covers all protocols, because some servers accept the fields of another API. */
  readonly protocols: ReadonlyArray<ProtocolId>;
  /** True if the object binds its request. The function must be pure. */
  readonly isBinding: (held: Held) => boolean;
  /** Keys whose values refer to earlier responses in the conversation. */
  readonly marks?: ReadonlyArray<string>;
}

const chat = "openai-chat";
const responses = "openai-responses";
const anthropic = "anthropic-messages";
const gemini = "google-gemini";
const codeAssist = "google-code-assist";
const interactions = "google-interactions";
const mistral = "mistral-conversations";
const ollama = "ollama";

/** Protocols whose providers store a response unless the request says otherwise. */
const storing: ReadonlySet<string> = new Set([responses, interactions, mistral]);

const isText = (value: unknown): boolean => Json.string(value) !== "";

const hasText =
  (...keys: ReadonlyArray<string>) =>
  ({ record }: Held): boolean =>
    keys.some((key) => isText(record[key]));

const hasList =
  (...keys: ReadonlyArray<string>) =>
  ({ record }: Held): boolean =>
    keys.some((key) => Json.list(record[key]).length > 0);

const isOf =
  (...types: ReadonlyArray<string>) =>
  ({ record }: Held): boolean =>
    types.includes(Json.string(record.type));

const isAny =
  (...rows: ReadonlyArray<BoundRow["isBinding"]>) =>
  (held: Held): boolean =>
    rows.some((binds) => binds(held));

/** True for thinking with a provider's signature, in the fields of Anthropic and of servers that forward them. */
const isSigned = ({ record }: Held): boolean =>
  isText(record.signature) &&
  (/thinking|reasoning|thought/.test(Json.string(record.type)) || record.thinking !== undefined);

/** True for an item of a Responses input that refers to another item. Its type may be omitted. */
const isReference = ({ outermost, protocol, record }: Held): boolean =>
  record.type === "item_reference" ||
  (protocol === responses &&
    !outermost &&
    isText(record.id) &&
    Object.keys(record).every((key) => key === "id" || (key === "type" && record.type === null)));

/** All rows of the table, except those of tools and of unsearched bodies. */
export const boundRows: ReadonlyArray<BoundRow> = [
  {
    field: "previous_response_id",
    refersTo: "a response stored in the account",
    protocols: [responses, interactions],
    isBinding: hasText("previous_response_id", "previous_interaction_id", "previousInteractionId"),
    marks: ["previous_response_id", "previous_interaction_id", "previousInteractionId"],
  },
  {
    field: "conversation",
    refersTo: "a conversation stored in the account, which grows with each response",
    protocols: [responses],
    isBinding: ({ outermost, record }) =>
      outermost && (isText(record.conversation) || Json.record(record.conversation) !== undefined),
    marks: ["conversation"],
  },
  {
    field: "store",
    refersTo: "the response, which the account stores if `store` is true or, outside Chat, omitted",
    protocols: [responses, chat, interactions, mistral],
    isBinding: ({ outermost, protocol, record }) =>
      outermost && (storing.has(protocol) ? record.store !== false : record.store === true),
  },
  {
    field: "background",
    refersTo: "a job of the account",
    protocols: [responses, interactions],
    isBinding: ({ outermost, record }) => outermost && record.background === true,
  },
  {
    field: "agent",
    refersTo: "an agent of the account (also `agent_id`), and the environment in which it works",
    protocols: [interactions, mistral],
    isBinding: ({ outermost, protocol, record }) =>
      outermost &&
      ((protocol === interactions && (isText(record.agent) || record.environment !== undefined)) ||
        (protocol === mistral && isText(record.agent_id))),
  },
  {
    field: "prompt.id",
    refersTo: "a prompt of the account",
    protocols: [responses],
    isBinding: ({ outermost, record }) => outermost && isText(Json.record(record.prompt)?.id),
  },
  {
    field: "encrypted_content",
    refersTo:
      "reasoning or results that only their provider can read (also `encrypted_index`, `encrypted_stdout`, `reasoning.encrypted`)",
    protocols: [responses, anthropic, chat],
    isBinding: isAny(isOf("reasoning.encrypted"), ({ record }) =>
      Object.keys(record).some((key) => key.startsWith("encrypted_") && isText(record[key])),
    ),
    marks: ["encrypted_content", "encrypted_index", "encrypted_stdout", "data"],
  },
  {
    field: "signature",
    refersTo: "thinking signed by its provider",
    protocols: [anthropic, chat, interactions],
    isBinding: isSigned,
    marks: ["signature"],
  },
  {
    field: "redacted_thinking",
    refersTo: "thinking that only its provider can read",
    protocols: [anthropic],
    isBinding: isOf("redacted_thinking"),
    marks: ["data"],
  },
  {
    field: "thoughtSignature",
    refersTo: "thinking signed by its provider",
    protocols: [gemini, chat],
    isBinding: hasText("thoughtSignature", "thought_signature"),
    marks: ["thoughtSignature", "thought_signature"],
  },
  {
    field: "item_reference",
    refersTo: "an item stored in the account (also a generated image without its data)",
    protocols: [responses],
    isBinding: isAny(isReference, (held) => isOf("image_generation_call")(held) && !isText(held.record.result)),
    marks: ["id"],
  },
  {
    field: "file_id",
    refersTo: "a file of the account (also `file_ids`; inline data of a file binds nothing)",
    protocols: [responses, chat, anthropic],
    isBinding: isAny(hasText("file_id"), hasList("file_ids")),
    marks: ["file_id"],
  },
  {
    field: "fileUri",
    refersTo: "a file of the account",
    protocols: [gemini],
    isBinding: hasText("fileUri", "file_uri"),
    marks: ["fileUri", "file_uri"],
  },
  {
    field: "cachedContent",
    refersTo: "a cache of the account",
    protocols: [gemini],
    isBinding: hasText("cachedContent", "cached_content"),
  },
  {
    field: "project",
    refersTo: "a project of the Google account that a login of gemini-cli uses",
    protocols: [codeAssist],
    isBinding: ({ outermost, protocol, record }) => outermost && protocol === codeAssist && isText(record.project),
  },
  {
    field: "context",
    refersTo: "the conversation of an earlier response, as tokens of its model",
    protocols: [ollama],
    // The outline of a large body has an empty list in its place.
    isBinding: ({ outermost, protocol, record }) => outermost && protocol === ollama && Array.isArray(record.context),
  },
  {
    field: "vector_store_ids",
    refersTo:
      "a store of the account (also Gemini's `fileSearchStoreNames`, Vertex's `ragResources` and `vertexAiSearch`, Azure's `data_sources`)",
    protocols: [responses, gemini, chat],
    isBinding: isAny(
      hasText("vector_store_id"),
      hasList("vector_store_ids", "fileSearchStoreNames", "file_search_store_names"),
      hasList("ragResources", "rag_resources", "ragCorpora", "rag_corpora"),
      ({ record }) => Json.record(record.vertexAiSearch ?? record.vertex_ai_search) !== undefined,
      ({ outermost, record }) => outermost && Json.list(record.data_sources ?? record.dataSources).length > 0,
    ),
  },
  {
    field: "container",
    refersTo: "a container of the account (also `container_id`)",
    protocols: [responses, anthropic],
    isBinding: isAny(hasText("container", "container_id"), ({ record }) => {
      const container = Json.record(record.container);
      return container !== undefined && (isText(container.id) || Array.isArray(container.skills));
    }),
    marks: ["container", "container_id"],
  },
  {
    field: "audio.id",
    refersTo: "an audio response stored in the account",
    protocols: [chat],
    isBinding: ({ outermost, record }) => !outermost && isText(Json.record(record.audio)?.id),
  },
  {
    field: "mcp",
    refersTo: "a server that the provider calls, and its approvals (`mcp_servers`, `connector_id`)",
    protocols: [responses, anthropic],
    isBinding: isAny(
      hasList("mcp_servers", "mcpServers"),
      hasText("connector_id", "approval_request_id"),
      isOf("mcp", "mcp_toolset"),
    ),
  },
];

/** The row of tools. It is checked once for the whole body, not for each object. */
export const toolRow: Omit<BoundRow, "isBinding"> & {
  readonly isBinding: (tool: ToolBoundary, protocol: string) => boolean;
} = {
  field: "tools",
  refersTo:
    "stateful tools of the provider: code in a container, a shell, and every tool that is not known to be read-only",
  protocols: [responses, anthropic, gemini],
  isBinding: ({ effect, executor, name }, protocol) =>
    executor === "provider" &&
    (effect !== "read_only" || (protocol !== gemini && protocol !== codeAssist && inContainer.has(name))),
};

/** Names of tools that run in a container, in the form of a `ToolBoundary`. */
const inContainer: ReadonlySet<string> = new Set(["code_interpreter", "code_execution", "shell"]);

/** The row that applies if a body exceeds the limits of the search. */
export const unsearched: Pick<BoundRow, "field" | "refersTo"> = {
  field: "size",
  refersTo: "a body that is deeper or has more parts than the gateway searches",
};
