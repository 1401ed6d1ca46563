/**
 * Tries one proof in a copy of the sources and reports its outcome.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Schema } from "effect";
import { postgres } from "../../../test/Suites.ts";
import { baseSeed } from "../../../test/simulation/Campaign.ts";
import type { Proof } from "../Mutant.ts";
import { node } from "./Command.ts";

/** The outcome of a proof. */
export type Said =
  /** Every run or test passed. */
  | { readonly said: "passed" }
  /** It failed. `byTimeout` is true if a test exceeded its own time limit. */
  | {
      readonly said: "failed";
      readonly what: string;
      readonly seed?: number;
      readonly runs?: number;
      readonly byTimeout: boolean;
    }
  /** No result: nothing ran, nothing could be loaded, or it took too long. */
  | { readonly said: "nothing"; readonly why: string };

/** Time limit of a proof, in milliseconds. */
const proofMsMax = 150_000;

/** Time limit of a test, in milliseconds. A test that a mutant hangs counts as failed, before the proof's own limit. */
const testMsMax = 60_000;

/** Formats a proof as a short text. Equal texts mean equal proofs. */
export const proofText = (proof: Proof): string =>
  "simulate" in proof
    ? `simulate ${proof.simulate}, ${proof.runs} runs${proof.seed === undefined ? "" : ` from ${proof.seed}`}`
    : `${proof.test}${proof.named === undefined ? "" : ` "${proof.named}"`}`;

/** Tries a proof. */
export const tryProof = (proof: Proof, root: string): Promise<Said> =>
  "simulate" in proof ? runSimulation(proof, root) : runTest(proof, root);

const Broken = Schema.fromJsonString(
  Schema.Struct({ seed: Schema.Finite, runs: Schema.Finite, broken: Schema.Array(Schema.String) }),
);

const runSimulation = async (proof: Extract<Proof, { readonly simulate: string }>, root: string): Promise<Said> => {
  const kind = { runs: [], crash: ["--crash"], liveness: ["--liveness"], gateway: ["--gateway"] }[proof.simulate];
  const seed = String(proof.seed ?? baseSeed);
  const args = ["scripts/simulate.ts", ...kind, "--runs", String(proof.runs), "--seed", seed, "--first"];
  const { code, printed } = await node(args, root, proofMsMax);
  if (code === 0) return { said: "passed" };
  if (code === undefined) return { said: "nothing", why: `no end within ${proofMsMax / 1_000} s` };
  const line = printed.trimEnd().split("\n").at(-1) ?? "";
  const told = Schema.decodeOption(Broken)(line);
  if (told._tag === "None") return { said: "nothing", why: `the simulation did not run: ${line.slice(0, 200)}` };
  const { broken, runs, seed: at } = told.value;
  return { said: "failed", what: broken[0] ?? "", seed: at, runs, byTimeout: false };
};

const Report = Schema.fromJsonString(
  Schema.Struct({
    testResults: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        message: Schema.optional(Schema.NullOr(Schema.String)),
        assertionResults: Schema.Array(
          Schema.Struct({
            fullName: Schema.String,
            status: Schema.String,
            // A failure without a message is null here.
            failureMessages: Schema.optional(Schema.NullOr(Schema.Array(Schema.Unknown))),
          }),
        ),
      }),
    ),
  }),
);

type Proven = Extract<Proof, { readonly test: string }>;

const runTest = async (proof: Proven, root: string): Promise<Said> => {
  const named = proof.named === undefined ? [] : ["-t", proof.named.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")];
  const limits = ["--testTimeout", String(testMsMax), "--hookTimeout", String(testMsMax)];
  const args = [proof.test, ...named, ...limits, "--bail", "1", "--maxWorkers", "1"];
  const report = await vitest(args, root, proofMsMax, configOf(proof));
  return typeof report === "string" ? { said: "nothing", why: report } : judgeReport(proof, root, report);
};

/** Tries several proofs with one start of the test runner, and returns their outcomes by text. */
export const runTestsTogether = async (
  proofs: ReadonlyArray<Proven>,
  root: string,
): Promise<ReadonlyMap<string, Said>> => {
  const said = new Map<string, Said>();
  for (const [config, these] of Map.groupBy(proofs, configOf)) {
    const files = [...new Set(these.map(({ test }) => test))];
    const report = await vitest(files, root, proofMsMax * files.length, config);
    for (const proof of these) {
      const one: Said =
        typeof report === "object" ? judgeReport(proof, root, report) : { said: "nothing", why: report };
      said.set(proofText(proof), one);
    }
  }
  return said;
};

/** Tests that need PostgreSQL belong to a suite that starts it. */
const configOf = ({ test }: Proven): string =>
  postgres.some((files) => isAmong(test, files)) ? "test/vitest.postgres.config.ts" : "test/vitest.config.ts";

/** True if a file matches a name with at most one `*`. */
const isAmong = (test: string, files: string): boolean => {
  const [before = "", behind] = files.split("*");
  return behind === undefined ? test === files : test.startsWith(before) && test.endsWith(behind);
};

/** Runs tests and returns the report, or the reason why there is none. */
export const vitest = async (
  args: ReadonlyArray<string>,
  root: string,
  limitMs: number,
  config: string,
): Promise<typeof Report.Type | string> => {
  const output = join(root, "report.json");
  rmSync(output, { force: true });
  const runner = join("node_modules", "vitest", "vitest.mjs");
  const base = [runner, "run", "--config", config, "--reporter=json", `--outputFile=${output}`];
  const { code, printed } = await node([...base, ...args], root, limitMs);
  if (code === undefined) return `no end within ${limitMs / 1_000} s`;
  if (!existsSync(output)) return `no report: ${printed.trim().slice(-300)}`;
  return Schema.decodeSync(Report)(readFileSync(output, "utf8"));
};

const judgeReport = ({ named, test }: Proven, root: string, report: typeof Report.Type): Said => {
  const file = report.testResults.find(({ name }) => name.endsWith(test));
  if (file === undefined) return { said: "nothing", why: `no test file ${test}` };
  const own = file.assertionResults.filter(
    ({ fullName, status }) =>
      status !== "skipped" && status !== "pending" && (named === undefined || fullName.includes(named)),
  );
  const failed = own.find(({ status }) => status === "failed");
  if (failed !== undefined) {
    const byTimeout = failed.failureMessages?.some((message) => /timed out in \d+ ?ms/i.test(String(message))) ?? false;
    return { said: "failed", what: failed.fullName, byTimeout };
  }
  if (own.some(({ status }) => status === "passed")) return { said: "passed" };
  const why = file.message?.replaceAll(root, ".").slice(0, 300) || `no test of ${test} has this name`;
  return { said: "nothing", why };
};
