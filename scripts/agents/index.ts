/**
 * `npm run agents`: runs unmodified coding agents against a provider that breaks, and reports the outcome of each turn.
 *
 * Each turn has its own provider, home folder, working directory and, if requested, gateway. The agents are installed next to this file on
 * the first run; afterwards only loopback is used.
 */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Agent } from "./Agent.ts";
import { agents } from "./Agents.ts";
import { type Fault, faultsOf, type Measure } from "./Faults.ts";
import {
  fetchNewestVersion,
  install,
  installedVersion,
  installNewest,
  modules,
  pinnedVersion,
  platformOf,
} from "./Install.ts";
import { enterNamespace, environmentOf, isInside, isolation } from "./Isolation.ts";
import type { Cell } from "./Letter.ts";
import { successorsOf } from "./Successors.ts";
import * as Table from "./Table.ts";
import { playTurn, type Way, ways } from "./Turn.ts";
import { findWorse } from "./Verdict.ts";

const help = `Usage: npm run agents -- [options]

Runs agents against a provider that breaks, directly and through the gateway:
${agents.map(({ name }) => name).join("; ")}.

  --only NAME          only agents whose name starts with NAME; repeat it or use commas
  --way WAY            only ${ways.join(", ")}; repeat it or use commas
  --fault TEXT         only faults whose title contains TEXT
  --always             the fault never stops: every request of the turn meets it
  --held SECONDS       no fault: healthy responses of this duration, longer than the agents' patience
  --away               the provider is unreachable for 20 s, or for good; in that case the gateway has a second one
  --times N            number of plays of each turn, of which the worst counts; default 1
  --concurrency N      number of concurrent turns; default 2
  --continue-text      shown text breaks, the gateway has --continue-text auto, and the provider continues it on request
  --newest             the newest version of each agent; by default those of the lockfile, and a newer version fails the run
  --keep FILE          saves the turns as JSON as they end, merged with those in the file; judges and prints them all
  --json               prints one JSON document instead of the table
  --write              also writes the table to docs/agents.md
  --help               prints this text

Exit code: 0 no turn is worse through the gateway than without it or too expensive; 1 some turn is, and is named, or a pinned agent
has a newer version; 2 invalid options.`;

const options = {
  only: { type: "string", multiple: true },
  way: { type: "string", multiple: true },
  fault: { type: "string" },
  always: { type: "boolean" },
  held: { type: "string" },
  away: { type: "boolean" },
  "continue-text": { type: "boolean" },
  newest: { type: "boolean" },
  keep: { type: "string" },
  times: { type: "string" },
  concurrency: { type: "string" },
  json: { type: "boolean" },
  write: { type: "boolean" },
  help: { type: "boolean" },
} as const;

interface Asked {
  readonly agents: ReadonlyArray<Agent>;
  readonly ways: ReadonlyArray<Way>;
  readonly faults: ReadonlyArray<Fault>;
  readonly newest: boolean;
  readonly keep: string | undefined;
  readonly times: number;
  readonly concurrency: number;
  readonly json: boolean;
  readonly write: boolean;
  readonly help: boolean;
}

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  const asked = read(args);
  if (typeof asked === "string") {
    console.error(`agents: ${asked}`);
    return 2;
  }
  if (asked.help) {
    console.log(help);
    return 0;
  }
  if (!isInside()) {
    const packages = [...new Set(asked.agents.map(({ packageName }) => packageName))];
    const outdated = prepare(packages, asked.newest);
    const code = enterNamespace([fileURLToPath(import.meta.url), ...args]);
    if (code !== undefined) return code === 0 && outdated ? 1 : code;
    return Math.max(await playAll(asked, args), outdated ? 1 : 0);
  }
  return playAll(asked, args);
};

/**
 * Installs the agents and prints their versions.
 *
 * @returns true if a pinned agent has a newer version
 */
const prepare = (packages: ReadonlyArray<string>, isNewest: boolean): boolean => {
  if (isNewest) installNewest(packages);
  else install(packages);
  for (const name of packages) console.error(`agents: ${name} ${installedVersion(name)}`);
  if (isNewest) return false;
  const { found, unknown } = successorsOf(packages, { pinned: pinnedVersion, newest: fetchNewestVersion });
  for (const sentence of unknown === undefined ? found : [...found, unknown]) console.error(`agents: ${sentence}`);
  return found.length > 0;
};

const quote = (arg: string): string => (arg.includes(" ") ? `"${arg}"` : arg);

