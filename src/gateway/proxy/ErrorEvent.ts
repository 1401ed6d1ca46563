/**
 * Says in a protocol's own words, inside a stream, that a response has broken: for clients that know an error event and not
 * what an aborted connection means.
 */
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";

/**
 * The error event of a protocol, as bytes of its stream. The connection breaks behind it all the same, so that no client
 * takes it for a terminal marker.
 *
 * @param error what ended the run; the provider's own message is not in it
 */
export const errorEvent = (protocol: WireProtocol, { message, rule }: RelayInterrupted): Uint8Array<ArrayBuffer> => {
  const { data, event } = protocol.errorEvent(`stream-recovery gateway: ${message}`, rule);
  const name = event === undefined ? "" : `event: ${event}\n`;
  // A blank line first: what was handed over may have ended in the middle of an event.
  return new TextEncoder().encode(`\n\n${name}data: ${JSON.stringify(data)}\n\n`);
};
