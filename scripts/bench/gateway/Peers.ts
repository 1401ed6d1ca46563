/**
 * Measures the gateway beside a direct connection, a plain proxy, nginx and the proxies of others: how late heads and content are,
 * whole streams a second, and what an open stream holds. All take turns; each round adds to what is known of each.
 */
import { median, quantile, spread } from "../Median.ts";
import { type Row, spreadText, verdict } from "../Row.ts";
import { hold, type Lateness, lateness, playBurst } from "./Client.ts";
import { type Contender, gateway, nginx, peer, plainProxy, type Skipped } from "./Contenders.ts";
import { orderOf } from "./CpuRounds.ts";
import type { Options } from "./Options.ts";
import { canRead, residentKib } from "./ProcessMeter.ts";
import { flagsOf, nameOf, type Setting } from "./Settings.ts";

/** What was measured of a contender; its memory is missing where there is no process to look at. */
export interface Measured {
  readonly name: string;
  readonly late: Lateness;
  readonly perSecond: Array<number>;
  rssKib?: number;
  heapKib?: number;
}

const direct = "direct";
const plain = "plain node proxy";
const fileSetting: Setting = { store: "file", reveal: "live", seam: true };
const settings: ReadonlyArray<Setting> = [
  { store: "memory", reveal: "live", seam: true },
  fileSetting,
  { store: "file", reveal: "on_complete", seam: true },
];
const rounds = 5;

const startAll = async (upstream: Contender): Promise<ReadonlyArray<Contender | Skipped>> => {
  const { url } = upstream;
  const llmops = { "x-llmops-provider": "openai", "x-llmops-custom-host": `${url}/v1` };
  const started: Array<Contender | Skipped> = [
    upstream,
    await nginx(url),
    await plainProxy(url),
    await peer("http-proxy", "HttpProxy.mjs", url),
    await peer("@llmops/gateway", "LlmopsGateway.mjs", url, llmops),
  ];
  for (const setting of settings) started.push(await gateway(nameOf(setting), url, setting.store, flagsOf(setting)));
  return started;
};

const round = async (contender: Contender, measured: Measured): Promise<void> => {
  const paced = { streams: 100, events: 30, everyMs: 20, apartMs: 13 };
  await lateness(contender, "chat", paced, measured.late);
  measured.perSecond.push(await playBurst(contender, "chat", { streams: 600, events: 20, concurrent: 32 }));
};

/** Resident memory, and where the process says it the heap, that each of many open streams takes. */
const holdMany = async (contender: Contender, measured: Measured, held: number): Promise<void> => {
  const heap = async () => contender.probe?.({ ask: "heap" });
  const [heapBefore, rssBefore] = [await heap(), canRead ? residentKib(contender.pid) : undefined];
  await hold(contender, "chat", held, !contender.name.includes("on_complete"));
  const rssAfter = canRead ? residentKib(contender.pid) : undefined;
  const heapAfter = await heap();
  if (rssBefore !== undefined && rssAfter !== undefined) measured.rssKib = (rssAfter - rssBefore) / held;
  if (heapBefore !== undefined && heapAfter !== undefined) measured.heapKib = (heapAfter - heapBefore) / 1024 / held;
};

/** Measures all of them. */
export const peers = async (
  upstream: Contender,
  options: Options,
): Promise<ReadonlyArray<{ readonly name: string; readonly rows: ReadonlyArray<Row> }>> => {
  const started = await startAll(upstream);
  const contenders = started.filter((one) => "url" in one);
  const measured = new Map<Contender, Measured>(
    contenders.map((one) => [one, { name: one.name, late: { heads: [], firsts: [], events: [] }, perSecond: [] }]),
  );
  for (const contender of contenders) await playBurst(contender, "chat", { streams: 600, events: 20, concurrent: 32 });
  for (let turn = 0; turn < rounds; turn += 1) {
    console.error(`peers: round ${turn + 1} of ${rounds} …`);
    for (const [contender, found] of orderOf([...measured], turn)) await round(contender, found);
  }
  for (const [contender, found] of measured) {
    console.error(`${contender.name}: ${options.held} open streams …`);
    if (contender === upstream) continue;
    await holdMany(contender, found, options.held);
    await contender.end();
  }
  const all = [...measured.values()];
  return [
    { name: "Later than direct, Chat Completions: p50 · p99", rows: all.flatMap((one) => latenessRows(one, all)) },
    { name: "Whole streams of 20 a second, 32 at one time", rows: all.map(perSecondRow) },
    { name: `An open stream, of ${options.held}`, rows: all.flatMap(memoryRow) },
    { name: "Not measured", rows: started.flatMap((one) => ("skipped" in one ? [skippedRow(one)] : [])) },
  ].filter(({ rows }) => rows.length > 0);
};