const playAll = async (asked: Asked, args: ReadonlyArray<string>): Promise<number> => {
  const earlier = asked.keep === undefined ? [] : Table.readReport(asked.keep);
  const whole = (played: Table.Report) => ({ ...played, turns: Table.merge(earlier, played.turns) });
  const report = whole(
    await play(asked, ["npm run agents --", ...args.map(quote)].join(" "), (soFar) => {
      if (asked.keep !== undefined) Table.saveReport(asked.keep, whole(soFar));
    }),
  );
  console.log(asked.json ? JSON.stringify(report, null, 2) : Table.markdown(report));
  if (asked.write) Table.write(new URL("../../docs/agents.md", import.meta.url), report);
  const wrong = findWorse(report.turns, agents);
  for (const { turn, why } of wrong)
    console.error(`agents: ${Table.placeOf(turn)}: ${why} (${turn.cells.map(Table.nameOf).join(", ")})`);
  return wrong.length === 0 ? 0 : 1;
};

/** @param keep receives the turns so far after each turn, because a run of an hour may be ended at any time */
const play = async (asked: Asked, command: string, keep: (soFar: Table.Report) => void): Promise<Table.Report> => {
  const kept = isolation();
  const names = [...new Set(agents.map(({ packageName }) => packageName))];
  const versions = {
    node: process.version.slice(1),
    ...Object.fromEntries(names.map((name) => [name, installedVersion(name) ?? ""])),
  };
  const report = () => ({
    command: command.trim(),
    versions,
    isolation: kept === "namespace" ? "network namespace with loopback only" : "unreachable proxies",
    turns: [...turns].sort(([a], [b]) => a - b).map(([, it]) => it),
  });
  const open = asked.agents.flatMap((agent) =>
    asked.ways.flatMap((way) => asked.faults.map((fault) => ({ agent, way, fault }))),
  );
  const turns = new Map<number, Table.Played>();
  const queue = open.entries();
  const worker = async () => {
    for (const [index, { agent, fault, way }] of queue) {
      const play = async () => {
        const cell = await playTurn(agent, fault, way, modules, environmentOf(kept));
        console.error(
          `${agent.name}, ${way}, ${fault.title}: ${cell.letter}${cell.requests}  ${cell.cause ?? ""}  ${cell.note}`,
        );
        return cell;
      };
      const cells: [Cell, ...Array<Cell>] = [await play()];
      while (cells.length < asked.times) cells.push(await play());
      turns.set(index, { agent: agent.name, way, measure: fault.measure, fault: fault.title, cells });
      keep(report());
    }
  };
  await Promise.all(Array.from({ length: asked.concurrency }, worker));
  return report();
};

const read = (args: ReadonlyArray<string>): Asked | string => {
  try {
    const { values } = parseArgs({ args: [...args], options });
    const only = list(values.only);
    const wayNames = list(values.way);
    const times = Number(values.times ?? 1);
    const seconds = Number(values.held ?? 0);
    const measure = measureOf(values);
    const concurrency = Number(values.concurrency ?? 2);
    const strange = wayNames.find((name) => !ways.some((way) => way === name));
    if (strange !== undefined) return `--way: unknown way "${strange}"`;
    const unknown = only.find((name) => !agents.some((agent) => agent.name.startsWith(name)));
    if (unknown !== undefined) return `--only: unknown agent "${unknown}"`;
    if (!(seconds >= 0)) return `--held: expected seconds, got "${values.held}"`;
    if (!Number.isInteger(times) || times < 1) return `--times: expected an integer ≥ 1, got "${values.times}"`;
    if (!Number.isInteger(concurrency) || concurrency < 1)
      return `--concurrency: expected an integer ≥ 1, got "${values.concurrency}"`;
    return {
      agents: agents.filter(
        ({ name, platform = platformOf() }) =>
          platform === platformOf() && (only.length === 0 || only.some((it) => name.startsWith(it))),
      ),
      ways: ways.filter((way) => wayNames.length === 0 || wayNames.includes(way)),
      faults: faultsOf(measure, seconds).filter(({ title }) => title.includes(values.fault ?? "")),
      newest: values.newest === true,
      keep: values.keep === undefined ? undefined : resolve(values.keep),
      times,
      concurrency,
      json: values.json === true,
      write: values.write === true,
      help: values.help === true,
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

const measureOf = (values: {
  readonly held?: string | undefined;
  readonly always?: boolean | undefined;
  readonly away?: boolean | undefined;
  readonly "continue-text"?: boolean | undefined;
}): Measure => {
  if (values.held !== undefined) return "held";
  if (values.always === true) return "always";
  if (values.away === true) return "away";
  return values["continue-text"] === true ? "continue" : "once";
};

/** Splits at commas without a following space, because a row's name may contain a comma and a space. */
const list = (values: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  (values ?? []).flatMap((names) => names.split(/,(?! )/));

process.exit(await main(process.argv.slice(2)));
