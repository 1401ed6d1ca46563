/** Builds the plan of a request that is answered by a document and changes nothing at the provider, so that its run may replay it. */
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import { type RelayRequest, readAddress } from "../../adapters/relay/RelayTransport.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type ProtocolId, protocols } from "../../provider/Protocols.ts";
import { replayedWire, type Wire } from "./Wires.ts";

/** Recognises a request that may be replayed, by its method and its absolute address. The body of a POST decides. */
export const mayBeReplayed = (method: string, url: string): boolean => wireAt(method, url) !== undefined;

/**
 * Returns the plan of a request that may be replayed.
 *
 * @param upstream provider in whose format errors are written, for a wire that several providers have
 * @param body undefined for a GET
 * @returns undefined for another request, and for a body that asks for a stream
 */
export const replayPlan = (
  request: RelayRequest,
  upstream: keyof typeof protocolOf,
  body: Json.JsonRecord | undefined,
): RelayPlan | undefined => {
  const wire = wireAt(request.method, request.url);
  const address = readAddress(request.url);
  if (wire === undefined || address === undefined || body?.stream === true) return undefined;
  const model = /\/models\/([^/:]+):\w+$/.exec(pathOf(address.pathname))?.[1] ?? Json.string(body?.model);
  return {
    request,
    protocol: protocols.get(wire.protocol ?? protocolOf[upstream]),
    streaming: false,
    isOpaque: true,
    provider: { id: label(address.host), ...(model === "" ? {} : { model: label(model) }) },
    tools: [],
    tolerance: {},
  };
};

const protocolOf = {
  openai: "openai-chat",
  anthropic: "anthropic-messages",
  gemini: "google-gemini",
} as const satisfies Readonly<Record<string, ProtocolId>>;

const wireAt = (method: string, url: string): Wire | undefined => {
  const address = readAddress(url);
  return address === undefined ? undefined : replayedWire(method.toUpperCase(), pathOf(address.pathname));
};

const pathOf = (pathname: string): string => pathname.replace(/\/+$/, "");
