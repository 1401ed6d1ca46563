/**
 * Formats the reports of the stacks, and writes them into the documentation.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { table } from "../tables/Markdown.ts";
import { type Ending, endings } from "./Endings.ts";
import type { Way } from "./Proxies.ts";
import { isWrong, limitOf, type Trial } from "./Trials.ts";

const titles: Readonly<Record<Ending, string>> = {
  clean: "clean end",
  stop: "bare stop",
  reset: "TCP reset",
  open: "open chunk",
  gateway: "the gateway",
};

const wayTitles: Readonly<Record<Way, string>> = {
  direct: "Directly",
  nginx: "Behind nginx, as [Operating the gateway](gateway-operation.md#behind-a-reverse-proxy) configures it",
  "nginx-1.0": "Behind nginx with HTTP/1.0 to its upstream",
  haproxy: "Behind haproxy",
};

/** Formats one line per ending, a table for each path, and the reasons of stacks that cannot detect an ending. */
export const markdown = (trials: ReadonlyArray<Trial>, missing: ReadonlyArray<string>): string => {
  const found = [...new Set(trials.map(({ way }) => way))];
  const notes = missing.length === 0 ? [] : [`Not installed: ${missing.join(", ")}.`];
  return [summary(trials), ...found.flatMap((way) => [`${wayTitles[way]}:`, tableOf(trials, way)]), ...notes].join(
    "\n\n",
  );
};

/** Lists the trials in which the gateway's ending failed, one line each. */
export const wrong = (trials: ReadonlyArray<Trial>): ReadonlyArray<string> =>
  trials.filter(isWrong).map((trial) => `${trial.stack}, ${trial.way}: ${cell(trial)}`);

const summary = (trials: ReadonlyArray<Trial>): string => {
  const of = (ending: Ending) => trials.filter((trial) => trial.ending === ending);
  const lines = endings.map((ending) => {
    const all = of(ending);
    const whole = all.filter(({ error }) => error === undefined).length;
    const lossy = all.filter(({ lost }) => lost > 0);
    const share = Math.max(0, ...lossy.map(({ bytes, lost }) => Math.round((100 * lost) / (bytes + lost))));
    const losing = lossy.length === 0 ? "none lost a byte" : `${lossy.length} lost bytes, at most ${share} %`;
    return `- **${titles[ending]}**: ${whole} of ${all.length} accepted it as whole; ${losing}.`;
  });
  const found = new Set(of("gateway").flatMap((trial) => limitOf(trial) ?? []));
  const limits = [...found].map(({ reason, stack, ways, what }) => {
    const does = what === "whole" ? "accepts the gateway's ending as whole" : "loses bytes";
    return `${stack} ${does} (${ways.join(", ")}): ${reason}.`;
  });
  return [lines.join("\n"), ...limits].join("\n\n");
};

const tableOf = (trials: ReadonlyArray<Trial>, way: Way): string => {
  const own = trials.filter((trial) => trial.way === way);
  const rows = [...new Set(own.map(({ stack }) => stack))].map((stack) => [
    stack,
    ...endings.map((ending) => {
      const trial = own.find((one) => one.stack === stack && one.ending === ending);
      return trial === undefined ? "" : cell(trial);
    }),
  ]);
  return table(["stack", ...endings.map((ending) => titles[ending])], rows);
};

const cell = ({ bytes, error, lost }: Trial): string => {
  const share = Math.round((100 * lost) / (bytes + lost));
  return `${error ?? "**whole**"}, ${lost === 0 ? "0 lost" : `**${lost} lost** (${share} %)`}`;
};

/** Writes the tables between the lines `<!-- stacks -->` and `<!-- /stacks -->` of a page. */
export const write = (file: URL, text: string): void => {
  const page = readFileSync(file, "utf8");
  const between = /(<!-- stacks -->\n)[\s\S]*?(<!-- \/stacks -->)/;
  if (!between.test(page))
    throw new Error(`${file.pathname} needs a line <!-- stacks --> and <!-- /stacks --> after it`);
  writeFileSync(
    file,
    page.replace(between, (_, from: string, to: string) => `${from}${text}\n${to}`),
  );
};
