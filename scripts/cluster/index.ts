/**
 * `npm run cluster`: three gateways over one PostgreSQL, a balancer before them, and a kill every five seconds.
 */
import { parseArgs } from "node:util";
import { holds, judged } from "./Judge.ts";
import { play } from "./Play.ts";
import { lines } from "./Report.ts";

const usage = `Plays three gateways over one PostgreSQL, with a balancer of TCP before them, clients that ask again for what breaks, a provider
with faults behind them, and a kill -9 of a gateway every few seconds. It needs no Docker: PostgreSQL is the machine's own package,
started in a folder of its own.

  npm run cluster -- [--seconds N] [--streams N] [--seed N] [--kill-ms N] [--lease-ms N] [--json]

  --seconds N    how long there is load (default 60)
  --streams N    streams that are open at the same time (default 40)
  --seed N       what is asked, what the provider does and who is killed; left out, a new one, which is printed
  --kill-ms N    from one kill to the next (default 5000)
  --lease-ms N   lease of a gateway (default 3000). A gateway takes over what another one left when it has watched that for a whole
                 lease, so that somebody has to live longer than a lease
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
      json: flag,
      help: { ...flag, short: "h" },
    },
  });
  return {
    help: values.help,
    json: values.json,
    seconds: natural("seconds", values.seconds, 60),
    streams: natural("streams", values.streams, 40),
    seed: natural("seed", values.seed, 1 + (Date.now() % 1_000_000)),
    killMs: natural("kill-ms", values["kill-ms"], 5_000),
    leaseMs: natural("lease-ms", values["lease-ms"], 3_000),
  };
};

const main = async (): Promise<number> => {
  const { help, json, ...given } = options();
  if (help) {
    console.log(usage);
    return 0;
  }
  const { killMs, leaseMs, seconds, seed, streams } = given;
  const flags = `--seconds ${seconds} --streams ${streams} --seed ${seed} --kill-ms ${killMs} --lease-ms ${leaseMs}`;
  console.error(`npm run cluster -- ${flags}`);
  const diary = await play({ ...given, nodes: 3, progress: (line) => console.error(`  ${line}`) });
  const verdict = judged(diary);
  if (json) console.log(JSON.stringify({ ...given, kills: diary.kills.length, ...verdict }, null, 2));
  else {
    console.log(
      `seed ${seed}: ${seconds} s, ${streams} streams at the same time, 3 gateways, ${diary.kills.length} kills`,
    );
    for (const line of lines(verdict)) console.log(line);
  }
  return holds(verdict) ? 0 : 1;
};

try {
  process.exit(await main());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(2);
}
