/**
 * Derives the figures of the scale tables in docs/bench.md from the measurements of the store.
 */
import { median } from "../Median.ts";
import type { Figure } from "../ScaleFigures.ts";
import type { Cost, Gateways, Name } from "./Gateways.ts";
import type { Writes } from "./Writes.ts";

/** The figures that this bench measures, by their names in scripts/scale/figures.json. */
export type StoreFigures = Readonly<Record<"recordUs" | "walBytes" | "tableBytes" | "serverUs", Figure>>;

/** Number of writes of a happy run. */
const writesOfRun = 3;

const whole = (value: number): number => Math.max(1, Math.round(value));

/** Median cost of a happy stream for a contender. */
const costOf = ({ loads }: Gateways, name: Name, what: keyof Cost): number =>
  median(loads.happy.costs[name].map((cost) => cost[what]));

/**
 * Computes the figures: the median of each measurement, and the worst value of the same quantity. A gateway's stream writes more than the
 * three writes of a bare run, and fewer of its writes share a commit, so the server's share is taken from streams.
 */
export const figuresOf = (results: ReadonlyArray<Writes>, gateways: Gateways): StoreFigures => {
  const all = (of: (one: Writes) => number) => results.map(of);
  const figure = (usual: number, worst: ReadonlyArray<number>) => ({
    value: whole(usual),
    worst: whole(Math.max(usual, ...worst)),
  });
  const rows = all(({ rows_bytes }) => rows_bytes);
  return {
    recordUs: figure(
      median(all(({ postgres_us }) => postgres_us)),
      all(({ alone_us }) => alone_us),
    ),
    walBytes: figure(costOf(gateways, "one", "wal"), [costOf(gateways, "several", "wal")]),
    tableBytes: figure(median(rows), rows),
    serverUs: figure(costOf(gateways, "one", "server") / writesOfRun, [
      costOf(gateways, "several", "server") / writesOfRun,
      ...all(({ alone_server_us }) => alone_server_us / writesOfRun),
    ]),
  };
};
