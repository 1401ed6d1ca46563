/**
 * Formats the results of Scale.ts as the scale tables of docs/bench.md.
 */
import { table } from "../tables/Markdown.ts";
import { type Figures, read, type Values, valuesOf } from "./Figures.ts";
import * as Scale from "./Scale.ts";

/** Retention of runs in tables that name no other, in days. */
export const daysKept = 1;

const retentions = [1, 7, 30];

/** The input of the tables: the figures, their usual and their worst values, and the loads. */
export interface Given {
  readonly figures: Figures;
  readonly usual: Values;
  readonly worst: Values;
  readonly loads: ReadonlyArray<Scale.Load>;
}

/** The input from the repository. */
export const given = (): Given => {
  const figures = read();
  return { figures, usual: valuesOf(figures, false), worst: valuesOf(figures, true), loads: Scale.steps };
};

/** Formats a number with three digits at most, in words from a million. */
export const short = (value: number): string => {
  if (value === 0) return "0";
  const exact = Number(value.toPrecision(value >= 1_000 ? 3 : 2));
  if (exact >= 1e9) return `${Number((exact / 1e9).toPrecision(3))} billion`;
  if (exact >= 1e6) return `${Number((exact / 1e6).toPrecision(3))} million`;
  return exact >= 1 ? exact.toLocaleString("en-US") : String(exact);
};

