/**
 * Formats the measurements of happy runs, sweeps and retention as table rows, and checks their bars.
 */
import { median, spread } from "../Median.ts";
import { type Row, spreadText, verdict } from "../Row.ts";
import type { Retention } from "./Retention.ts";
import type { Sweep } from "./Sweep.ts";
import type { Writes } from "./Writes.ts";

/** Maximum CPU of a happy run on PostgreSQL, relative to SQLite in the same process (DESIGN.md, section 11). */
const cpuBar = 1.3;

/** Maximum server CPU of a sweep with many live runs, relative to one with few. */
const sweepBar = 2;

/** Maximum duration of a deletion, as a share of the time in which as many runs end at a million a day. */
const retentionShareBar = 0.1;

const daySeconds = 86_400;

/** A row without a bar. */
export const plainRow = (what: string, value: string, numbers: Row["numbers"]): Row => ({
  what,
  value,
  bar: undefined,
  verdict: undefined,
  numbers,
});

/** A row whose value must not exceed its bar. */
export const barredRow = (row: Row, value: number, bar: number, unit: string): Row => ({
  ...row,
  bar: `≤ ${bar} ${unit}`.trimEnd(),
  verdict: verdict(value, bar),
});

const ratioRow = (what: string, ratios: ReadonlyArray<number>, postgres_us: number, sqlite_us: number): Row => {
  const ratio = spread(ratios);
  const value = `${spreadText(ratio, 2, "×")}, ${postgres_us.toFixed(0)} µs against ${sqlite_us.toFixed(0)} over SQLite`;
  const numbers = { ratio: ratio.median, postgres_us, sqlite_us };
  return barredRow(plainRow(what, value, numbers), ratio.median, cpuBar, "×");
};

/** The names of the numeric measurements. */
type Measured = { readonly [K in keyof Writes]: Writes[K] extends number ? K : never }[keyof Writes];

/** The medians over the processes, as numbers and as text. */
const mediansOf = (results: ReadonlyArray<Writes>) => {
  const of = (name: Measured): number => median(results.map((it) => it[name]));
  return {
    of,
    text: (name: Measured, digits = 0): string => of(name).toFixed(digits),
    numbers: (...names: ReadonlyArray<Measured>) => Object.fromEntries(names.map((name) => [name, of(name)])),
  };
};

const clientRows = (results: ReadonlyArray<Writes>, concurrent: number): ReadonlyArray<Row> => {
  const { of, text } = mediansOf(results);
  const ratios = (name: "ratio" | "run_ratio") => results.map((it) => it[name]);
  const at = `${concurrent} at the same time`;
  const run = `CPU of a happy run of 20 events, ${at} (${text("memory_run_us")} µs in memory)`;
  return [
    ratioRow(`CPU of the three writes of a happy run, ${at}`, ratios("ratio"), of("postgres_us"), of("sqlite_us")),
    ratioRow(run, ratios("run_ratio"), of("postgres_run_us"), of("sqlite_run_us")),
  ];
};

/**
 * The rows of happy runs.
 *
 * @param results of each process
 * @param concurrent number of concurrent runs
 */
export const writesRows = (results: ReadonlyArray<Writes>, concurrent: number): ReadonlyArray<Row> => {
  const { of, numbers, text } = mediansOf(results);
  const notifies = plainRow("`NOTIFY`s of a happy run", text("notifies", 3), numbers("notifies"));
  return [
    ...clientRows(results, concurrent),
    plainRow(
      "CPU of the server for these three writes",
      spreadText(spread(results.map((it) => it.server_us)), 0, "µs"),
      numbers("server_us"),
    ),
    plainRow(
      "bytes of a happy run",
      `${text("wal_bytes")} of the server's log and ${text("rows_bytes")} of its tables and indexes; SQLite writes ${text("sqlite_bytes")}`,
      numbers("wal_bytes", "rows_bytes", "sqlite_bytes"),
    ),
    plainRow("the log of a run that breaks once", `${text("broken_wal_bytes")} bytes`, numbers("broken_wal_bytes")),
    plainRow(
      "the same three writes, one run after the other",
      `${text("alone_us")} µs of CPU, ${text("alone_server_us")} µs of the server's, ${text("alone_wal_bytes")} bytes of its log`,
      numbers("alone_us", "alone_server_us", "alone_wal_bytes"),
    ),
    plainRow(
      "statements of the three writes, and of a run of 20 events",
      `${text("statements", 3)} in ${text("transactions", 3)} transactions, ${text("undone", 4)} undone; ${text("run_statements", 3)} in ${text("run_transactions", 3)}`,
      numbers("statements", "transactions", "undone", "run_statements", "run_transactions"),
    ),
    barredRow(notifies, of("notifies"), 0, ""),
  ];
};

