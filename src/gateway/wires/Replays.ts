/**
 * Creates the plan (`RelayPlan`) of a request that changes nothing at the provider and gets a document as its response. Its run may replay
 * the request.
 */
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import { type RelayRequest, readAddress } from "../../adapters/relay/RelayTransport.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type ProtocolId, protocols } from "../../provider/Protocols.ts";
import type { Family } from "../../provider/protocol/Address.ts";
import { replayedWire, type Wire } from "./Wires.ts";

/** True if a request may be replayed, judged by its method and absolute address. For a POST, the body decides too. */
export const mayBeReplayed = (method: string, url: string): boolean => wireAt(method, url) !== undefined;

/**
 * Creates the plan of a request that may be replayed.
 *
 * @param upstream provider in whose format errors are written, if several providers have the path
 * @param body undefined for a GET
 * @returns undefined for any other request, and for a body that asks for a stream
 */
export const replayPlan = (
  request: RelayRequest,
  upstream: Family,
  body: Json.JsonRecord | undefined,
): RelayPlan | undefined => {
  const wire = wireAt(request.method, request.url);
  const address = readAddress(request.url);
  if (wire === undefined || address === undefined || body?.stream === true) return undefined;
  const model = /\/models\/([^/:]+):\w+$/.exec(pathOf(address.pathname))?.[1] ?? Json.string(body?.model);
  return {
    request,
    protocol: protocols.get(wire.protocol ?? protocolOf(upstream)),
    streaming: false,
    isOpaque: true,
    provider: { id: label(address.host), ...(model === "" ? {} : { model: label(model) }) },
    tools: [],
    tolerance: {},
  };
};

/** The first protocol of an upstream. */
const protocolOf = (upstream: Family): ProtocolId =>
  protocols.ids.find((id) => protocols.get(id).address.family === upstream) ?? "openai-chat";

const wireAt = (method: string, url: string): Wire | undefined => {
  const address = readAddress(url);
  return address === undefined ? undefined : replayedWire(method.toUpperCase(), pathOf(address.pathname));
};

const pathOf = (pathname: string): string => pathname.replace(/\/+$/, "");
