/**
 * The registry of wire protocols: what a protocol is, where its requests go, how it goes on, how it says an error.
 *
 * A protocol is a folder: `Decode` (the fold), `Calls`, `Content` (what an event says), `Continue` (the request that
 * goes on), `Address` (where requests go) and `Protocol`, which puts them together. A further
 * protocol is one such folder and one line in the list here: `ProtocolId` and every table by protocol follow from it. Two
 * tables stand apart: how prompts of `effect/ai` are written (`adapters/provider-model`), and how a provider is played
 * (`testing/answers`, which shares no code with what it tests). Their types do not accept a protocol that has no row there.
 */
import { anthropicMessages } from "./anthropic/Protocol.ts";
import { googleGemini } from "./gemini/Protocol.ts";
import { openAiChat } from "./openai-chat/Protocol.ts";
import { openAiResponses } from "./openai-responses/Protocol.ts";
import type { Target } from "./protocol/Address.ts";
import type { WireProtocol } from "./protocol/WireProtocol.ts";
import type * as Stream from "./stream/Protocol.ts";

export type { WireProtocol } from "./protocol/WireProtocol.ts";
export type { End, SseComment, SseEvent, Tolerance } from "./stream/Protocol.ts";

/** The protocols of the package, in the order of every table. */
const all = [anthropicMessages, openAiChat, openAiResponses, googleGemini] as const;

/** The wire protocols of the package. */
export type ProtocolId = (typeof all)[number]["id"];

/** What a part may say of its protocol: `sse` for a stream of no provider's, as `AnySse` reads it. */
export type AnyProtocolId = ProtocolId | "sse";

/** One decoded event of one of the package's protocols. */
export type Part<Id extends string = ProtocolId> = Stream.Part<Id>;

/** A protocol as a fold. `S` is its state, immutable. */
export type Protocol<S = unknown, Id extends string = ProtocolId> = Stream.Protocol<S, Id>;

/** Some protocols, by id and by address. */
export interface Registry<Id extends string = string> {
  readonly ids: ReadonlyArray<Id>;
  readonly get: (id: Id) => WireProtocol<Id>;
  /** The protocol that an address is of, with what the address says of the request. */
  readonly at: (target: Target) => { readonly protocol: WireProtocol<Id>; readonly claim: Claim } | undefined;
}

type Claim = NonNullable<ReturnType<WireProtocol["address"]["claim"]>>;

/**
 * Makes a registry.
 *
 * @param protocols each with an id of its own; an address is of the first that claims it
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
