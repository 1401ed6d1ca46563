/**
 * Prints the gateway's treatment of each client from the table that the gateway uses.
 */
import type { ClientRow, Treatment } from "../../src/gateway/clients/ClientRow.ts";
import { clientRows, unknownRow, unknownTreatment } from "../../src/gateway/clients/ClientRows.ts";
import { builtInTreatment } from "../../src/gateway/clients/ClientTable.ts";
import { protocols } from "../../src/provider/Protocols.ts";
import type { StreamEvent } from "../../src/provider/protocol/StreamEvent.ts";
import type { WireProtocol } from "../../src/provider/protocol/WireProtocol.ts";
import { makeFramer } from "../../src/provider/stream/EventStream.ts";
import * as Sse from "../../src/provider/stream/Sse.ts";
import { code, table } from "./Markdown.ts";

const rows: ReadonlyArray<ClientRow> = [...clientRows, unknownRow];

/** Prints the marks and the treatment of each client. */
export const clients = (): string =>
  table(
    [
      "client",
      "recognised by",
      "measured",
      "reveal",
      "head withheld",
      "maximum hold",
      "failure before the head",
      "ending of a shown response that breaks",
      "no-op before the first event",
    ],
    rows.map((row) => [
      code(row.name),
      row.marks,
      row.measured,
      formatByProtocol(row, ({ reveal }) => code(reveal)),
      formatByProtocol(row, ({ patienceMs }) => seconds(patienceMs)),
      formatByProtocol(row, ({ holdMaxMs }) => (holdMaxMs === undefined ? "" : seconds(holdMaxMs))),
      formatByProtocol(row, ({ status }) => String(status)),
      formatByProtocol(row, ({ ending, mends, onBreak }) =>
        onBreak === "tell" ? `${left[mends]}${code(onBreak)}, ${ending} end` : code(onBreak),
      ),
      listDifferences(row, ({ firstNoOp }) => firstNoOp)
        .map(({ id, own }) => `${id}: ${own}`)
        .join("; "),
    ]),
  );

/** Prints the gateway's own additions to a response in each protocol. */
export const ownEvents = (): string =>
  table(
    ["protocol", "keeps a client waiting", "ends a response"],
    protocols.ids.map((id) => {
      const protocol = protocols.get(id);
      const run = { id: "…", model: "…" };
      const writes = protocol.givenUp.ending("…", {}, run);
      return [
        protocol.name,
        line(noOpOf(protocol, protocol.noOp({}, run))),
        writes
          .map(({ bytes, pauseMs, text }) => `${line(bytes === undefined ? text : readMessage(bytes))}, ${pauseMs} ms`)
          .join(", "),
      ];
    }),
  );

/** A no-op as text. A binary message is its type and its payload. */
const noOpOf = ({ framing = Sse.framing }: WireProtocol, { data, event }: StreamEvent): string => {
  const written = framing.encode({ ...(event === undefined ? {} : { event }), data: JSON.stringify(data) });
  return typeof written === "string" ? written : readMessage(written);
};

const readMessage = (bytes: Uint8Array): string =>
  makeFramer()
    .feed(bytes)
    .map((frame) => ("event" in frame ? `${frame.event} ${frame.data}` : ""))
    .join("");

/** The words in front of the ending of a broken response. */
const left: Readonly<Record<Treatment["mends"], string>> = {
  nothing: "",
  cuts: "broken body for the first cut, then ",
  errors: "broken body for the first break, then ",
};

/** The treatment of a client in all protocols, followed by the protocols in which it differs. */
const formatByProtocol = (row: ClientRow, told: (treatment: Treatment) => string): string => {
  const everywhere = told({ ...unknownTreatment, ...row.everywhere });
  const all = protocols.ids.map((id) => ({ id, own: told(builtInTreatment(row, id)) }));
  const others = all.filter(({ own }) => own !== everywhere).map(({ id, own }) => `${id}: ${own}`);
  return [everywhere, ...others].join("; ");
};

/** The protocols in which a client differs from an unknown one. */
const listDifferences = (row: ClientRow, told: (treatment: Treatment) => string) =>
  protocols.ids
    .map((id) => ({ id, own: told(builtInTreatment(row, id)), unknown: told(builtInTreatment(unknownRow, id)) }))
    .filter(({ own, unknown }) => own !== unknown);

const seconds = (ms: number): string => `${ms / 1000} s`;

const line = (text: string): string => code(text.trim().replace(/\n+/g, " ⏎ "));
