/**
 * `npm run bench-gateway`: measures the gateway's cost in front of a provider and compares it with a plain Node proxy and others, with the same provider and in
 * one run. Comparisons that the gateway loses are printed like the rest.
 */
import { cpus, loadavg } from "node:os";
import { markdownOf, write } from "../Report.ts";
import { figuresFile, put } from "../ScaleFigures.ts";
import { bodies } from "./Bodies.ts";
import { endAll, installPeers, pinClient, pinned, provider } from "./Contenders.ts";
import { cpu } from "./Cpu.ts";
import { figuresOf, lingerFigureOf, type Part } from "./GatewayFigures.ts";
import { linger } from "./Linger.ts";
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
  const groups: Array<Part> = [];
  if (options.parts.includes("cpu"))
    for (const protocol of chosen) groups.push(await cpu(protocol, upstream.url, options));
  if (options.parts.includes("peers")) groups.push(...(await peers(upstream, options)));
  if (options.parts.includes("workers")) groups.push(await workers(upstream.url, options));
  if (options.parts.includes("bodies")) groups.push(await bodies(upstream.url, options));
  const lingering = options.parts.includes("linger") ? [await linger(upstream.url, options)] : [];
  const command = ["npm run bench-gateway --", ...args].join(" ");
  const loads = `load average ${before} before, ${load()} after`;
  const footer = `\`${command}\` · ${machine(options)} · ${loads}`;
  const all = [...groups, ...lingering];
  console.log(options.json ? JSON.stringify({ groups: all, footer }, null, 2) : `${markdownOf(all)}\n\n${footer}`);
  if (options.write) {
    const of = { heading: "the-gateway", command, load: `${cpus().length} cores, ${loads}` };
    if (groups.length > 0) writeTable("bench-gateway", groups, footer);
    if (lingering.length > 0) writeTable("bench-linger", lingering, footer);
    for (const figures of [figuresOf(groups), lingerFigureOf(lingering)])
      if (figures !== undefined) put(figuresFile, figures, of);
  }
  const missed = groups.flatMap(({ rows }) => rows.filter((row) => row.verdict === "missed"));
  for (const row of missed) console.error(`missed: ${row.what}: ${row.value}, bar ${row.bar}`);
  return missed.length === 0 ? 0 : 1;
};

const writeTable = (name: string, groups: ReadonlyArray<Part>, footer: string): void =>
  write(new URL("../../../docs/bench.md", import.meta.url), name, `${markdownOf(groups)}\n\n${footer}`);

const machine = ({ rounds }: Options): string =>
  [
    `Node ${process.version.slice(1)}`,
    `${cpus()[0]?.model.trim()}, ${cpus().length} cores${pinned ? ", the contender alone on one" : ""}`,
    `medians of ${rounds} rounds (min–max)`,
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
