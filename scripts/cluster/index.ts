/**
 * `npm run cluster`: three gateways over one PostgreSQL, a balancer before them, and a kill every five seconds. With `--roll` they are rolled
 * from an older version to this one, and back.
 */
import { parseArgs } from "node:util";
import { holds, judged } from "./Judge.ts";
import * as OlderProgram from "./OlderProgram.ts";
import { play } from "./Play.ts";
import { lines } from "./Report.ts";

const usage = `Plays three gateways over one PostgreSQL, with a balancer of TCP before them, clients that ask again for what breaks, a provider
with faults behind them, and a kill -9 of a gateway every few seconds. It needs no Docker: PostgreSQL is the machine's own package,
started in a folder of its own.

With --roll all gateways begin in the last version that has the tables before this one's, and every few seconds one of them ends and
starts in the other version: first each in this one, then each back in the older one, and so on. Most are told to end (SIGTERM), some
are killed. The program of the older version comes from the history of this repository.

  npm run cluster -- [--seconds N] [--streams N] [--seed N] [--kill-ms N] [--lease-ms N] [--json]
  npm run cluster -- --roll [--older REVISION] […]

  --seconds N    how long there is load (default 60)
  --streams N    streams that are open at the same time (default 40)
  --seed N       what is asked, what the provider does and who is killed; left out, a new one, which is printed
  --kill-ms N    from one end of a gateway to the next, or longer (default 5000)
  --lease-ms N   lease of a gateway (default 3000). A gateway takes over what another one left when it has watched that for a whole
                 lease, so that somebody has to live longer than a lease
  --roll         rolls the gateways from the older version to this one and back. There is load until each has been rolled to and fro,
                 also for longer than --seconds
  --older REVISION
                 the older version: any commit that can be named, with --roll, as it is (default the last commit with the
                 tables before this version's, without the faults of it that would be taken for one of the roll)
  --json         the verdict as JSON
  --help         this text

Exit code 0: every bar is kept. 1: one is broken, with the first cases. 2: bad arguments.
`;

const natural = (name: string, text: string | undefined, otherwise: number): number => {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new Error(`--${name}: expected a whole number from 1, got ${text}`);
};

const options = () => {
  const flag = { type: "boolean", default: false } as const;
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      seconds: text,
      streams: text,
      seed: text,
      "kill-ms": text,
      "lease-ms": text,
      older: text,
      roll: flag,
      json: flag,
      help: { ...flag, short: "h" },
    },
  });
  if (values.older !== undefined && !values.roll) throw new Error("--older: goes with --roll");
  return {
    help: values.help,
    roll: values.roll,
    named: values.older,
    json: values.json,
    seconds: natural("seconds", values.seconds, 60),
    streams: natural("streams", values.streams, 40),
    seed: natural("seed", values.seed, 1 + (Date.now() % 1_000_000)),
    killMs: natural("kill-ms", values["kill-ms"], 5_000),
    leaseMs: natural("lease-ms", values["lease-ms"], 3_000),
  };
};

/** Gateways of a play. */
const nodes = 3;

/** Each of them is rolled to this version, and back. */
const restarts = 2 * nodes;

const main = async (): Promise<number> => {
  const { help, json, named, roll, ...given } = options();
  if (help) {
    console.log(usage);
    return 0;
  }
  const { killMs, leaseMs, seconds, seed, streams } = given;
  const older = roll ? OlderProgram.make(named) : undefined;
  const flags = `--seconds ${seconds} --streams ${streams} --seed ${seed} --kill-ms ${killMs} --lease-ms ${leaseMs}`;
  if (older !== undefined) console.error(`older version ${older.revision}`);
  console.error(`npm run cluster -- ${flags}${roll ? " --roll" : ""}${named === undefined ? "" : ` --older ${named}`}`);
  const rolled = older === undefined ? {} : { older, restarts };
  const progress = (line: string) => console.error(`  ${line}`);
  const diary = await play({ ...given, ...rolled, nodes, progress }).finally(() => older?.remove());
  const verdict = judged(diary);
  const ends = { kills: diary.kills.length, stops: diary.stops.length };
  if (json) console.log(JSON.stringify({ ...given, revision: older?.revision, ...ends, ...verdict }, null, 2));
  else {
    const told = `${ends.kills} kills${older === undefined ? "" : `, ${ends.stops} told to end`}`;
    console.log(`seed ${seed}: ${seconds} s, ${streams} streams at the same time, ${nodes} gateways, ${told}`);
    for (const line of lines(verdict, diary)) console.log(line);
  }
  return holds(verdict) ? 0 : 1;
};

try {
  process.exit(await main());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(2);
}