const kinds = [
  { what: "head", of: ({ heads }: Lateness) => heads, barred: true },
  { what: "first content", of: ({ firsts }: Lateness) => firsts, barred: true },
  { what: "each event", of: ({ events }: Lateness) => events, barred: false },
];

/** What a contender adds to a direct connection against what the plain proxy adds; none where that adds nothing. */
export const against = (own: number, straight: number, proxied: number): number | undefined =>
  proxied > straight ? (own - straight) / (proxied - straight) : undefined;

const latenessRows = (one: Measured, all: ReadonlyArray<Measured>): ReadonlyArray<Row> =>
  kinds.map(({ barred, of, what }) => {
    const at = (name: string, share: number) => {
      const found = all.find((other) => other.name === name);
      return found === undefined ? Number.NaN : quantile(of(found.late), share);
    };
    const [p50, p99] = [at(one.name, 0.5), at(one.name, 0.99)];
    const named = `${what}: ${one.name}`;
    if (one.name === direct) return rowOf(named, `${p50.toFixed(2)} · ${p99.toFixed(2)} ms`, { p50, p99 });
    const added = [p50 - at(direct, 0.5), p99 - at(direct, 0.99)] as const;
    const ratios = [against(p50, at(direct, 0.5), at(plain, 0.5)), against(p99, at(direct, 0.99), at(plain, 0.99))];
    const numbers = { p50: added[0], p99: added[1] };
    const text = `${signed(added[0])} · ${signed(added[1])} ms, ${ratios.map(timesText).join(" · ")}`;
    if (!barred || one.name !== nameOf(fileSetting)) return rowOf(named, text, numbers);
    const verdicts = [verdict(ratios[0] ?? Number.NaN, 2), verdict(ratios[1] ?? Number.NaN, 3)];
    return {
      ...rowOf(named, text, numbers),
      bar: "≤ 2 × · 3 × the plain proxy's",
      verdict: verdicts.includes("missed") ? "missed" : "met",
    };
  });

const signed = (ms: number): string => (ms < 0 ? ms.toFixed(2) : `+${ms.toFixed(2)}`);
const timesText = (ratio: number | undefined): string => (ratio === undefined ? "–" : `${ratio.toFixed(1)} ×`);

const perSecondRow = ({ name, perSecond }: Measured): Row =>
  rowOf(name, spreadText(spread(perSecond), 0, "a second"), { perSecond: median(perSecond) });

const memoryRow = ({ heapKib, name, rssKib }: Measured): ReadonlyArray<Row> => {
  const said = [
    ...(rssKib === undefined ? [] : [`${rssKib.toFixed(1)} KiB resident`]),
    ...(heapKib === undefined ? [] : [`${heapKib.toFixed(1)} KiB of heap`]),
  ];
  const numbers = { ...(rssKib === undefined ? {} : { rssKib }), ...(heapKib === undefined ? {} : { heapKib }) };
  return said.length === 0 ? [] : [rowOf(name, said.join(", "), numbers)];
};

const skippedRow = ({ name, skipped }: Skipped): Row => rowOf(name, skipped, {});

const rowOf = (what: string, value: string, numbers: Readonly<Record<string, number>>): Row => ({
  what,
  value,
  bar: undefined,
  verdict: undefined,
  numbers,
});
