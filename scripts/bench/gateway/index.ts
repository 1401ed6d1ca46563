/**
 * `npm run bench-gateway`: what the gateway costs in front of a provider, beside a plain Node proxy and others, all on the same
 * provider and in one run. Whatever the gateway loses is printed like the rest.
 */
import { cpus, loadavg } from "node:os";
import { markdownOf, write } from "../Report.ts";
import type { Row } from "../Row.ts";
import { figuresFile, put } from "../ScaleFigures.ts";
import { bodies } from "./Bodies.ts";
import { endAll, installPeers, pinClient, pinned, provider } from "./Contenders.ts";
import { cpu } from "./Cpu.ts";
import { figuresOf } from "./GatewayFigures.ts";
import { help, type Options, protocols, read } from "./Options.ts";
import { peers } from "./Peers.ts";
import { profile } from "./Profile.ts";
import { workers } from "./Workers.ts";

const load = (): string =>
  loadavg()
    .map((one) => one.toFixed(2))
    .join(" ");

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  const options = asked(args);
  if (typeof options === "string") {
    console.error(`bench-gateway: ${options}`);
    return 2;
  }
  if (options.help) {
    console.log(help);
    return 0;
  }
  if (options.install) installPeers();
  pinClient();
  const before = load();
  const upstream = await provider();
  const chosen =
    options.protocols.length > 0 ? options.protocols : options.size === "quick" ? protocols.slice(0, 1) : protocols;
  if (options.profile !== undefined) {
    for (const protocol of chosen.slice(0, 1)) await profile(protocol, upstream.url, options, options.profile);
    return 0;
  }
  const groups: Array<{ readonly name: string; readonly rows: ReadonlyArray<Row> }> = [];
  if (options.parts.includes("cpu"))
    for (const protocol of chosen) groups.push(await cpu(protocol, upstream.url, options));
  if (options.parts.includes("peers")) groups.push(...(await peers(upstream, options)));
  if (options.parts.includes("workers")) groups.push(await workers(upstream.url, options));
  if (options.parts.includes("bodies")) groups.push(await bodies(upstream.url, options));
  const command = ["npm run bench-gateway --", ...args].join(" ");
  const loads = `load average ${before} before, ${load()} after`;
  const footer = `\`${command}\` · ${machine(options)} · ${loads}`;
  const table = `${markdownOf(groups)}\n\n${footer}`;
  console.log(options.json ? JSON.stringify({ groups, footer }, null, 2) : table);
  if (options.write) {
    write(new URL("../../../docs/bench.md", import.meta.url), "bench-gateway", table);
    const figures = figuresOf(groups);
    const of = { heading: "the-gateway", command, load: `${cpus().length} cores, ${loads}` };
    if (figures !== undefined) put(figuresFile, figures, of);
  }
  const missed = groups.flatMap(({ rows }) => rows.filter((row) => row.verdict === "missed"));
  for (const row of missed) console.error(`missed: ${row.what}: ${row.value}, bar ${row.bar}`);
  return missed.length === 0 ? 0 : 1;
};

const machine = ({ rounds }: Options): string =>
  [
    `Node ${process.version.slice(1)}`,
    `${cpus()[0]?.model.trim()}, ${cpus().length} cores${pinned ? ", the contender alone on one" : ""}`,
    `medians of ${rounds} rounds (least–greatest)`,
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
  } finally {
    await endAll();
  }
};

process.exit(await run());
