/**
 * Chooses the treatment of a client from its request, the configuration and the client table.
 *
 * The treatment is not a security boundary: a client can forge any header, and then gets the treatment of another client.
 */
import { headerOf, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ClientOverrides } from "./ClientOverrides.ts";
import type { Treatment } from "./ClientRow.ts";
import { builtInTreatment, type ConfiguredRow, rowOf, tableOf } from "./ClientTable.ts";

/** The treatment that one request gets. */
export interface Manner extends Treatment {
  /** A label of bounded length: the row's name, or `unknown`. */
  readonly client: string;
}

/** The parts of a request that determine its treatment. */
export interface MannerRequest {
  readonly headers: RelayHeaders;
  /** Id of the request's protocol. */
  readonly protocol: string;
  /** The `reveal` that the request demands by its path or header. */
  readonly asked?: Treatment["reveal"] | undefined;
}

/** The configuration for all clients. The client's row determines the omitted fields. */
export interface MannerSettings {
  readonly reveal?: Treatment["reveal"] | undefined;
  readonly onBreak?: Treatment["onBreak"] | undefined;
  /** Maximum time that a response is withheld, in milliseconds. If the row has a shorter maximum, that one applies. */
  readonly holdMaxMs?: number | undefined;
  readonly clients?: ClientOverrides | undefined;
}

/**
 * Chooses the treatment of a client.
 *
 * Sources of `reveal`, in order: the request, the client's configured row, the configuration for all clients, the built-in row. `onBreak`
 * has the same sources except the request.
 */
export const mannerOf = (request: MannerRequest, settings: MannerSettings = noSettings): Manner => {
  const { asked, headers, protocol } = request;
  const known = manners.get(headers);
  if (known?.protocol === protocol && known.asked === asked && known.settings === settings) return known.manner;
  const manner = chooseManner(request, settings);
  manners.set(headers, { protocol, asked, settings, manner });
  return manner;
};

/** The last manner of each list of headers, because a connection usually sends the same list again. */
const manners = new WeakMap<
  MannerRequest["headers"],
  Pick<MannerRequest, "asked" | "protocol"> & { readonly settings: MannerSettings; readonly manner: Manner }
>();

const chooseManner = (request: MannerRequest, settings: MannerSettings): Manner => {
  const row = clientRowOf(request, settings);
  const { configured } = row;
  const builtIn = builtInTreatment(row, request.protocol);
  return {
    ...builtIn,
    ...configured,
    client: row.name,
    reveal: request.asked ?? configured.reveal ?? settings.reveal ?? builtIn.reveal,
    onBreak: configured.onBreak ?? settings.onBreak ?? builtIn.onBreak,
    patienceMs: patienceOf(row, builtIn, waitOf(request.headers)),
    holdMaxMs: minDefined(settings.holdMaxMs, configured.holdMaxMs ?? builtIn.holdMaxMs),
  };
};

/** Returns only the client's label. It does not depend on the protocol. */
export const clientNameOf = (request: Pick<MannerRequest, "headers">, settings: MannerSettings = noSettings): string =>
  clientRowOf(request, settings).name;

const clientRowOf = ({ headers }: Pick<MannerRequest, "headers">, { clients }: MannerSettings): ConfiguredRow =>
  rowOf(tableOf(clients ?? none), { agent: headerOf(headers, "user-agent") ?? "", headers });

const none: ClientOverrides = {};
const noSettings: MannerSettings = {};

/** @param waits the client's own timeout, stated in its request, in milliseconds */
const patienceOf = (row: ConfiguredRow, builtIn: Treatment, waits: number | undefined): number => {
  const configured = row.configured.patienceMs;
  if (waits === undefined) return configured ?? builtIn.patienceMs;
  return Math.floor(Math.min(configured ?? builtIn.patienceMs, waits * row.patienceShare));
};

/**
 * Headers in which SDKs state their timeouts, in seconds. The SDKs of OpenAI and Anthropic send the timeout for the response head; those in
 * Python send the timeout for reading bytes.
 */
const waitHeaders = ["x-stainless-timeout", "x-stainless-read-timeout"] as const;

const waitOf = (headers: RelayHeaders): number | undefined => {
  for (const name of waitHeaders) {
    const said = headerOf(headers, name);
    if (said !== undefined && /^\d{1,9}(?:\.\d{1,9})?$/.test(said)) return Number(said) * 1000;
  }
  return undefined;
};

const minDefined = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
