/**
 * Compares the gateway with a direct connection, a plain proxy, nginx and other proxies: delays of heads and content, whole streams per
 * second, and memory per open stream. All take turns, and each round adds to the measurements of each.
 */
import type { Row } from "../Row.ts";
import { type Burst, hold, lateness, playBurst, warmUp } from "./Client.ts";
import { type Contender, gateway, plainProxy } from "./Contenders.ts";
import { orderOf } from "./CpuRounds.ts";
import { heldTitle } from "./GatewayFigures.ts";
import type { Options } from "./Options.ts";
import { others, type Start, startInOrder } from "./Others.ts";
import { latenessRows, lossRows, type Measured, memoryRows, perSecondRow, rowOf } from "./PeerRows.ts";
import { canRead, residentKib } from "./ProcessMeter.ts";
import { flagsOf, liveFile, nameOf, type Setting } from "./Settings.ts";

const settings: ReadonlyArray<Setting> = [
  { ...liveFile, store: "memory" },
  liveFile,
  { ...liveFile, reveal: "on_complete" },
];

const startsOf = (url: string, options: Options): ReadonlyArray<Start> => [
  () => plainProxy(url),
  ...others(url),
  ...settings.map(
    (setting): Start =>
      () =>
        gateway(nameOf(setting), url, setting.store, flagsOf(setting, options)),
  ),
];

const nothingOf = (name: string): Measured => ({
  name,
  late: { heads: [], bare: [], firsts: [], events: [] },
  perSecond: [],
  memory: {},
});

const paced = { streams: 100, events: 30, everyMs: 20, apartMs: 13 };
const burst: Burst = { play: "burst", streams: 600, events: 20, concurrent: 32 };

/** Measures delays and streams per second in rounds, and memory in fresh processes. */
export const peers = async (
  upstream: Contender,
  options: Options,
): Promise<ReadonlyArray<{ readonly name: string; readonly rows: ReadonlyArray<Row> }>> => {
  const starts = startsOf(upstream.url, options);
  const started = [upstream, ...(await startInOrder(starts))];
  const contenders = started.filter((one) => "url" in one);
  const measured = new Map(contenders.map((one) => [one, nothingOf(one.name)]));
  for (const contender of contenders) await warmUp(contender, "chat");
  for (let turn = 0; turn < options.rounds; turn += 1) {
    console.error(`peers: round ${turn + 1} of ${options.rounds} …`);
    for (const [contender, found] of orderOf([...measured], turn)) {
      await lateness(contender, "chat", paced, found.late);
      found.perSecond.push(await playBurst(contender, "chat", burst));
    }
  }
  for (const contender of contenders) if (contender !== upstream) await contender.end();
  const all = [...measured.values()];
  for (const start of starts) {
    const memory = await memoryOf(start, options.held);
    const found = all.find(({ name }) => name === memory?.name);
    if (found !== undefined && memory !== undefined) found.memory = memory;
  }
  return [
    {
      name: "Delay relative to direct, Chat Completions: p50 · p99",
      rows: all.flatMap((one) => latenessRows(one, all)),
    },
    {
      name: `Streams of ${burst.events} events completed per second, ${burst.concurrent} at a time`,
      rows: all.map(perSecondRow),
    },
    { name: heldTitle(options.held), rows: all.flatMap(memoryRows) },
    { name: `Losses of "${nameOf(liveFile)}"`, rows: lossRows(all) },
    {
      name: "Not measured",
      rows: started.flatMap((one) => ("skipped" in one ? [rowOf(one.name, one.skipped, {})] : [])),
    },
  ].filter(({ rows }) => rows.length > 0);
};

/** Resident memory per open stream, and the heap if the process reports it. */
const memoryOf = async (
  start: Start,
  held: number,
): Promise<(Measured["memory"] & { readonly name: string }) | undefined> => {
  const contender = await start();
  if ("skipped" in contender) return undefined;
  console.error(`${contender.name}: ${held} open streams …`);
  // The first streams of a process load its code, and their sockets stay open.
  await playBurst(contender, "chat", burst);
  const now = async () => ({
    heap: await contender.probe?.({ ask: "heap" }),
    rss: canRead ? residentKib(contender.pid) : undefined,
  });
  const before = await now();
  await hold(contender, "chat", held, !contender.name.includes("on_complete"));
  const after = await now();
  await contender.end();
  return {
    name: contender.name,
    rssKib: perStream(before.rss, after.rss, held),
    heapKib: perStream(before.heap, after.heap, held * 1024),
  };
};

const perStream = (before: number | undefined, after: number | undefined, parts: number): number | undefined =>
  before === undefined || after === undefined ? undefined : (after - before) / parts;
