/**
 * Prints a short table of costs from rows that the benches wrote into docs/bench.md. It contains no other numbers.
 */
import { table } from "./Markdown.ts";

/** A row of the short table: the part of the long table, the beginning of its row there, and its label for a newcomer. */
const rows: ReadonlyArray<readonly [part: string, row: string, said: string]> = [
  [
    "CPU per event, saturated",
    "StreamProcessor.run, fromAsyncIterable of this package",
    "CPU per event of `run`, relative to a raw `for await`, saturated",
  ],
  [
    "CPU per event, one event per macrotask",
    "StreamProcessor.run, fromAsyncIterable of this package",
    "the same, one event per macrotask",
  ],
  ["CPU per event, a source of arrays", "StreamProcessor.run, arrays of 64", "the same, arrays of 64 parts"],
  [
    "CPU per event, saturated",
    "Stream.runForEach, Stream.fromAsyncIterable",
    "the same for Effect's `Stream.runForEach`, saturated",
  ],
  ["CPU per event, saturated", "AI SDK streamText", "the same for the AI SDK's `streamText`, saturated"],
  [
    "10,000 idle runs",
    "heap of an idle run above a bare Effect Stream, fromAsyncIterable",
    "heap of an idle watched run above a bare Effect Stream",
  ],
  ["Latency", "break → next request", "break → the next request on the wire, p99"],
  [
    "CPU of OpenAI Chat Completions",
    "an event, 50 paced streams of 150: gateway, live, file",
    "CPU per event of the gateway with a file, relative to a plain Node proxy: 50 paced streams",
  ],
  [
    "CPU of OpenAI Chat Completions",
    "an event, 300 paced streams of 150: gateway, live, file",
    "the same, 300 paced streams",
  ],
  [
    "CPU of OpenAI Chat Completions",
    "a stream of 20 in a burst: gateway, live, file",
    "the same for a whole stream of 20 events that arrive at once",
  ],
  ["Delay relative to direct", "head: gateway, live, file", "delay of its head relative to a direct connection, p50 · p99"],
  ["Delay relative to direct", "first content: gateway, live, file", "delay of its first content, p50 · p99"],
];

/**
 * Prints the short table.
 *
 * @param page the text of docs/bench.md
 * @throws Error if a row is missing there
 */
export const costTable = (page: string): string =>
  table(
    ["what", "measured", "bar", ""],
    rows.map(([part, row, said]) => [said, ...cellsOf(page, part, row)]),
  );

/** The value, the bar and the verdict of a row, without the spread and the text after the ratio. */
const cellsOf = (page: string, part: string, row: string): ReadonlyArray<string> => {
  const lines = page.split("\n");
  const head = lines.findIndex((line) => line.startsWith(`| **${part}`));
  const line = head < 0 ? undefined : lines.slice(head + 1).find((it) => it.startsWith(`| ${row}`));
  const [measured, bar, verdict] = (line ?? "").split(" | ").slice(1);
  if (measured === undefined || bar === undefined || verdict === undefined)
    throw new Error(`docs/bench.md has no row ${row} in its part ${part}`);
  return [short(measured), bar, verdict.replace(/\s*\|$/, "")];
};

const short = (measured: string): string => measured.replace(/ \([^)]*\).*$/, "").replace(/^([^,]*ms), .*$/, "$1");
