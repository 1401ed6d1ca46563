/**
 * Turns what was measured of the store into the figures that docs/scale.md is computed from.
 */
import { median } from "../Median.ts";
import type { Figure } from "../ScaleFigures.ts";
import type { Cost, Gateways, Name } from "./Gateways.ts";
import type { Writes } from "./Writes.ts";

/** Figures that this bench measures, by their names in scripts/scale/figures.json. */
export type StoreFigures = Readonly<Record<"recordUs" | "walBytes" | "tableBytes" | "serverUs", Figure>>;

/** Writes of a happy run. */
const writesOfRun = 3;

const whole = (value: number): number => Math.max(1, Math.round(value));

/** Medians of what a happy stream costs a contender. */
const costOf = ({ loads }: Gateways, name: Name, what: keyof Cost): number =>
  median(loads.happy.costs[name].map((cost) => cost[what]));

/**
 * The figures: the middle of what was measured, and the worst of the same thing. What a gateway's stream writes is more than the three
 * writes of a run that says nothing of itself, and fewer of its writes meet: the server's part is that of streams.
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
