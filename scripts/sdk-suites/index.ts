/**
 * `npm run sdk-suites`: runs the SDKs' own test suites without and with `recoveringFetch` below them, and prints each test whose outcome
 * differs, with the reason. `--help` lists the options.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Difference, differences, filesOf, type Outcomes, reasons } from "./Compare.ts";
import { type Played, play, SuiteFailed } from "./Play.ts";
import { missingIn, type Sdk, type Suite, sdks, suitesOf } from "./Suites.ts";

const help = `Usage: npm run sdk-suites -- [options]

Runs each SDK's own test suite twice, without and with recoveringFetch below its client, and prints each test that passes only
one way, with the reason from scripts/sdk-suites/reasons.json. A difference is repeated alone before it counts.
The checkouts are yours, with their dependencies installed. They are not modified or copied.

  --openai DIR      a checkout of openai-node
  --anthropic DIR   a checkout of anthropic-sdk-typescript
  --genai DIR       a checkout of js-genai, compiled (npx tsc)
  --ai DIR          a checkout of the AI SDK, with its provider-utils built
  --json            prints one JSON document instead of lines
  --help            prints this text

The generated tests of openai-node and anthropic-sdk-typescript run only if their mock server listens at 127.0.0.1:4010.

Exit code: 0 every difference has a reason; 1 some has none, or a suite could not run; 2 invalid options.`;

interface Report {
  readonly suite: string;
  readonly tests: number;
  readonly passed_without: number;
  readonly passed_with: number;
  readonly requests: number;
  readonly seconds: number;
  readonly differences: ReadonlyArray<Difference>;
}

const main = async (): Promise<number> => {
  const options = read();
  if (options === undefined) return 2;
  if (options.help === true) return say(help);
  const chosen = sdks.flatMap((sdk): ReadonlyArray<readonly [Sdk, string]> => {
    const folder = options[sdk];
    return folder === undefined ? [] : [[sdk, resolve(folder)]];
  });
  if (chosen.length === 0) return refuse("expected at least one of --openai, --anthropic, --genai, --ai, got none");
  const suites: Array<Suite> = [];
  for (const [sdk, folder] of chosen) {
    if (!existsSync(join(folder, "package.json"))) return refuse(`--${sdk}: expected a checkout, got ${folder}`);
    suites.push(...(await suitesOf(sdk, folder)));
  }
  for (const suite of suites) {
    const missing = missingIn(suite);
    if (missing !== undefined)
      return refuse(`--${suite.sdk}: ${suite.name} needs ${missing}; install and build the checkout first`);
  }
  const reports: Array<Report> = [];
  for (const suite of suites) reports.push(await compare(suite));
  if (options.json === true) say(JSON.stringify({ suites: reports }, null, 2));
  else for (const report of reports) say(text(report));
  const unexplained = reports.flatMap((report) =>
    report.differences.filter(({ reason }) => reason === undefined).map(({ test }) => `${report.suite}: ${test}`),
  );
  for (const test of unexplained) console.error(`sdk-suites: unexplained difference: ${test}`);
  return unexplained.length === 0 ? 0 : 1;
};

const read = () => {
  try {
    const text = { type: "string" } as const;
    const flag = { type: "boolean" } as const;
    return parseArgs({ options: { openai: text, anthropic: text, genai: text, ai: text, json: flag, help: flag } })
      .values;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
    return undefined;
  }
};

const compare = async (suite: Suite): Promise<Report> => {
  const first = await bothWays(suite, []);
  const files = filesOf(first.outcomes);
  const again = files.length === 0 ? first : await bothWays(suite, files);
  const { below, without } = first.outcomes;
  return {
    suite: suite.name,
    tests: new Set([...without.keys(), ...below.keys()]).size,
    passed_without: passed(without),
    passed_with: passed(below),
    requests: first.requests,
    seconds: Math.round(first.seconds + again.seconds),
    differences: differences(suite.name, first.outcomes, again.outcomes, reasons),
  };
};

const bothWays = async (suite: Suite, files: ReadonlyArray<string>) => {
  const what = files.length === 0 ? suite.name : `${suite.name}, ${files.length} files again`;
  const one = async (isBelow: boolean): Promise<Played> => {
    const played = await inFolder((folder) => play(suite, isBelow, folder, files));
    const { outcomes, seconds } = played;
    const way = isBelow ? "with" : "without";
    console.error(`${what}, ${way}: ${passed(outcomes)} of ${outcomes.size} pass in ${Math.round(seconds)} s`);
    return played;
  };
  const without = await one(false);
  const below = await one(true);
  return {
    outcomes: { without: without.outcomes, below: below.outcomes },
    requests: below.requests,
    seconds: without.seconds + below.seconds,
  };
};

const inFolder = async <A>(use: (folder: string) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "sdk-suites-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const passed = (outcomes: Outcomes): number => [...outcomes.values()].filter((test) => test.passed).length;

const text = (report: Report): string =>
  [
    `${report.suite}: ${report.tests} tests, ${report.passed_without} pass without and ${report.passed_with} with; ` +
      `${report.requests} requests went through, ${report.differences.length} differences, ${report.seconds} s`,
    ...report.differences.map(
      ({ passes, reason, test, message }) =>
        `  passes ${passes} only: ${test}\n    ${reason ?? `NO REASON\n    ${message?.replaceAll("\n", "\n    ")}`}`,
    ),
  ].join("\n");

const say = (line: string): number => {
  console.log(line);
  return 0;
};

const refuse = (problem: string): number => {
  console.error(`sdk-suites: ${problem}`);
  return 2;
};

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof SuiteFailed)) throw error;
  console.error(`sdk-suites: ${error.message}`);
  process.exitCode = 1;
}
