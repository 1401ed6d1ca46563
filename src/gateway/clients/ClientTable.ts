/**
 * Merges the built-in client table with the configuration.
 */
import { headerOf } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { ClientMatch, ClientOverride, ClientOverrides } from "./ClientOverrides.ts";
import type { ClientRow, Difference, RequestMarks, Treatment } from "./ClientRow.ts";
import { clientRows, protocolDifferences, unknownRow, unknownTreatment } from "./ClientRows.ts";

/** A row with the configuration of its client. */
export interface ConfiguredRow extends ClientRow {
  readonly configured: Difference;
}

/** A table whose last row matches every request. */
export type ClientTable = ReadonlyArray<ConfiguredRow>;

/** Builds the table of a configuration: configured rows, then built-in rows, then the row of unknown clients. */
export const tableOf = (overrides: ClientOverrides = {}): ClientTable => {
  const known = tables.get(overrides);
  if (known !== undefined) return known;
  const builtIn = [...clientRows, unknownRow];
  const byName = new Map(Object.entries(overrides)); // a Map, so that no name finds an inherited member
  const own = Object.entries(overrides).flatMap(([name, override]) =>
    override.match === undefined ? [] : [ownRow(name, override, override.match, builtIn)],
  );
  const table = [...own, ...builtIn.map((row) => ({ ...row, configured: fieldsOf(byName.get(row.name)) }))];
  tables.set(overrides, table);
  return table;
};

/** One table per configuration, so that requests do not rebuild it. */
const tables = new WeakMap<ClientOverrides, ClientTable>();

/** Finds the row of a request. It is called before and after the body is read, so the result is cached by the headers. */
export const rowOf = (table: ClientTable, request: RequestMarks): ConfiguredRow => {
  const known = rows.get(request.headers);
  if (known?.table === table) return known.row;
  const row = table.find(({ isMatch }) => isMatch(request)) ?? { ...unknownRow, configured: {} };
  rows.set(request.headers, { table, row });
  return row;
};

const rows = new WeakMap<RequestMarks["headers"], { readonly table: ClientTable; readonly row: ConfiguredRow }>();

/** Returns the built-in treatment of a client in a protocol, before the configuration applies. */
export const builtInTreatment = (row: ClientRow, protocol: string): Treatment => {
  const ofRow = treatments.get(row) ?? new Map<string, Treatment>();
  const known = ofRow.get(protocol);
  if (known !== undefined) return known;
  treatments.set(row, ofRow);
  const id = protocol as ProtocolId; // a protocol of another registry has no differences
  const { everywhere, protocols } = row;
  const made = { ...unknownTreatment, ...protocolDifferences[id], ...everywhere, ...protocols[id] };
  ofRow.set(protocol, made);
  return made;
};

/** Merged treatments of each row, at most one per protocol. */
const treatments = new WeakMap<ClientRow, Map<string, Treatment>>();

const ownRow = (
  name: string,
  override: ClientOverride,
  match: ClientMatch,
  builtIn: ReadonlyArray<ClientRow>,
): ConfiguredRow => {
  const base = builtIn.find((row) => row.name === override.as) ?? unknownRow;
  return { ...base, name, marks: "configured", isMatch: matcherOf(match), configured: fieldsOf(override) };
};

const matcherOf =
  (match: ClientMatch) =>
  ({ agent, headers }: RequestMarks): boolean => {
    if ("userAgent" in match) return agent.startsWith(match.userAgent);
    const value = headerOf(headers, match.header.toLowerCase());
    return value?.startsWith(match.value ?? "") === true;
  };

const fieldsOf = ({ as: _as, match: _match, ...fields }: ClientOverride = {}): Difference => fields;
