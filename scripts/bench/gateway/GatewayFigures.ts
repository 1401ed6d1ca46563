/**
 * Derives the figures of the scale tables in docs/bench.md from the measurements of a gateway.
 */
import type { Row } from "../Row.ts";
import type { Figure } from "../ScaleFigures.ts";
import { liveFile, liveMemory, nameOf } from "./Settings.ts";
import { type Protocol, wires } from "./Wires.ts";

/** The figures that this bench measures, by their names in scripts/scale/figures.json. */
export type GatewayFigures = Readonly<Record<"pacedEventUs" | "streamUs" | "openKiB", Figure>>;

/** Matches a row of the table by the start and the end of its label. */
const isLine = (begins: string, ends: string) => (row: Row) => row.what.startsWith(begins) && row.what.endsWith(ends);

const [memory, file] = [nameOf(liveMemory), nameOf(liveFile)];
const isEvent = isLine("an event, 50 paced streams", `: ${memory}`);
/** Number of open streams that the memory figure is based on. */
const heldStreams = 1000;

const isStream = isLine("a stream of 20 in a burst", `: ${memory}`);

/** The titles of the parts of the table. */
export const cpuTitle = (protocol: Protocol): string => `CPU of ${wires[protocol].title}, against a plain Node proxy`;
export const heldTitle = (streams: number): string => `An open stream, of ${streams}`;

export const lingerTitle = "A run that lingers after its end";

/** The rows under a title. */
export interface Part {
  readonly name: string;
  readonly rows: ReadonlyArray<Row>;
}

/**
 * Computes the figures, or undefined if a run has not measured all of them: CPU of Chat Completions, and memory. The CPU of events and
 * streams is that of the memory recorder, because PostgreSQL's share of a run is a separate figure.
 */
export const figuresOf = (parts: ReadonlyArray<Part>): GatewayFigures | undefined => {
  const rowsOf = (title: string) => parts.find(({ name }) => name === title)?.rows ?? [];
  const cpu = rowsOf(cpuTitle("chat"));
  const [event, stream] = [cpu.find(isEvent), cpu.find(isStream)];
  const { heapKib = 0, rssKib } = rowsOf(heldTitle(heldStreams)).find(({ what }) => what === file)?.numbers ?? {};
  if (event === undefined || stream === undefined || rssKib === undefined) return undefined;
  // If the heap already had free room, it grows by more than the process does.
  const kib = Number(Math.max(rssKib, heapKib).toFixed(1));
  return { pacedEventUs: usOf(event), streamUs: usOf(stream), openKiB: { value: kib, worst: kib } };
};

/** Number of events of the lingering runs in the figure, as in the scale tables of docs/bench.md. A log's buffers grow with them. */
const lingerEvents = 500;

/** Memory of a lingering run beyond the bytes of its response, or undefined if it was not measured. */
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
