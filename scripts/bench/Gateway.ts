/**
 * `node scripts/bench/Gateway.ts [--quick] [--install] [--streams N] [--json]`: what the gateway adds to a stream, beside a direct
 * connection, nginx, a plain proxy, `http-proxy` and `@llmops/gateway`, all on the same provider and in one run. Whatever the
 * gateway loses is printed like the rest.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Contender, contenders, endAll, endContender, installPeers, type Skipped } from "./GatewayContenders.ts";
import { hold, latency, throughput } from "./GatewayLoad.ts";
import { losses, type Measured, table } from "./GatewayTable.ts";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean" },
    install: { type: "boolean" },
    streams: { type: "string" },
    json: { type: "boolean" },
  },
});
const quick = values.quick === true;
const held = Number(values.streams ?? (quick ? 300 : 2000));

const run = async (): Promise<void> => {
  const rows: Array<Measured> = [];
  const skipped: Array<Skipped> = [];
  for (const start of await contenders()) {
    const contender = await start();
    if ("skipped" in contender) {
      skipped.push(contender);
      continue;
    }
    // The client and the provider are cold only once; the first run would pay for it.
    if (rows.length === 0) await throughput(contender, 3000, 64);
    rows.push(await measure(contender));
    await endContender();
  }
  if (values.json === true) console.log(JSON.stringify({ held, rows, skipped }, null, 2));
  else
    console.log(
      [table(rows, held), ...skipped.map((one) => `${one.name}: skipped, ${one.skipped}`), losses(rows)].join("\n\n"),
    );
};

const measure = async (contender: Contender): Promise<Measured> => {
  console.error(`${contender.name} …`);
  // Code, connections and, in the providers' own order, everything that is made at first use.
  await throughput(contender, quick ? 200 : 500, 32);
  const [streams, events] = quick ? [20, 30] : [50, 100];
  const timed = await latency(contender, streams, events);
  const perSecond = await throughput(contender, quick ? 500 : 3000, 64);
  const kibPerStream = await memoryOf(contender);
  return { name: contender.name, ...timed, perSecond, ...(kibPerStream === undefined ? {} : { kibPerStream }) };
};

/** Resident memory that each of many open streams takes, in KiB; measured on Linux only. */
const memoryOf = async (contender: Contender): Promise<number | undefined> => {
  const { name, pid } = contender;
  if (pid === undefined || process.platform !== "linux") return undefined;
  const before = residentKib(pid);
  const close = await hold(contender, held, !name.includes("on_complete"));
  const after = residentKib(pid);
  close();
  return (after - before) / held;
};

/** Resident memory of a process and those it has started (nginx serves from a worker), in KiB. */
const residentKib = (pid: number): number => {
  const own = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN);
  const started = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return started.reduce((sum, child) => sum + residentKib(Number(child)), own);
};

if (values.install === true) installPeers();
try {
  await run();
} finally {
  await endAll();
}
process.exit(0);
