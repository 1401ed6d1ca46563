/**
 * Says in a protocol's own words, inside a stream, that an answer has broken: for clients that know an error event and not
 * what an aborted connection means.
 */
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { ProtocolId } from "../../provider/stream/Protocol.ts";

/**
 * The error event of a protocol, as bytes of its stream. The connection breaks behind it all the same: nobody can take it for
 * a terminal marker.
 *
 * @param error what ended the run; the provider's own message is not in it
 */
export const errorEvent = (protocol: ProtocolId, { message, rule }: RelayInterrupted): Uint8Array<ArrayBuffer> =>
  new TextEncoder().encode(events[protocol](`stream-recovery gateway: ${message}`, rule));

const events: Readonly<Record<ProtocolId, (message: string, code: string) => string>> = {
  "openai-chat": (message, code) => data({ error: { message, type: "gateway_interrupted", param: null, code } }),
  "openai-responses": (message, code) => named("error", { type: "error", code, message, param: null }),
  "anthropic-messages": (message) => named("error", { type: "error", error: { type: "api_error", message } }),
  "google-gemini": (message) => data({ error: { code: 502, message, status: "UNAVAILABLE" } }),
};

// A blank line first: what was handed over may have ended in the middle of an event.
const data = (json: object): string => `\n\ndata: ${JSON.stringify(json)}\n\n`;

const named = (event: string, json: object): string => `\n\nevent: ${event}\ndata: ${JSON.stringify(json)}\n\n`;
