/**
 * `npm run cluster`: three gateways over one PostgreSQL, a balancer in front of them, and a kill every five seconds. With `--roll` the
 * gateways are rolled from an older version to this one and back.
 */
import { parseArgs } from "node:util";
import { holds, judged } from "./Judge.ts";
import * as OlderProgram from "./OlderProgram.ts";
import { play } from "./Play.ts";
import { lines } from "./Report.ts";

const usage = `Plays three gateways over one PostgreSQL, with a TCP balancer in front of them, clients that retry broken streams, a provider
with faults, and a kill -9 of one gateway every few seconds. It needs no Docker: it uses the PostgreSQL package of this machine and
starts a server in a temporary folder.

With --roll all gateways start in the last version that has the previous database schema. Every few seconds one of them ends and
starts in the other version: first each in this version, then each in the older one, and so on. About 70 % are stopped (SIGTERM), the
others are killed. The program of the older version is built from the history of this repository.

  npm run cluster -- [--seconds N] [--streams N] [--seed N] [--kill-ms N] [--lease-ms N] [--json]
  npm run cluster -- --roll [--older REVISION] […]

  --seconds N    duration of the load (default 60)
  --streams N    number of streams that are open at the same time (default 40)
  --seed N       seed of the requests, the faults and the kills (default: a new one, which is printed)
  --kill-ms N    minimum interval between two ends of gateways (default 5000)
  --lease-ms N   lease of a gateway (default 3000). A gateway takes over the runs of another after it has watched them for a whole
                 lease, so at least one gateway must live longer than a lease
  --roll         rolls the gateways from the older version to this one and back. The load continues until each has been rolled both
                 ways, even beyond --seconds
  --older REVISION
                 the older version, with --roll: any commit. It runs unchanged (default: the last commit with the previous
                 database schema)
  --json         the verdict as JSON
  --help         this text

Exit code 0: every bar is met. 1: a bar is missed; its first violations are printed. 2: invalid arguments.
`;

const natural = (name: string, text: string | undefined, otherwise: number): number => {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new Error(`--${name}: expected an integer of at least 1, got ${text}`);
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
  if (values.older !== undefined && !values.roll) throw new Error("--older: requires --roll");
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

const nodes = 3;

/** Each gateway is rolled to this version and back. */
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
    const told = `${ends.kills} kills${older === undefined ? "" : `, ${ends.stops} stopped`}`;
    console.log(`seed ${seed}: ${seconds} s, ${streams} streams at a time, ${nodes} gateways, ${told}`);
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