/** Formats bytes with decimal prefixes. */
export const bytes = (value: number): string => {
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${Number((value / 1_000 ** power).toPrecision(3)).toLocaleString("en-US")} ${units[power]}`;
};

const dollars = (value: number): string => `$${short(value)}`;

/** One cell per load, with both numbers if the worst figures give a different one. */
const cells = (
  { loads, usual, worst }: Given,
  of: (load: Scale.Load, is: Values) => number,
  text: (value: number) => string = short,
): ReadonlyArray<string> =>
  loads.map((load) => {
    const [low, high] = [text(of(load, usual)), text(of(load, worst))];
    return low === high ? low : `${low} – ${high}`;
  });

const byLoad = (it: Given, rows: ReadonlyArray<readonly [string, ReadonlyArray<string>]>): string =>
  table(
    ["", ...it.loads.map(({ runs, streams }) => `${short(streams)} streams, ${short(runs)} runs per second`)],
    rows.map(([what, row]) => [what, ...row]),
  );

const gatewayTable = (it: Given): string => {
  const row = (what: string, of: (needs: Scale.Gateways) => number, text?: (value: number) => string) =>
    [what, cells(it, (load, is) => of(Scale.gateways(load, is)), text)] as const;
  return byLoad(it, [
    row("events per second", ({ events }) => events),
    row("cores busy with events", ({ eventCores }) => eventCores),
    row("cores busy with starts, ends and records", ({ runCores }) => runCores),
    row("**processes**, one core each, with headroom", ({ processes }) => processes),
    row("memory of open streams", ({ openBytes }) => openBytes, bytes),
    row("lingering runs", ({ lingering }) => lingering),
    row("lingering runs that fit the per-process limit", ({ lingerRoom, lingering }) =>
      Math.min(lingerRoom, lingering),
    ),
    row("memory of the runs that fit", ({ lingerBytes }) => lingerBytes, bytes),
    row("**memory**", ({ memoryBytes }) => memoryBytes, bytes),
    row("traffic to clients, per second", ({ bytesOut }) => bytesOut, bytes),
    row("traffic from clients, per second", ({ bytesIn }) => bytesIn, bytes),
  ]);
};

const databaseTable = (it: Given): string => {
  const row = (what: string, of: (needs: Scale.Database) => number, text?: (value: number) => string) =>
    [what, cells(it, (load, is) => of(Scale.database(load, is)), text)] as const;
  const bound = it.loads.map((load) => {
    const both = [it.usual, it.worst].map((is) => Scale.bindingOf(Scale.database(load, is)));
    return [...new Set(both)].join(" – ");
  });
  return byLoad(it, [
    row("writes per second", ({ writes }) => writes),
    row("transactions per second", ({ transactions }) => transactions),
    row("write-ahead log per second", ({ walBytes }) => walBytes, bytes),
    row("dead rows per second, for vacuum", ({ deadRows }) => deadRows),
    row("rows per second read by checks for dead gateways, with one database", ({ lookRows }) => lookRows),
    row("primaries for the write-ahead log", ({ needs }) => needs.WAL),
    row("primaries for transactions", ({ needs }) => needs.transactions),
    row("primaries for CPU", ({ needs }) => needs.CPU),
    row("primaries for checks", ({ needs }) => needs.polls),
    row("**primaries**, each with a standby", ({ primaries }) => primaries),
    ["bottleneck", bound],
    row("connections", ({ connections }) => connections),
    row("connections per primary", ({ connections, primaries }) => connections / primaries),
    row("pooler processes", ({ poolers }) => poolers),
  ]);
};

const retentionTable = (it: Given): string =>
  byLoad(it, [
    ...retentions.map(
      (days) =>
        [
          `disk for ${days === 1 ? "one day" : `${days} days`}`,
          cells(it, (load, is) => Scale.database(load, is).dayBytes * days, bytes),
        ] as const,
    ),
    ["seconds until the default `--keep-runs-max` is reached", cells(it, ({ runs }, is) => is.keptRuns / runs)],
  ]);

const costTable = (it: Given): string => {
  const row = (what: string, of: (cost: Scale.Cost) => number, text = dollars) =>
    [what, cells(it, (load, is) => of(Scale.cost(load, daysKept, is)), text)] as const;
  return byLoad(it, [
    row("gateways, per month", (cost) => cost.gateways),
    row("primaries and standbys, per month", (cost) => cost.database),
    row("their disks, with one day of runs", (cost) => cost.disk),
    row("traffic to clients, per month, as with any proxy", (cost) => cost.traffic),
    row("per million runs, without traffic", (cost) => cost.millionRuns),
    row(
      "the same, as a share of the cost of the output",
      (cost) => cost.share * 100,
      (value) => `${short(value)} %`,
    ),
  ]);
};

const wallTable = ({ usual, worst }: Given): string => {
  const reached = Scale.walls.flatMap((wall) => {
    const [first, early] = [Scale.reachedAt(wall, usual), Scale.reachedAt(wall, worst)];
    return first === undefined || early === undefined ? [] : [{ wall, first, early }];
  });
  const text = (low: number, high: number) =>
    short(low) === short(high) ? short(low) : `${short(low)} – ${short(high)}`;
  return table(
    ["runs per second", "open streams", "limit", "remedy"],
    reached
      .sort((a, b) => a.first.runs - b.first.runs)
      .map(({ early, first, wall }) => [
        text(early.runs, first.runs),
        text(early.streams, first.streams),
        wall.what,
        wall.instead,
      ]),
  );
};

const stepTable = (it: Given): string =>
  table(
    ["load", "limits exceeded, worst first"],
    it.loads.map((load) => {
      const over = Scale.walls
        .map((wall) => ({ wall, times: wall.times(load, it.worst) }))
        .filter(({ times }) => times > 1)
        .sort((a, b) => b.times - a.times);
      const words = over.map(({ times, wall }) => `${wall.what} (${short(times)} ×)`);
      return [`${short(load.streams)} streams, ${short(load.runs)} runs per second`, words.join("; ")];
    }),
  );

const measuredTable = ({ figures }: Given): string =>
  table(
    ["`--set`", "figure", "measured", "worst", "source", "load of the machine"],
    Object.entries(figures.measured).map(([name, { load, source, unit, value, worst, what }]) => [
      `\`${name}\``,
      what,
      `${value.toLocaleString("en-US")} ${unit}`,
      worst === value ? "" : `${worst.toLocaleString("en-US")} ${unit}`,
      source,
      load,
    ]),
  );

const assumedTable = ({ figures }: Given, which: "set" | "assumed"): string =>
  table(
    ["`--set`", which === "set" ? "setting" : "assumption", "", "why"],
    Object.entries(figures[which]).map(([name, { unit, value, what, why }]) => [
      `\`${name}\``,
      what,
      `${value.toLocaleString("en-US")}${unit === "" ? "" : ` ${unit}`}`,
      why,
    ]),
  );

/** The tables of the page by name, in order. */
export const tables: Readonly<Record<string, (it: Given) => string>> = {
  gateways: gatewayTable,
  database: databaseTable,
  retention: retentionTable,
  cost: costTable,
  walls: wallTable,
  steps: stepTable,
  measured: measuredTable,
  set: (it) => assumedTable(it, "set"),
  assumed: (it) => assumedTable(it, "assumed"),
};

/**
 * Prints one table of the page from the repository's figures.
 *
 * @throws Error if no table has that name
 */
export const printScale = (name: string): string => {
  const print = tables[name];
  if (print === undefined) throw new Error(`scale: no table is named ${name}`);
  return print(given());
};
