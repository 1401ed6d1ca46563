/**
 * Puts the table of clients together with what a configuration says of it.
 */
import { headerOf } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { ClientMatch, ClientOverride, ClientOverrides } from "./ClientOverrides.ts";
import type { ClientRow, Difference, RequestMarks, Treatment } from "./ClientRow.ts";
import { clientRows, protocolDifferences, unknownRow, unknownTreatment } from "./ClientRows.ts";

/** A row with what the configuration says of its client. */
export interface ConfiguredRow extends ClientRow {
  readonly configured: Difference;
}

/** A table; its last row matches every request. */
export type ClientTable = ReadonlyArray<ConfiguredRow>;

/** The table of a configuration: rows of its own, then the shipped ones, then that of all other clients. */
export const tableOf = (overrides: ClientOverrides = {}): ClientTable => {
  const known = tables.get(overrides);
  if (known !== undefined) return known;
  const shipped = [...clientRows, unknownRow];
  const byName = new Map(Object.entries(overrides)); // a name of the table is never that of an inherited member
  const own = Object.entries(overrides).flatMap(([name, override]) =>
    override.match === undefined ? [] : [ownRow(name, override, override.match, shipped)],
  );
  const table = [...own, ...shipped.map((row) => ({ ...row, configured: fieldsOf(byName.get(row.name)) }))];
  tables.set(overrides, table);
  return table;
};

/** One table a configuration, so that a request does not make one. */
const tables = new WeakMap<ClientOverrides, ClientTable>();

/** The row of a request. It is asked for twice, before and behind its body, and found once. */
export const rowOf = (table: ClientTable, request: RequestMarks): ConfiguredRow => {
  const known = rows.get(request.headers);
  if (known?.table === table) return known.row;
  const row = table.find(({ matches }) => matches(request)) ?? { ...unknownRow, configured: {} };
  rows.set(request.headers, { table, row });
  return row;
};

const rows = new WeakMap<RequestMarks["headers"], { readonly table: ClientTable; readonly row: ConfiguredRow }>();

/** What is shipped of a client in a protocol, without what a configuration says. */
export const shippedTreatment = (row: ClientRow, protocol: string): Treatment => {
  const ofRow = treatments.get(row) ?? new Map<string, Treatment>();
  treatments.set(row, ofRow);
  const known = ofRow.get(protocol);
  if (known !== undefined) return known;
  const id = protocol as ProtocolId; // a protocol of another registry has no differences
  const { everywhere, protocols } = row;
  const made = { ...unknownTreatment, ...protocolDifferences[id], ...everywhere, ...protocols[id] };
  ofRow.set(protocol, made);
  return made;
};

/** What was put together of each row, by protocol: at most as many as there are protocols. */
const treatments = new WeakMap<ClientRow, Map<string, Treatment>>();

const ownRow = (
  name: string,
  override: ClientOverride,
  match: ClientMatch,
  shipped: ReadonlyArray<ClientRow>,
): ConfiguredRow => {
  const base = shipped.find((row) => row.name === override.as) ?? unknownRow;
  return { ...base, name, marks: "configured", matches: matcherOf(match), configured: fieldsOf(override) };
};

const matcherOf =
  (match: ClientMatch) =>
  ({ agent, headers }: RequestMarks): boolean => {
    if ("userAgent" in match) return agent.startsWith(match.userAgent);
    const value = headerOf(headers, match.header.toLowerCase());
    return value?.startsWith(match.value ?? "") === true;
  };

const fieldsOf = ({ as: _as, match: _match, ...fields }: ClientOverride = {}): Difference => fields;
