/**
 * Plays everything that a release claims, one step after another, and compares the results with the docs.
 */
import { execFileSync, spawn } from "node:child_process";
import { createWriteStream, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { differences, stampPage } from "./release/Figures.ts";
import { type Step, stepsOf, suiteOptions } from "./release/Steps.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const help = `npm run release-check -- [options]

Checks the packed package, plays the fault matrix, conformance, two agents, campaigns, kills, an outage and the benches, writes their tables into docs with the
commit, and fails if a page differs. Takes about an hour and a half; run nothing else meanwhile.

${stepsOf({ openai: "DIR" })
  .map(({ minutes, name }) => `  ${name.padEnd(14)} about ${minutes} minutes`)
  .join("\n")}

  --only NAME      only these steps; repeat it or use commas
  --openai DIR     also plays the test suite of openai-node in this checkout; --anthropic, --genai and --ai play those of
                   anthropic-sdk-typescript, js-genai and the AI SDK's providers
  --dirty          permits uncommitted changes; no page is stamped, because no commit identifies them
  --json           prints one JSON document at the end instead of lines
  --help           prints this text

Exit code: 0 every step passed and every page agrees, 1 some step failed or some page differs, 2 invalid options or uncommitted changes.
`;

interface Played {
  readonly step: string;
  readonly seconds: number;
  readonly code: number | null;
  readonly differences: ReadonlyArray<string>;
  readonly log: string;
}

/** An invalid option, or an unusable state of the checkout. */
class Refused extends Error {}

const read = (args: ReadonlyArray<string>) => {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const options = {
    only: { type: "string", multiple: true, default: [] as Array<string> },
    dirty: flag,
    json: flag,
    help: flag,
  } as const;
  const checkouts = { openai: text, anthropic: text, genai: text, ai: text } as const;
  const { values } = parseArgs({ args: [...args], options: { ...options, ...checkouts } });
  const suites = Object.fromEntries(
    suiteOptions.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])),
  );
  const steps = stepsOf(suites);
  const only = values.only.flatMap((name) => name.split(",")).filter((name) => name !== "");
  const unknown = only.find((name) => !steps.some((step) => step.name === name));
  if (unknown !== undefined)
    throw new Refused(`--only: expected one of ${steps.map(({ name }) => name).join(", ")}, got ${unknown}`);
  return { ...values, steps: only.length === 0 ? steps : steps.filter(({ name }) => only.includes(name)) };
};

const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();

/** Runs a step and writes its output to a file. */
const run = ({ args, name }: Step, folder: string): Promise<{ code: number | null; output: string; log: string }> =>
  new Promise((done, fail) => {
    const log = join(folder, `${name}.log`);
    const file = createWriteStream(log);
    const child = spawn(process.execPath, [...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (bytes: Buffer) => {
      output += bytes.toString();
      file.write(bytes);
    });
    child.stderr.on("data", (bytes: Buffer) => file.write(bytes));
    child.on("error", fail);
    child.on("close", (code) => file.end(() => done({ code, output, log })));
  });

const play = async (step: Step, folder: string, commit: string | undefined): Promise<Played> => {
  const { page } = step;
  const before = page === undefined ? "" : readFileSync(join(root, page.path), "utf8");
  const started = performance.now();
  const { code, log, output } = await run(step, folder);
  const seconds = Math.round((performance.now() - started) / 1000);
  const ended = { step: step.name, seconds, code, log };
  if (page === undefined) return { ...ended, differences: [] };
  const after = readFileSync(join(root, page.path), "utf8");
  const found = differences(before, page.compared === "rows" ? output : after, page.compared);
  if (commit !== undefined && page.compared !== "rows" && step.passes.some((it) => it === code)) {
    const text = stampPage(after, page.marker, commit, new Date().toISOString().slice(0, 10));
    if (text === undefined) throw new Refused(`${page.path}: expected the line ${page.marker}`);
    writeFileSync(join(root, page.path), text);
  }
  return { ...ended, differences: found };
};

const hasPassed = ({ passes }: Step, { code, differences: found }: Played): boolean =>
  passes.some((it) => it === code) && found.length === 0;

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  const { dirty, help: asksHelp, json, steps } = read(args);
  if (asksHelp) {
    console.log(help);
    return 0;
  }
  if (!dirty && git("status", "--porcelain", "--untracked-files=no") !== "")
    throw new Refused("the checkout has uncommitted changes: commit them, or pass --dirty");
  const commit = dirty ? undefined : git("rev-parse", "HEAD");
  const folder = mkdtempSync(join(tmpdir(), "release-check-"));
  const minutes = steps.reduce((sum, step) => sum + step.minutes, 0);
  console.error(`${steps.length} steps, about ${minutes} minutes; logs in ${folder}`);
  const all: Array<Played & { readonly passed: boolean }> = [];
  for (const [at, step] of steps.entries()) {
    console.error(`${at + 1} of ${steps.length}: ${step.name}, about ${step.minutes} minutes`);
    const played = await play(step, folder, commit);
    const passed = hasPassed(step, played);
    all.push({ ...played, passed });
    if (json) continue;
    const exit = step.passes.some((it) => it === played.code) ? "" : `, exit code ${played.code}, see ${played.log}`;
    console.log(`${passed ? "passed" : "FAILED"} ${step.name} in ${played.seconds} s${exit}`);
    for (const line of played.differences) console.log(`  ${step.page?.path}: ${line}`);
  }
  if (json) console.log(JSON.stringify({ commit, steps: all }, undefined, 2));
  const failed = all.filter(({ passed }) => !passed);
  console.error(`${all.length - failed.length} passed, ${failed.length} failed`);
  return failed.length === 0 ? 0 : 1;
};

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
