/**
 * Formats the measurements of gateways over one database as table rows, and checks their bars.
 */
import { quantile, spread } from "../Median.ts";
import { type Row, spreadText } from "../Row.ts";
import { askedMs } from "./Cooldown.ts";
import { type Death, survivors } from "./Deaths.ts";
import { type Cost, type Gateways, type Load, loads, type Measured, type Name, names } from "./Gateways.ts";
import type { Kinds } from "./Statements.ts";
import { barredRow, plainRow } from "./StoreRows.ts";

/** Maximum time until an announced wait holds at another gateway, in milliseconds. */
const cooldownBar = 1_000;

/** Maximum time from a dead gateway's lease expiry to the decision of its runs, in milliseconds (DESIGN.md, section 18). */
const decidedBar = 5_000;

const shown: ReadonlyArray<Name> = ["file", "one", "several"];

const of = (costs: ReadonlyArray<Cost>, what: keyof Cost) => spread(costs.map((cost) => cost[what]));

const statementsText = ({ all, facts, transactions }: Kinds): string => {
  const told = [
    ["transactions", transactions],
    ["shared facts", facts],
  ] as const;
  const parts = told.filter(([, count]) => count > 0).map(([what, count]) => `${count.toFixed(3)} of ${what}`);
  return `${all.toFixed(2)} statements${parts.length === 0 ? "" : ` (${parts.join(", ")})`}`;
};

const costRow = (load: Load, { costs, statements }: Measured, name: Name): Row => {
  const [gateway, server, wal] = [
    of(costs[name], "gateway"),
    of(costs[name], "server"),
    of(costs[name], "wal"),
  ] as const;
  const kinds = statements[name];
  const ofServer = kinds && [
    `${server.median.toFixed(0)} µs of the server's`,
    `${wal.median.toFixed(0)} bytes of its log`,
    statementsText(kinds),
  ];
  return plainRow(
    `${loads[load]}: ${names[name]}`,
    [`${spreadText(gateway, 0, "µs")} of the gateway's CPU`, ...(ofServer ?? [])].join(", "),
    {
      gateway_us: gateway.median,
      ...(kinds && { server_us: server.median, wal_bytes: wal.median, statements: kinds.all, facts: kinds.facts }),
    },
  );
};

/** Difference between two contenders in the same round. */
const moreThan = ({ costs }: Measured, name: Name, than: Name, what: keyof Cost) =>
  spread(costs[name].map((cost, round) => cost[what] - (costs[than][round]?.[what] ?? Number.NaN)));

const moreRow = (load: Load, measured: Measured, [name, than]: readonly [Name, Name], what: string): Row => {
  const more = (of: keyof Cost) => moreThan(measured, name, than, of);
  const ratio = spread(
    measured.costs[name].map((cost, round) => cost.gateway / (measured.costs[than][round]?.gateway ?? Number.NaN)),
  );
  const statements = (measured.statements[name]?.all ?? 0) - (measured.statements[than]?.all ?? 0);
  return plainRow(
    `${loads[load]}: ${what}`,
    `${spreadText(ratio, 2, "×")} the gateway's CPU, ${spreadText(more("gateway"), 0, "µs")} more; ${more("server").median.toFixed(0)} µs more of the server's, ${more("wal").median.toFixed(0)} bytes of its log, ${statements.toFixed(2)} statements`,
    {
      ratio: ratio.median,
      gateway_us: more("gateway").median,
      server_us: more("server").median,
      wal_bytes: more("wal").median,
      statements,
    },
  );
};

const loadRows = (load: Load, measured: Measured, many: number): ReadonlyArray<Row> => [
  ...shown.map((name) => costRow(load, measured, name)),
  moreRow(load, measured, ["several", "one"], `${many} gateways over one database against one`),
];

/**
 * The rows of gateways.
 *
 * @param many number of gateways over one database
 */
export const gatewaysRows = ({ broken, idle, loads: of }: Gateways, many: number): ReadonlyArray<Row> => {
  const notifies = of.happy.statements.several?.notifies ?? Number.NaN;
  const perSecond = idle.statements;
  return [
    ...loadRows("happy", of.happy, many),
    barredRow(plainRow("`NOTIFY`s of a happy stream", notifies.toFixed(3), { notifies }), notifies, 0, ""),
    ...loadRows("repeat", of.repeat, many),
    plainRow("a stream that breaks once before its first content", statementsText(broken), {
      statements: broken.all,
      facts: broken.facts,
      notifies: broken.notifies,
    }),
    plainRow(
      `${many} gateways that are idle, per second`,
      `${idle.gateway.toFixed(0)} µs of their CPU, ${idle.server.toFixed(0)} µs of the server's, ${idle.wal.toFixed(0)} bytes of its log, ${statementsText(perSecond)}`,
      {
        gateway_us: idle.gateway,
        server_us: idle.server,
        wal_bytes: idle.wal,
        statements: perSecond.all,
        facts: perSecond.facts,
      },
    ),
  ];
};

/** The row of announced waits. The slowest one is judged. */
export const cooldownRow = (found: ReadonlyArray<number>): Row => {
  const { max, median, min } = spread(found);
  const p95 = quantile(found, 0.95);
  const late = max >= askedMs ? "; the slowest did not hold within the measurement" : "";
  const row = plainRow(
    "an announced wait holds at another gateway",
    `${median.toFixed(1)} ms after the refusal (${min.toFixed(1)}–${max.toFixed(1)}, of ${found.length})${late}`,
    { median_ms: median, min_ms: min, p95_ms: p95, max_ms: max },
  );
  return barredRow(row, max, cooldownBar, "ms");
};

/** The row of gateways that died with the same number of runs. The slowest decision is judged. */
export const deathRow = (found: ReadonlyArray<Death>): Row => {
  const of = (value: (one: Death) => number) => spread(found.map(value));
  const [decided, known] = [of(({ decidedMs }) => decidedMs), of(({ knownMs }) => knownMs)];
  const [gateways, server] = [of((one) => one.gateways), of((one) => one.server)];
  const [runs, statements] = [found[0]?.runs ?? 0, of(({ statements }) => statements.all)];
  const { transactions } = found[0]?.statements ?? { transactions: Number.NaN };
  const row = plainRow(
    `all ${runs.toLocaleString("en")} runs of a dead gateway are decided by ${survivors} others`,
    `${spreadText(decided, 0, "ms")}, the first after ${known.median.toFixed(0)} ms; for a run ${gateways.median.toFixed(0)} µs of their CPU, ${server.median.toFixed(0)} µs of the server's, ${statements.median.toFixed(2)} statements (${transactions.toFixed(3)} of transactions)`,
    {
      decided_ms: decided.median,
      max_ms: decided.max,
      known_ms: known.median,
      gateway_us: gateways.median,
      server_us: server.median,
      statements: statements.median,
    },
  );
  return barredRow(row, decided.max, decidedBar, "ms");
};
