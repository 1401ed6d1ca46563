/**
 * `node scripts/bench/Gateway.ts`: what the gateway adds to a stream, beside a direct connection, a plain proxy and nginx, all on
 * the same provider and in one run. Whatever the gateway loses is printed like the rest.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { hold, type Latency, latency, throughput } from "./GatewayLoad.ts";

const { values } = parseArgs({
  options: { quick: { type: "boolean" }, streams: { type: "string" }, json: { type: "boolean" } },
});
const quick = values.quick === true;
const held = Number(values.streams ?? (quick ? 300 : 2000));

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"));
const children: Array<ChildProcess> = [];

/** Starts a program and waits for the address in its first line. */
const start = (args: ReadonlyArray<string>): Promise<{ readonly url: string; readonly pid: number }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--no-warnings", ...args], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => {
      said += String(chunk);
      const url = /listening on (http:\/\/\S+)/.exec(said)?.[1];
      if (url !== undefined) resolve({ url, pid: child.pid ?? 0 });
    });
    child.on("close", (code) => reject(new Error(`${args.join(" ")} ended with code ${code}`)));
  });

/** Something that streams are asked of; without `pid` it takes no memory of its own. */
interface Contender {
  readonly name: string;
  readonly url: string;
  readonly pid: number | undefined;
}

const gateway = (upstream: string, args: ReadonlyArray<string>) =>
  start([here("../../src/cli/bin.ts"), "serve", "--port", "0", "--openai-url", `${upstream}/v1`, ...args]);

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

/** nginx of this machine, as a reverse proxy that buffers nothing; undefined where there is none. */
const nginx = async (upstream: string): Promise<Contender | undefined> => {
  if (spawnSync("nginx", ["-v"]).status !== 0) return undefined;
  const port = await freePort();
  const config = `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 8192; }
http { access_log off; upstream provider { server ${new URL(upstream).host}; keepalive 64; }
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  server { listen 127.0.0.1:${port};
    location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } } }`;
  writeFileSync(join(folder, "nginx.conf"), config);
  const child = spawn("nginx", ["-p", folder, "-c", join(folder, "nginx.conf")], { stdio: "ignore" });
  children.push(child);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; tries < 100; tries += 1) {
    const up = await fetch(url).then(
      () => true,
      () => false,
    );
    if (up) return { name: "nginx", url, pid: undefined };
  }
  return undefined;
};

const contendersOf = async (): Promise<ReadonlyArray<Contender>> => {
  const provider = await start([here("./GatewayPeers.ts"), "provider"]);
  const proxy = await start([here("./GatewayPeers.ts"), "proxy", provider.url]);
  const memory = await gateway(provider.url, ["--db", "memory"]);
  const file = await gateway(provider.url, ["--db", join(folder, "runs.db")]);
  const whole = await gateway(provider.url, ["--db", "memory", "--reveal", "on_complete"]);
  const beside = await nginx(provider.url);
  if (beside === undefined) console.error("nginx: skipped, it is not installed");
  console.error("@llmops/gateway: skipped, it is no dependency of this project");
  return [
    { name: "direct", url: provider.url, pid: undefined },
    { name: "plain node proxy", ...proxy },
    ...(beside === undefined ? [] : [beside]),
    { name: "gateway, live, memory", ...memory },
    { name: "gateway, live, file", ...file },
    { name: "gateway, on_complete, memory", ...whole },
  ];
};

/** Resident memory of a process, in KiB (Linux). */
const residentKib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN);

const memoryOf = async ({ name, pid, url }: Contender): Promise<number | undefined> => {
  if (pid === undefined || process.platform !== "linux") return undefined;
  const before = residentKib(pid);
  const close = await hold(url, held, !name.includes("on_complete"));
  const after = residentKib(pid);
  close();
  return (after - before) / held;
};

interface Measured extends Latency {
  readonly name: string;
  readonly perSecond: number;
  readonly kibPerStream: number | undefined;
}

const measure = async (contender: Contender): Promise<Measured> => {
  const { name, url } = contender;
  console.error(`${name} …`);
  // Code, connections and, in the providers' own order, everything that is made at first use.
  await throughput(url, quick ? 200 : 500, 32);
  const [streams, events] = quick ? [20, 30] : [50, 100];
  const timed = await latency(url, streams, events);
  const perSecond = await throughput(url, quick ? 500 : 3000, 64);
  return { name, ...timed, perSecond, kibPerStream: await memoryOf(contender) };
};

const ms = (value: number): string => value.toFixed(2);

const more = (value: number): string => (value < 0 ? ms(value) : `+${ms(value)}`);

const table = (rows: ReadonlyArray<Measured>): string => {
  const [direct] = rows;
  const line = (row: Measured): string => {
    const pair = (a: number, b: number, least: number, most: number) =>
      row === direct ? `${ms(a)} · ${ms(b)}` : `${more(a - least)} · ${more(b - most)}`;
    return [
      row.name,
      pair(row.headP50, row.headP99, direct?.headP50 ?? 0, direct?.headP99 ?? 0),
      pair(row.firstP50, row.firstP99, direct?.firstP50 ?? 0, direct?.firstP99 ?? 0),
      pair(row.eventP50, row.eventP99, direct?.eventP50 ?? 0, direct?.eventP99 ?? 0),
      row.perSecond.toFixed(0),
      row.kibPerStream === undefined ? "" : row.kibPerStream.toFixed(1),
    ].join(" | ");
  };
  return [
    "| in front of the same provider | head ms p50 · p99 | first content ms | each event ms | streams/s | KiB a stream |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows.map((row) => `| ${line(row)} |`),
    "",
    `direct in milliseconds, the others what they add to it · ${held} open streams for the memory · Node ${process.version.slice(1)} · ${cpus().length} cores, shared by client, provider and contender`,
  ].join("\n");
};

try {
  const rows: Array<Measured> = [];
  for (const contender of await contendersOf()) rows.push(await measure(contender));
  console.log(values.json === true ? JSON.stringify(rows, null, 2) : table(rows));
} finally {
  for (const child of children) {
    child.removeAllListeners("close");
    child.kill("SIGKILL");
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
