/**
 * Breaks answers at any character, continues each in honest and clumsy ways, and prints the results:
 * `npm run seam -- --breaks 10000 --seed 1`.
 */
import { parseArgs } from "node:util";
import { baseSeed, playBreaks } from "../test/seam/model/Campaign.ts";
import { tableOf } from "../test/seam/model/Table.ts";

const usage = `Breaks answers at any character, continues each like a model that knows the whole answer, and judges the joined text.

  npm run seam -- [--breaks N] [--seed N] [--only N]

  --breaks N   number of breaks (default 1000)
  --seed N     the first seed (default ${baseSeed})
  --only N     plays only this break, by its number in the table
  --help       prints this text

Exit code 0: no character was duplicated or lost, and nothing unproven was joined. 1: something was. 2: invalid arguments.
`;

const parseInteger = (name: string, text: string, least: number): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw new Error(`--${name}: expected an integer of at least ${least}, got ${text}`);
  return value;
};

const main = (): number => {
  const { values } = parseArgs({
    options: {
      breaks: { type: "string", default: "1000" },
      seed: { type: "string", default: String(baseSeed) },
      only: { type: "string" },
      help: { type: "boolean", default: false, short: "h" },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const only = values.only === undefined ? undefined : parseInteger("only", values.only, 0);
  const breaks = only === undefined ? parseInteger("breaks", values.breaks, 1) : only + 1;
  const report = playBreaks(breaks, parseInteger("seed", values.seed, 0), only);
  console.log(tableOf(report));
  return report.wrong.length === 0 ? 0 : 1;
};

try {
  process.exitCode = main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
