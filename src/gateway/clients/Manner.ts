/**
 * Says how one request's client is treated: what the request asks for, what is configured, and what is known of the client.
 *
 * It chooses among treatments that are each right for some client. It is no security: a header is a client's own word.
 */
import { headerOf, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ClientOverrides } from "./ClientOverrides.ts";
import type { Treatment } from "./ClientRow.ts";
import { type ConfiguredRow, rowOf, shippedTreatment, tableOf } from "./ClientTable.ts";

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
  const row = clientRowOf(request, settings);
  const { configured } = row;
  const shipped = shippedTreatment(row, request.protocol);
  return {
    ...shipped,
    ...configured,
    client: row.name,
    reveal: request.asked ?? configured.reveal ?? settings.reveal ?? shipped.reveal,
    onBreak: configured.onBreak ?? settings.onBreak ?? shipped.onBreak,
    patienceMs: patienceOf(row, shipped, waitOf(request.headers)),
    holdMaxMs: shorter(settings.holdMaxMs, configured.holdMaxMs ?? shipped.holdMaxMs),
  };
};

/** The label of a request's client alone, where its protocol is not known yet. */
export const clientNameOf = (request: Pick<MannerRequest, "headers">, settings: MannerSettings = {}): string =>
  clientRowOf(request, settings).name;

const clientRowOf = ({ headers }: Pick<MannerRequest, "headers">, { clients }: MannerSettings): ConfiguredRow =>
  rowOf(tableOf(clients ?? none), { agent: headerOf(headers, "user-agent") ?? "", headers });

const none: ClientOverrides = {};

/** @param waits milliseconds that the request says it waits */
const patienceOf = (row: ConfiguredRow, shipped: Treatment, waits: number | undefined): number => {
  const configured = row.configured.patienceMs;
  if (waits === undefined) return configured ?? shipped.patienceMs;
  return Math.floor(Math.min(configured ?? shipped.patienceMs, waits * row.patienceShare));
};

/** OpenAI's and Anthropic's SDKs say what they wait for a head, in seconds; those in Python what they wait for bytes. */
const waitHeaders = ["x-stainless-timeout", "x-stainless-read-timeout"] as const;

const waitOf = (headers: RelayHeaders): number | undefined => {
  for (const name of waitHeaders) {
    const said = headerOf(headers, name);
    if (said !== undefined && /^\d{1,9}(?:\.\d{1,9})?$/.test(said)) return Number(said) * 1000;
  }
  return undefined;
};

const shorter = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