/**
 * The row of sweeps.
 *
 * @param results of each process
 * @param few number of live runs in the baseline
 * @param many number of live runs that a sweep must not notice
 */
export const sweepRows = (results: ReadonlyArray<Sweep>, few: number, many: number): ReadonlyArray<Row> => {
  const ratio = spread(results.map((it) => it.many_server_us / it.few_server_us));
  const of = (name: "few_ms" | "many_ms" | "few_server_us" | "many_server_us") => median(results.map((it) => it[name]));
  const numbers = {
    ratio: ratio.median,
    many_server_us: of("many_server_us"),
    few_server_us: of("few_server_us"),
    many_ms: of("many_ms"),
    few_ms: of("few_ms"),
  };
  const row = plainRow(
    `a sweep with ${many.toLocaleString("en")} live runs, relative to one with ${few}`,
    `${spreadText(ratio, 2, "×")} CPU of the server, ${numbers.many_server_us.toFixed(0)} µs against ${numbers.few_server_us.toFixed(0)}; ${numbers.many_ms.toFixed(1)} ms against ${numbers.few_ms.toFixed(1)}`,
    numbers,
  );
  return [barredRow(row, ratio.median, sweepBar, "×")];
};

/** The rows of retention. In the first, the slowest round is judged. */
export const retentionRows = (found: ReadonlyArray<Retention>): ReadonlyArray<Row> => {
  const of = (value: (one: Retention) => number) => spread(found.map(value));
  const runs = found[0]?.runs ?? 0;
  const took = of(({ forgottenMs }) => forgottenMs / 1_000);
  const share = took.max / ((runs / 1e6) * daySeconds);
  const [wal, vacuumWal] = [of((one) => one.walBytes), of((one) => one.vacuumWalBytes)];
  const p99 = { alone: of(({ alone }) => alone.p99Ms), beside: of(({ beside }) => beside.p99Ms) };
  const p50 = { alone: of(({ alone }) => alone.p50Ms), beside: of(({ beside }) => beside.p50Ms) };
  const ratio = of(({ alone, beside }) => beside.p99Ms / alone.p99Ms);
  const first = plainRow(
    `${runs.toLocaleString("en")} old runs are deleted`,
    `${spreadText(took, 1, "s")}, ${(runs / took.median).toFixed(0)} a second; ${(share * 100).toFixed(1)} % of the time in which they arrive at a million per day`,
    { seconds: took.median, max_seconds: took.max, share },
  );
  return [
    barredRow(first, share, retentionShareBar, "of that time"),
    plainRow(
      "the log of a deleted run, right after a checkpoint",
      `${spreadText(wal, 0, "bytes")}, and ${vacuumWal.median.toFixed(0)} of the vacuum afterwards, which took ${of((one) => one.vacuumMs).median.toFixed(0)} ms`,
      { wal_bytes: wal.median, vacuum_wal_bytes: vacuumWal.median },
    ),
    plainRow(
      "p99 of a write meanwhile, against the same writes alone",
      `${spreadText(ratio, 2, "×")}, ${p99.beside.median.toFixed(1)} ms against ${p99.alone.median.toFixed(1)} (p50 ${p50.beside.median.toFixed(1)} against ${p50.alone.median.toFixed(1)})`,
      { ratio: ratio.median, beside_p99_ms: p99.beside.median, alone_p99_ms: p99.alone.median },
    ),
  ];
};
