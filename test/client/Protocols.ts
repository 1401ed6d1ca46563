/**
 * The protocols by id, and the serials of decoded parts.
 */
import { type Part, type ProtocolId, protocols as registry, type WireProtocol } from "../../src/provider/Protocols.ts";

const byId: unknown = Object.fromEntries(registry.ids.map((id) => [id, registry.get(id)]));

export const protocols = byId as Record<ProtocolId, WireProtocol<ProtocolId>>; // the registry has every id

/** Serials of deltas in the order of their first appearance; Responses repeats the text in its done events. */
export const serialsOf = (parts: ReadonlyArray<Part>): ReadonlyArray<string> => [
  ...new Set(parts.flatMap((part) => [...part.event.data.matchAll(/r\d+\.\d+·/g)].map((match) => match[0]))),
];
