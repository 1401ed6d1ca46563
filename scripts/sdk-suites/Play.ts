/** Runs a suite once and reads its runner's results. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { Predicate, Schema } from "effect";
import type { Outcome, Outcomes } from "./Compare.ts";
import type { Suite } from "./Suites.ts";

/** Time limit of a suite, in milliseconds. */
const suiteMsMax = 1_800_000;

/** Maximum length of a failed test's message, in UTF-16 code units. */
const messageMax = 600;

/** A suite produced no results, or `recoveringFetch` was not used in it. */
export class SuiteFailed extends Schema.TaggedError<SuiteFailed>()("SuiteFailed", {
  reason: Schema.Literals(["no_results", "not_below", "timed_out"]),
  message: Schema.String,
}) {}

/** The result of one run of a suite. */
export interface Played {
  readonly outcomes: Outcomes;
  /** Number of requests that went through `recoveringFetch`. */
  readonly requests: number;
  readonly seconds: number;
}

/**
 * Runs a suite.
 *
 * @param isBelow true if `recoveringFetch` is used below the SDK
 * @param scratch an empty folder for the runner's output
 * @param files test files to run; an empty list runs all
 */
export const play = async (
  suite: Suite,
  isBelow: boolean,
  scratch: string,
  files: ReadonlyArray<string> = [],
): Promise<Played> => {
  const started = performance.now();
  const output = join(scratch, "results.json");
  const log = join(scratch, "log");
  const { NODE_OPTIONS: _before, ...environment } = process.env;
  const preload = `--import ${new URL("below.mjs", import.meta.url).href}`;
  await run(process.execPath, commandOf(suite, output, files), suite.folder, {
    ...environment,
    SDK_SUITES_OUTPUT: output,
    ...(isBelow
      ? { NODE_OPTIONS: preload, SDK_SUITES_LOG: log, SDK_SUITES_PATCHES: JSON.stringify(suite.patches) }
      : {}),
  });
  if (!existsSync(output))
    throw new SuiteFailed({ reason: "no_results", message: `${suite.name}: the runner wrote no results` });
  const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n") : [];
  const requests = lines.filter((line) => line === "called").length;
  if (isBelow && files.length === 0 && requests === 0) {
    const patched = lines.some((line) => line.startsWith("patched"));
    const why = patched ? "no test sent a request" : `no line of ${suite.patches[0]?.file} matches the patch`;
    throw new SuiteFailed({ reason: "not_below", message: `${suite.name}: ${why}` });
  }
  return { outcomes: read(output, suite.folder), requests, seconds: (performance.now() - started) / 1_000 };
};

const commandOf = (suite: Suite, output: string, files: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { args, folder, runner } = suite;
  const bin = (file: string) => join(packageOf(folder, runner), file);
  const json = `--outputFile=${output}`;
  if (runner === "vitest") return [bin("vitest.mjs"), "run", ...args, "--reporter=json", json, ...files];
  if (runner === "jest")
    return [bin("bin/jest.js"), ...args, "--json", json, ...(files.length === 0 ? [] : ["--runTestsByPath", ...files])];
  const reporter = `--reporter=${join(import.meta.dirname, "jasmine-json.mjs")}`;
  return [bin("bin/jasmine.js"), reporter, ...(files.length === 0 ? args : files)];
};

/** Finds the folder of an installed package, which may belong to a workspace above. */
const packageOf = (folder: string, name: string): string => {
  const found = join(folder, "node_modules", name);
  return existsSync(found) || dirname(folder) === folder ? found : packageOf(dirname(folder), name);
};

const run = (command: string, args: ReadonlyArray<string>, cwd: string, env: NodeJS.ProcessEnv): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: "ignore" });
    const late = setTimeout(() => {
      // Its workers end by themselves.
      child.kill("SIGKILL");
      reject(
        new SuiteFailed({ reason: "timed_out", message: `a suite in ${cwd} ran for ${suiteMsMax / 60_000} minutes` }),
      );
    }, suiteMsMax);
    child.once("error", reject);
    child.once("close", () => {
      clearTimeout(late);
      resolve();
    });
  });

const read = (output: string, folder: string): Outcomes => {
  const tests = new Map<string, Outcome>();
  const results: unknown = JSON.parse(readFileSync(output, "utf8"));
  for (const file of listOf(results, "testResults")) {
    const path = relative(folder, textOf(file, "name"));
    for (const test of listOf(file, "assertionResults")) {
      const status = textOf(test, "status");
      if (status !== "passed" && status !== "failed") continue;
      const key = `${path} › ${textOf(test, "fullName")}`;
      // Of several tests with the same title, a failed one counts.
      if (tests.get(key)?.passed === false) continue;
      const [message] = listOf(test, "failureMessages");
      const passed = status === "passed";
      tests.set(key, { passed, message: passed ? undefined : String(message ?? "").slice(0, messageMax) });
    }
  }
  return tests;
};

const listOf = (value: unknown, key: string): ReadonlyArray<unknown> =>
  Predicate.hasProperty(value, key) && Array.isArray(value[key]) ? value[key] : [];

const textOf = (value: unknown, key: string): string =>
  Predicate.hasProperty(value, key) && typeof value[key] === "string" ? value[key] : "";
