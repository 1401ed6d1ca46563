/**
 * Prints what the gateway's bench has measured, as Markdown.
 */
import { cpus } from "node:os";
import type { Latency } from "./GatewayLoad.ts";

/** What was measured of one contender. */
export interface Measured extends Latency {
  readonly name: string;
  /** Whole streams a second. */
  readonly perSecond: number;
  /** Resident memory; missing where there is no process to look at. */
  readonly kibPerStream?: number;
}

/**
 * A row for each contender: the first in milliseconds, the others as what they add to it.
 *
 * @param held open streams while the memory was measured
 */
export const table = (rows: ReadonlyArray<Measured>, held: number): string =>
  [
    "| in front of the same provider | head ms p50 · p99 | first content ms p50 · p99 | each event ms p50 · p99 | streams/s | KiB a stream |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows.map((row) => `| ${cells(row, row === rows[0] ? undefined : rows[0]).join(" | ")} |`),
    "",
    `direct in milliseconds, the others what they add to it · ${held} open streams for the memory · Node ${process.version.slice(1)} · ${cpus().length} cores, shared by client, provider and contender`,
  ].join("\n");

const cells = (row: Measured, direct: Measured | undefined): ReadonlyArray<string> => [
  row.name,
  ...pairs.map(([, p50, p99]) =>
    direct === undefined
      ? `${row[p50].toFixed(2)} · ${row[p99].toFixed(2)}`
      : `${added(row[p50] - direct[p50])} · ${added(row[p99] - direct[p99])}`,
  ),
  row.perSecond.toFixed(0),
  row.kibPerStream?.toFixed(1) ?? "",
];

const pairs = [
  ["head", "headP50", "headP99"],
  ["first content", "firstP50", "firstP99"],
  ["each event", "eventP50", "eventP99"],
] as const;

const added = (ms: number): string => (ms < 0 ? ms.toFixed(2) : `+${ms.toFixed(2)}`);

/** What of ours the losses are counted for: the default of `serve` on a file is what people run. */
const ours = "gateway, live, file";

/** One line for each contender of others that the gateway is behind of in anything. */
export const losses = (rows: ReadonlyArray<Measured>): string => {
  const own = rows.find(({ name }) => name === ours);
  if (own === undefined) return "";
  const others = rows.filter(({ name }) => !name.startsWith("gateway, "));
  return [
    `Where "${ours}" loses:`,
    "",
    ...others.flatMap((other) => {
      const lost = lostTo(own, other);
      return lost.length === 0 ? [] : [`- to ${other.name}: ${lost.join(", ")}`];
    }),
  ].join("\n");
};

const lostTo = (own: Measured, other: Measured): ReadonlyArray<string> => [
  ...pairs.flatMap(([what, p50, p99]) => {
    const [mid, tail] = [own[p50] - other[p50], own[p99] - other[p99]];
    return mid > 0 || tail > 0 ? [`${what} ${added(mid)} · ${added(tail)} ms`] : [];
  }),
  ...(own.perSecond < other.perSecond ? [`${(other.perSecond / own.perSecond).toFixed(1)} times fewer streams/s`] : []),
  ...(own.kibPerStream !== undefined && other.kibPerStream !== undefined && own.kibPerStream > other.kibPerStream
    ? [`${(own.kibPerStream - other.kibPerStream).toFixed(1)} KiB more a stream`]
    : []),
];
