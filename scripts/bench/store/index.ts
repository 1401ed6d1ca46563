/**
 * `npm run bench-store`: the cost of PostgreSQL against SQLite, on a private server and in one run.
 */
import { cpus, loadavg } from "node:os";
import { endAll, pinClient, pinned, provider } from "../gateway/Contenders.ts";
import * as Processes from "../Processes.ts";
import { markdownOf, write } from "../Report.ts";
import type { Row } from "../Row.ts";
import { figuresFile, put } from "../ScaleFigures.ts";
import { cooldowns } from "./Cooldown.ts";
import { type Death, death } from "./Deaths.ts";
import { cooldownRow, deathRow, gatewaysRows } from "./GatewayRows.ts";
import { concurrent as atOnce, type Gateways, type GatewaysSize, gateways } from "./Gateways.ts";
import { help, type Options, read } from "./Options.ts";
import { retention } from "./Retention.ts";
import { using } from "./Server.ts";
import { figuresOf } from "./StoreFigures.ts";
import { retentionRows, sweepRows, writesRows } from "./StoreRows.ts";
import type { Writes } from "./Writes.ts";

/** Number of concurrent runs. */
const concurrent = 200;

/** Number of live runs in the baseline, and the number that a sweep must not notice. */
const [liveFew, liveMany] = [100, 200_000];

/** Numbers of runs of the gateways that die. */
const heldRuns = [1_000, 3_000] as const;

/** The measurements: table rows by part, the listings below them, and the sources of the figures in the scale tables of docs/bench.md. */
interface Measured {
  readonly groups: Array<{ readonly name: string; readonly rows: ReadonlyArray<Row> }>;
  plan: ReadonlyArray<string>;
  statements: ReadonlyArray<string>;
  writes: ReadonlyArray<Writes> | undefined;
  gateways: Gateways | undefined;
}

const load = (): string =>
  loadavg()
    .map((one) => one.toFixed(2))
    .join(" ");

const add = ({ groups }: Measured, name: string, rows: ReadonlyArray<Row>): void => {
  for (const row of rows) console.error(`  ${row.what}: ${row.value}  ${row.verdict ?? ""}`);
  groups.push({ name, rows });
};

const measureWrites = async ({ processes, quick }: Options, to: Measured): Promise<void> => {
  console.error("writes: happy runs over SQLite and over PostgreSQL …");
  const size = { runs: quick ? 600 : 2_000, concurrent, rounds: quick ? 3 : 9 };
  const results = await Processes.several(processes, "store_writes", size);
  to.writes = results;
  to.statements = results[0]?.commonest ?? [];
  add(to, "Happy runs over PostgreSQL and over SQLite (`normal`), without disk waits", writesRows(results, concurrent));
};

const measureSweeps = async ({ processes, quick }: Options, to: Measured): Promise<void> => {
  console.error("sweep: searching for dead processes among live runs …");
  const size = { few: liveFew, many: quick ? liveMany / 10 : liveMany, sweeps: quick ? 50 : 200 };
  const results = await Processes.several(Math.min(2, processes), "store_sweep", size);
  to.plan = results[0]?.plan ?? [];
  add(to, "Sweeps for dead processes", sweepRows(results, size.few, size.many));
};

const sizeOf = ({ gateways, quick, rounds }: Options): GatewaysSize =>
  quick
    ? { rounds, gateways, streams: 96, warmUp: 200, idleMs: 3_000 }
    : { rounds, gateways, streams: 384, warmUp: 1_500, idleMs: 15_000 };

const measureGateways = (options: Options, to: Measured): Promise<void> =>
  using(async (server) => {
    pinClient();
    if (options.parts.includes("gateways")) {
      const upstream = await provider();
      const found = await gateways(server, upstream.url, sizeOf(options));
      to.gateways = found;
      const name = `Gateways, ${atOnce} streams at a time, continue_text and linger on`;
      add(to, name, gatewaysRows(found, options.gateways));
      for (const statement of found.commonest.broken) console.error(`  a stream that breaks once: ${statement}`);
      for (const statement of found.commonest.idle) console.error(`  one second without streams: ${statement}`);
    }
    if (!options.parts.includes("cooldown")) return;
    console.error("cooldown: a wait announced to another gateway …");
    add(to, "Cooldowns reach other gateways", [cooldownRow(await cooldowns(server, options.quick ? 5 : 40))]);
  });

