/**
 * Formats the measurements of the gateway and its peers as rows with verdicts, and lists where the gateway loses.
 */
import { median, quantile, spread } from "../Median.ts";
import { type Row, spreadText, verdict } from "../Row.ts";
import type { Lateness } from "./Client.ts";
import { liveFile, nameOf } from "./Settings.ts";

/** The measurements of a contender. */
export interface Measured {
  readonly name: string;
  readonly late: Lateness;
  readonly perSecond: Array<number>;
  /** KiB per open stream; undefined if the process cannot be inspected. */
  memory: { readonly rssKib?: number | undefined; readonly heapKib?: number | undefined };
}

const direct = "direct";
const plain = "plain node proxy";
const ours = nameOf(liveFile);

const kinds = [
  { what: "head", of: ({ heads }: Lateness) => heads, barred: true },
  { what: "head, content 20 ms after it", of: ({ bare }: Lateness) => bare, barred: false },
  { what: "first content", of: ({ firsts }: Lateness) => firsts, barred: true },
  { what: "each event", of: ({ events }: Lateness) => events, barred: false },
];

/** A contender's addition to a direct connection, relative to the plain proxy's; undefined if the plain proxy adds nothing. */
export const relativeTo = (own: number, straight: number, proxied: number): number | undefined =>
  proxied > straight ? (own - straight) / (proxied - straight) : undefined;

export const latenessRows = (one: Measured, all: ReadonlyArray<Measured>): ReadonlyArray<Row> =>
  kinds.map(({ barred, of, what }) => {
    const at = (name: string, share: number) => {
      const found = all.find((other) => other.name === name);
      return found === undefined ? Number.NaN : quantile(of(found.late), share);
    };
    const [p50, p99] = [at(one.name, 0.5), at(one.name, 0.99)];
    const named = `${what}: ${one.name}`;
    if (one.name === direct) return rowOf(named, `${p50.toFixed(2)} · ${p99.toFixed(2)} ms`, { p50, p99 });
    const added = [p50 - at(direct, 0.5), p99 - at(direct, 0.99)] as const;
    const ratios = [
      relativeTo(p50, at(direct, 0.5), at(plain, 0.5)),
      relativeTo(p99, at(direct, 0.99), at(plain, 0.99)),
    ];
    const numbers = { p50: added[0], p99: added[1] };
    const text = `${formatSigned(added[0])} · ${formatSigned(added[1])} ms, ${ratios.map(timesText).join(" · ")}`;
    if (!barred || one.name !== ours) return rowOf(named, text, numbers);
    const verdicts = [verdict(ratios[0] ?? Number.NaN, 2), verdict(ratios[1] ?? Number.NaN, 1.5)];
    return {
      ...rowOf(named, text, numbers),
      bar: "≤ 2 × · 1.5 × the plain proxy's",
      verdict: verdicts.includes("missed") ? "missed" : "met",
    };
  });

const formatSigned = (ms: number): string => (ms < 0 ? ms.toFixed(2) : `+${ms.toFixed(2)}`);
const timesText = (ratio: number | undefined): string => (ratio === undefined ? "–" : `${ratio.toFixed(1)} ×`);

export const perSecondRow = ({ name, perSecond }: Measured): Row =>
  rowOf(name, spreadText(spread(perSecond), 0, "a second"), { perSecond: median(perSecond) });

export const memoryRows = ({ memory: { heapKib, rssKib }, name }: Measured): ReadonlyArray<Row> => {
  const said = [
    ...(rssKib === undefined ? [] : [`${rssKib.toFixed(1)} KiB resident`]),
    ...(heapKib === undefined ? [] : [`${heapKib.toFixed(1)} KiB of heap`]),
  ];
  const numbers = { ...(rssKib === undefined ? {} : { rssKib }), ...(heapKib === undefined ? {} : { heapKib }) };
  return said.length === 0 ? [] : [rowOf(name, said.join(", "), numbers)];
};

/** One row for each other contender that beats the gateway on a file in anything. */
export const lossRows = (all: ReadonlyArray<Measured>): ReadonlyArray<Row> => {
  const own = all.find(({ name }) => name === ours);
  if (own === undefined) return [];
  return all
    .filter(({ name }) => !name.startsWith("gateway, "))
    .flatMap((other) => {
      const lost = findLosses(own, other);
      return lost.length === 0 ? [] : [rowOf(`to ${other.name}`, lost.join(", "), {})];
    });
};

const findLosses = (own: Measured, other: Measured): ReadonlyArray<string> => {
  const slower = median(other.perSecond) / median(own.perSecond);
  const larger = (what: string, more: number | undefined, less: number | undefined) =>
    more !== undefined && less !== undefined && more > less
      ? [`${(more - less).toFixed(1)} KiB more ${what} a stream`]
      : [];
  return [
    ...kinds.flatMap(({ of, what }) => {
      const later = (share: number) => quantile(of(own.late), share) - quantile(of(other.late), share);
      const [p50, p99] = [later(0.5), later(0.99)];
      return p50 > 0 || p99 > 0 ? [`${what} ${formatSigned(p50)} · ${formatSigned(p99)} ms`] : [];
    }),
    ...(slower > 1 ? [`${slower.toFixed(1)} times fewer streams a second`] : []),
    ...larger("resident", own.memory.rssKib, other.memory.rssKib),
    ...larger("of heap", own.memory.heapKib, other.memory.heapKib),
  ];
};

export const rowOf = (what: string, value: string, numbers: Readonly<Record<string, number>>): Row => ({
  what,
  value,
  bar: undefined,
  verdict: undefined,
  numbers,
});
