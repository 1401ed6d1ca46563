/**
 * Turns what was measured of a gateway into the figures that docs/scale.md is computed from.
 */
import type { Row } from "../Row.ts";
import type { Figure } from "../ScaleFigures.ts";
import { liveFile, liveMemory, nameOf } from "./Settings.ts";
import { type Protocol, wires } from "./Wires.ts";

/** Figures that this bench measures, by their names in scripts/scale/figures.json. */
export type GatewayFigures = Readonly<Record<"pacedEventUs" | "streamUs" | "openKiB", Figure>>;

/** A line of the table: how it begins, and how it ends. */
const isLine = (begins: string, ends: string) => (row: Row) => row.what.startsWith(begins) && row.what.endsWith(ends);

const [memory, file] = [nameOf(liveMemory), nameOf(liveFile)];
const isEvent = isLine("an event, 50 paced streams", `: ${memory}`);
/** Open streams that the figure is of. */
const heldStreams = 1000;

const isStream = isLine("a stream of 20 in a burst", `: ${memory}`);

/** The titles of parts of the table. */
export const cpuTitle = (protocol: Protocol): string => `CPU of ${wires[protocol].title}, against a plain Node proxy`;
export const heldTitle = (streams: number): string => `An open stream, of ${streams}`;

export const lingerTitle = "A run that lingers behind its end";

/** Lines under a title. */
export interface Part {
  readonly name: string;
  readonly rows: ReadonlyArray<Row>;
}

/**
 * The figures, or nothing where a run has not measured all of them: CPU of Chat Completions, and memory. A PostgreSQL's share of a run is a
 * figure of its own: events and streams are those of the memory recorder.
 */
export const figuresOf = (parts: ReadonlyArray<Part>): GatewayFigures | undefined => {
  const rowsOf = (title: string) => parts.find(({ name }) => name === title)?.rows ?? [];
  const cpu = rowsOf(cpuTitle("chat"));
  const [event, stream] = [cpu.find(isEvent), cpu.find(isStream)];
  const { heapKib = 0, rssKib } = rowsOf(heldTitle(heldStreams)).find(({ what }) => what === file)?.numbers ?? {};
  if (event === undefined || stream === undefined || rssKib === undefined) return undefined;
  // A heap that had room already grows by more than its process does.
  const kib = Number(Math.max(rssKib, heapKib).toFixed(1));
  return { pacedEventUs: usOf(event), streamUs: usOf(stream), openKiB: { value: kib, worst: kib } };
};

/** Events of the lingering runs that the figure is of: as many as the paper about scale has in a stream. A log has room that grows with them. */
const lingerEvents = 500;

/** What a lingering run keeps beside the bytes of its response, or nothing where that was not measured. */
export const lingerFigureOf = (parts: ReadonlyArray<Part>): Readonly<Record<"lingerKiB", Figure>> | undefined => {
  const rows = parts.find(({ name }) => name === lingerTitle)?.rows ?? [];
  const { besideKib, besideMaxKib } = rows.find(({ numbers }) => numbers.events === lingerEvents)?.numbers ?? {};
  if (besideKib === undefined || besideMaxKib === undefined) return undefined;
  return { lingerKiB: { value: Number(besideKib.toFixed(1)), worst: Number(besideMaxKib.toFixed(1)) } };
};

const usOf = ({ numbers: { own = Number.NaN, ownMax = own } }: Row): Figure => ({
  value: Math.round(own),
  worst: Math.round(ownMax),
});