const measureDeaths = async ({ quick }: Options, to: Measured): Promise<void> => {
  pinClient();
  const upstream = await provider();
  const rows: Array<Row> = [];
  for (const runs of quick ? heldRuns.slice(0, 1) : heldRuns) {
    console.error(`deaths: killing a gateway with ${runs} runs …`);
    const found: Array<Death> = [];
    for (let trial = 0; trial < (quick ? 1 : 3); trial += 1) found.push(await death(upstream.url, runs));
    rows.push(deathRow(found));
    for (const statement of found[0]?.commonest ?? []) console.error(`  a run of a dead gateway: ${statement}`);
  }
  add(to, "Runs of a dead gateway after its lease expired", rows);
};

/** Number of runs that end in an hour at a rate of a million a day. */
const hourOfMillion = 41_667;

const measureRetention = async ({ quick }: Options, to: Measured): Promise<void> => {
  console.error("retention: deleting old runs beside 100 new ones a second …");
  const found = await retention({
    runs: quick ? 10_000 : hourOfMillion,
    perSecond: 100,
    aloneMs: quick ? 5_000 : 20_000,
    rounds: quick ? 1 : 3,
  });
  add(to, "Old runs are deleted while 100 new ones start per second", retentionRows(found));
};

const listing = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", title, "", "```", ...lines, "```"];

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  const options = asked(args);
  if (typeof options === "string") {
    console.error(`bench-store: ${options}`);
    return 2;
  }
  if (options.help) {
    console.log(help);
    return 0;
  }
  const before = load();
  const to: Measured = { groups: [], plan: [], statements: [], writes: undefined, gateways: undefined };
  const server = await using(
    async ({ rows }) => (await rows<{ readonly server_version: string }>("SHOW server_version"))[0],
  );
  if (options.parts.includes("writes")) await measureWrites(options, to);
  if (options.parts.includes("sweep")) await measureSweeps(options, to);
  if (options.parts.some((part) => part === "gateways" || part === "cooldown")) await measureGateways(options, to);
  if (options.parts.includes("deaths")) await measureDeaths(options, to);
  if (options.parts.includes("retention")) await measureRetention(options, to);
  const command = ["npm run bench-store", ...(args.length === 0 ? [] : ["--", ...args])].join(" ");
  const loads = `load average ${before} before, ${load()} after`;
  const footer = `\`${command}\` · ${machine(server?.server_version ?? "")} · ${loads}`;
  const table = [
    markdownOf(to.groups),
    "",
    footer,
    ...listing(`The statements of a happy run, each with how often it comes:`, to.statements),
    ...listing(`The plan of a sweep with many live runs:`, to.plan),
  ].join("\n");
  const { groups, plan, statements } = to;
  const figures = to.writes && to.gateways && figuresOf(to.writes, to.gateways);
  console.log(options.json ? JSON.stringify({ groups, figures, statements, plan, footer }, null, 2) : table);
  if (options.write) write(new URL("../../../docs/bench.md", import.meta.url), "bench-store", table);
  if (options.write && figures !== undefined)
    put(figuresFile, figures, { heading: "postgresql", command, load: `${cpus().length} cores, ${loads}` });
  const missed = groups.flatMap(({ rows }) => rows.filter((row) => row.verdict === "missed"));
  for (const row of missed) console.error(`missed: ${row.what}: ${row.value}, bar ${row.bar}`);
  return missed.length === 0 ? 0 : 1;
};

const machine = (server: string): string =>
  [
    `PostgreSQL ${server}`,
    `Node ${process.version.slice(1)}`,
    `${cpus()[0]?.model.trim()}, ${cpus().length} cores${pinned ? ", gateways together on one" : ""}`,
  ].join(" · ");

const asked = (args: ReadonlyArray<string>): Options | string => {
  try {
    return read(args);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

const run = async (): Promise<number> => {
  try {
    return await main(process.argv.slice(2));
  } catch (error) {
    console.error(`bench-store: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    await endAll();
  }
};

process.exit(await run());
