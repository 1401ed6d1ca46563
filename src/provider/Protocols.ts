/**
 * The registry of wire protocols.
 *
 * A protocol is a folder: `Decode` (the fold), `Calls`, `Content` (the content of an event), `Continue` (the next request), `Splice`, and
 * `Protocol`, which has the addresses and assembles the other files. A new protocol is one such folder and one entry in the list here:
 * `ProtocolId` and every table by protocol are derived from it. Two tables are separate: the prompts of `effect/ai`
 * (`adapters/provider-model`), and the simulated providers (`testing/answers`), which share no code with the code that they test. Their
 * types reject a protocol without a row.
 */
import { anthropicMessages } from "./anthropic/Protocol.ts";
import { bedrockConverse, bedrockInvoke } from "./bedrock/Protocol.ts";
import { codeAssist } from "./code-assist/Protocol.ts";
import { cohereChat } from "./cohere/Protocol.ts";
import { googleGemini } from "./gemini/Protocol.ts";
import { geminiInteractions } from "./gemini-interactions/Protocol.ts";
import { mistralConversations } from "./mistral-conversations/Protocol.ts";
import { ollama } from "./ollama/Protocol.ts";
import { openAiChat } from "./openai-chat/Protocol.ts";
import { openAiCompletions } from "./openai-completions/Protocol.ts";
import { openAiResponses } from "./openai-responses/Protocol.ts";
import type { Target } from "./protocol/Address.ts";
import type { WireProtocol } from "./protocol/WireProtocol.ts";
import type * as Stream from "./stream/Protocol.ts";

export type { WireProtocol } from "./protocol/WireProtocol.ts";
export type { End, SseComment, SseEvent, Tolerance } from "./stream/Protocol.ts";

/** The protocols of the package, in the order of every table. */
const all = [
  ...([anthropicMessages, openAiChat, openAiResponses, googleGemini] as const),
  ...([codeAssist, ollama, openAiCompletions, cohereChat] as const),
  ...([bedrockConverse, bedrockInvoke, geminiInteractions, mistralConversations] as const),
] as const;

/** The ids of the package's wire protocols. */
export type ProtocolId = (typeof all)[number]["id"];

/** The protocol of a part: `sse` for a stream that `AnySse` reads without a provider. */
export type AnyProtocolId = ProtocolId | "sse";

/** One decoded event of one of the package's protocols. */
export type Part<Id extends string = ProtocolId> = Stream.Part<Id>;

/** The decoder of a protocol: a fold over its events. `S` is its immutable state. */
export type Protocol<S = unknown, Id extends string = ProtocolId> = Stream.Protocol<S, Id>;

/** Looks up protocols by id and by address. */
export interface Registry<Id extends string = string> {
  readonly ids: ReadonlyArray<Id>;
  readonly get: (id: Id) => WireProtocol<Id>;
  /** The protocol that claims an address, with the request properties in the address. */
  readonly at: (target: Target) => { readonly protocol: WireProtocol<Id>; readonly claim: Claim } | undefined;
}

type Claim = NonNullable<ReturnType<WireProtocol["address"]["claim"]>>;

/**
 * Creates a registry.
 *
 * @param protocols protocols with distinct ids; the first one that claims an address wins
 */
export const registry = <Id extends string>(protocols: ReadonlyArray<WireProtocol<Id>>): Registry<Id> => {
  const byId = new Map<string, WireProtocol<Id>>(protocols.map((protocol) => [protocol.id, protocol]));
  return {
    ids: protocols.map(({ id }) => id),
    get: (id) => {
      const protocol = byId.get(id);
      if (protocol === undefined)
        throw new TypeError(`protocol: expected one of ${[...byId.keys()].join(", ")}, got ${id}`);
      return protocol;
    },
    at: (target) => {
      for (const protocol of protocols) {
        const claim = protocol.address.claim(target);
        if (claim !== undefined) return { protocol, claim };
      }
      return undefined;
    },
  };
};

/** The registry of the package. */
export const protocols: Registry<ProtocolId> = registry<ProtocolId>(all);
