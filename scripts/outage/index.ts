/**
 * Plays many agents through outages, rate limits and sleep, and judges the result: `npm run outage -- --agents 1000 --minutes 60`.
 */
import { parseArgs } from "node:util";
import { areMet, judge } from "./Judge.ts";
import * as Real from "./Real.ts";
import { lines, summary } from "./Report.ts";
import { play } from "./World.ts";

const usage = `Plays agents in virtual time: paths go down and come back, providers refuse and overload, the process sleeps.

  npm run outage -- [--agents N] [--minutes N] [--seed N] [--json]
  npm run outage -- --real

  --agents N    number of agents (default 1000)
  --minutes N   duration in virtual minutes (default 60, at least 10)
  --seed N      seed of the world (default: a new one, which is printed)
  --real        plays 50 agents for 60 s over real sockets; a listener in front of their provider goes away
  --json        prints the judgements as JSON
  --help        prints this text

The same seed always plays the same world. Exit code 0: no violations. 1: violations; the first of each is printed. 2: invalid
arguments.
`;

interface Options {
  readonly agents: number;
  readonly minutes: number;
  readonly seed: number;
  readonly json: boolean;
  readonly real: boolean;
}

const natural = (name: string, text: string | undefined, otherwise: number, least: number): number => {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`--${name}: expected an integer of at least ${least}, got ${text}`);
};

const options = (): Options | undefined => {
  const flag = { type: "boolean", default: false } as const;
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: { agents: text, minutes: text, seed: text, real: flag, json: flag, help: { ...flag, short: "h" } },
  });
  if (values.help) return undefined;
  return {
    agents: natural("agents", values.agents, 1_000, 1),
    minutes: natural("minutes", values.minutes, 60, 10),
    seed: natural("seed", values.seed, Date.now() % 1_000_000, 0),
    json: values.json,
    real: values.real,
  };
};

const main = async (): Promise<number> => {
  const given = options();
  if (given === undefined) {
    console.log(usage);
    return 0;
  }
  const { agents, json, minutes, real, seed } = given;
  const diary = real
    ? await Real.play({ agents: 50, ms: 60_000, seed })
    : (await play({ agents, minutes, seed })).diary;
  const judgements = judge(diary);
  const held = areMet(judgements);
  if (json) console.log(JSON.stringify({ seed, agents, minutes, held, judgements }, null, 2));
  else {
    const played = real ? "50 agents, 60 s, real sockets" : `${agents} agents, ${minutes} virtual minutes`;
    console.log(`seed ${seed}: ${played}: ${summary(diary)}`);
    for (const line of lines(judgements)) console.log(line);
    if (!held && !real) console.log(`repeat: npm run outage -- --agents ${agents} --minutes ${minutes} --seed ${seed}`);
  }
  return held ? 0 : 1;
};

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
