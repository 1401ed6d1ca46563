/**
 * Tries mutations that chance has drawn, and says how many of them the tests notice.
 *
 * A mutation meets the tests of its folder first, then simulations, then every quick test that imports its file. A test that fails kills it
 * only if the same test file passes without it.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Schema } from "effect";
import type { Copy } from "../runner/Copy.ts";
import { proofMsMax, type Said, testMsMax, tried, vitest } from "../runner/Trial.ts";
import { type Mutation, mutationsOf } from "./Mutations.ts";

/** The folders of `src` whose code decides about recovery. */
export const rooms = ["domain", "facts", "policy", "failure", "seam", "runtime"] as const;

/** The outcome of a mutation. */
export interface Sampled {
  readonly mutation: Mutation;
  /** `error`: some tests could not be run, so that nothing is known. It counts as survived. */
  readonly state: "killed" | "survived" | "error";
  /** The test or simulation that noticed it, or why nothing is known. */
  readonly by?: string;
  readonly seconds: number;
}

/** Runs of each simulation that a mutation meets. */
export const simulationRuns = { runs: 200, crash: 60 } as const;

/** The proof that notices a mutation, and the test file that must pass without it. */
interface Killer {
  readonly by: string;
  readonly file?: string;
}

/** Milliseconds that every quick test which imports a file has: the whole quick suite takes about 8 minutes. */
const relatedMsMax = 900_000;

const quick = "test/vitest.quick.config.ts";

/** Every mutation of the rooms. */
export const allMutations = (root: string): ReadonlyArray<Mutation> =>
  rooms.flatMap((room) =>
    globSync(`src/${room}/**/*.ts`, { cwd: root })
      .sort()
      .flatMap((path) => mutationsOf(path, readFileSync(join(root, path), "utf8"))),
  );

/** The nearest folder of tests that mirrors the file's own. */
const testsBeside = (path: string, root: string): string => {
  let folder = dirname(path).replace(/^src/, "test");
  while (folder !== "test" && globSync("*.test.ts", { cwd: join(root, folder) }).length === 0) folder = dirname(folder);
  return folder;
};

/** Tries mutations in one copy of the sources. */
export class Sampling {
  readonly #copy: Copy;
  /** Test files that passed, or failed, without a mutation. */
  readonly #healthy: Map<string, boolean>;

  /** @param healthy shared by all samplings of a run */
  constructor(copy: Copy, healthy: Map<string, boolean>) {
    this.#copy = copy;
    this.#healthy = healthy;
  }

  async try(mutation: Mutation): Promise<Sampled> {
    const began = performance.now();
    const told = (rest: Pick<Sampled, "state" | "by">): Sampled => ({
      mutation,
      ...rest,
      seconds: Math.round((performance.now() - began) / 100) / 10,
    });
    try {
      const by = await this.#killer(mutation);
      return told(by === undefined ? { state: "survived" } : { state: "killed", by });
    } catch (error) {
      return told({ state: "error", by: String(error).slice(0, 300) });
    }
  }

  async #killer(mutation: Mutation): Promise<string | undefined> {
    const { end, path, replace, start } = mutation;
    const original = readFileSync(join(this.#copy.root, path), "utf8");
    const site = { path, original, mutated: original.slice(0, start) + replace + original.slice(end) };
    const stages = [
      () => this.#tests([testsBeside(path, this.#copy.root)], proofMsMax * 2, "run"),
      () => this.#simulation("runs"),
      () => this.#simulation("crash"),
      () => this.#tests([path, "--run"], relatedMsMax, "related"),
    ];
    for (const stage of stages) {
      const failed = await this.#copy.with(site, stage);
      if (failed === undefined) continue;
      if (failed.file === undefined || (await this.#passesWithout(failed.file))) return failed.by;
    }
    return undefined;
  }

  /** The test that fails, if one does. Tests that reach no end have met a mutation that loops. */
  async #tests(which: ReadonlyArray<string>, limitMs: number, command: "run" | "related"): Promise<Killer | undefined> {
    const limits = ["--testTimeout", String(testMsMax), "--bail", "1", "--maxWorkers", "1", "--passWithNoTests"];
    const report = await vitest([...which, ...limits], this.#copy.root, limitMs, quick, command);
    if (typeof report === "string") {
      // A loop without an end kills its mutation, if the same tests end without it.
      if (command === "run" && report.startsWith("no end"))
        return { by: `${which[0]}: ${report}`, file: String(which[0]) };
      throw new Error(`${which[0]}: ${report}`);
    }
    for (const { assertionResults, message, name } of report.testResults) {
      const file = name.slice(this.#copy.root.length).replace(/^\//, "");
      const failed = assertionResults.find(({ status }) => status === "failed");
      if (failed !== undefined) return { by: `${basename(file)}: ${failed.fullName}`, file };
      if (assertionResults.length === 0 && message) return { by: `${basename(file)} does not run`, file };
    }
    return undefined;
  }

  async #simulation(simulate: "runs" | "crash"): Promise<Killer | undefined> {
    const said: Said = await tried({ simulate, runs: simulationRuns[simulate] }, this.#copy.root);
    if (said.said === "passed") return undefined;
    return { by: said.said === "failed" ? `simulation: ${said.what} (seed ${said.seed})` : `simulation: ${said.why}` };
  }

  async #passesWithout(file: string): Promise<boolean> {
    const known = this.#healthy.get(file);
    if (known !== undefined) return known;
    const passes = (await this.#tests([file], proofMsMax, "run")) === undefined;
    this.#healthy.set(file, passes);
    return passes;
  }
}

/** A mutation that survives, with the reason why no test can or need notice it. */
const Explained = Schema.Struct({
  path: Schema.NonEmptyString,
  find: Schema.NonEmptyString,
  replace: Schema.String,
  why: Schema.NonEmptyString,
});

const explanations = (root: string): ReadonlyArray<typeof Explained.Type> => {
  const file = join(root, "scripts/mutants/sample/survivors.jsonl");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => Schema.decodeUnknownSync(Schema.fromJsonString(Explained))(line));
};

/**
 * The score and every survivor with its reason, as text.
 *
 * @param total mutations that there are, of which `results` is the sample
 */
export const sampleReport = (results: ReadonlyArray<Sampled>, total: number, root: string): string => {
  const known = explanations(root);
  const killed = results.filter(({ state }) => state === "killed").length;
  const survivors = results.filter(({ state }) => state !== "killed");
  const rows = rooms.map((room) => {
    const own = results.filter(({ mutation }) => mutation.path.startsWith(`src/${room}/`));
    return `  ${room.padEnd(8)} ${own.filter(({ state }) => state === "killed").length} of ${own.length}`;
  });
  const lines = survivors.map(({ by, mutation: { find, line, operator, path, replace }, state }) => {
    const why = by ?? known.find((it) => it.path === path && it.find === find && it.replace === replace)?.why;
    return `${state === "error" ? "ERROR" : "SURVIVED"}  ${path}:${line} ${operator}: ${find} → ${replace}\n    ${why ?? "not explained"}`;
  });
  const share = results.length === 0 ? 0 : (100 * killed) / results.length;
  const sum = `${results.length} of ${total} mutations: ${killed} killed (${share.toFixed(1)} %), ${survivors.length} survived`;
  return [...lines, ...rows, sum].join("\n");
};
