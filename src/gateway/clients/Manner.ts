/**
 * Says how one request's client is treated: what the request asks for, what is configured, and what is known of the client.
 *
 * It chooses among treatments that are each right for some client. It is no security: a header is a client's own word.
 */
import { headerOf, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { ClientOverrides } from "./ClientOverrides.ts";
import type { ClientRow, Difference, Treatment } from "./ClientRow.ts";
import { clientRows, protocolDifferences, unknownName, unknownTreatment } from "./ClientRows.ts";

/** How one request's client is treated. */
export interface Manner extends Treatment {
  /** A bounded label: a row's name, or `unknown`. */
  readonly client: string;
}

/** Of a request what says how its client is treated. */
export interface MannerRequest {
  readonly headers: RelayHeaders;
  /** The id of its protocol. */
  readonly protocol: string;
  /** What the request asks for by its path or its header. */
  readonly asked?: Treatment["reveal"] | undefined;
}

/** What is configured for all clients; what is left out leaves the choice to the client's row. */
export interface MannerSettings {
  readonly reveal?: Treatment["reveal"] | undefined;
  readonly onBreak?: Treatment["onBreak"] | undefined;
  /** Milliseconds. The shorter one of this and the row's counts. */
  readonly holdMaxMs?: number | undefined;
  readonly clients?: ClientOverrides | undefined;
}

/**
 * How a request's client is treated.
 *
 * Reveal: what the request asks for, then the configuration's row of the client, then what is configured for all clients, then
 * the shipped row. The end of a broken response: the same without the first.
 */
export const mannerOf = (request: MannerRequest, settings: MannerSettings = {}): Manner => {
  const marks = { agent: headerOf(request.headers, "user-agent") ?? "", headers: request.headers };
  const row = clientRows.find(({ matches }) => matches(marks));
  const client = row?.name ?? unknownName;
  const shipped = shippedTreatment(row, request.protocol);
  const own: Difference = settings.clients?.rows?.[client] ?? {};
  return {
    ...shipped,
    ...own,
    client,
    reveal: request.asked ?? own.reveal ?? settings.reveal ?? shipped.reveal,
    onBreak: own.onBreak ?? settings.onBreak ?? shipped.onBreak,
    patienceMs: own.patienceMs ?? patienceOf(request.headers, shipped.patienceMs),
    holdMaxMs: shorter(settings.holdMaxMs, own.holdMaxMs ?? shipped.holdMaxMs),
  };
};

/**
 * What the table says of a client in a protocol.
 *
 * @param row undefined for an unknown client
 */
export const shippedTreatment = (row: ClientRow | undefined, protocol: string): Treatment => {
  const id = protocol as ProtocolId; // a protocol of another registry has no differences
  return { ...unknownTreatment, ...protocolDifferences[id], ...row?.everywhere, ...row?.protocols[id] };
};

/** Longest that a head is withheld, in milliseconds: undici gives a head up after 300 s, whatever its caller waits. */
export const patienceMaxMs = 240_000;

/** Half of what the request says that it waits, in seconds; else what the row says. */
const patienceOf = (headers: RelayHeaders, shipped: number): number => {
  const said = headerOf(headers, "x-stainless-timeout");
  if (said === undefined || !/^\d{1,9}$/.test(said)) return shipped;
  return Math.min(patienceMaxMs, Number(said) * 500);
};

const shorter = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
