/**
 * Runs tests and simulations against changed sources and names the one that notices the change.
 */
import { basename } from "node:path";
import type { Copy } from "../runner/Copy.ts";
import type { Site } from "../runner/Site.ts";
import { tryProof, vitest } from "../runner/Trial.ts";

/** Number of runs of each simulation for a mutation. */
export const simulationRuns = { runs: 200, crash: 60 } as const;

interface Failure {
  readonly by: string;
  readonly file: string;
}

/** Runs proofs in one copy of the sources. A failed test counts only if it passes without the change. */
export class Killers {
  readonly #copy: Copy;
  /** True or false for each set of test files that passed or failed without a change. */
  readonly #healthy: Map<string, boolean>;

  /** @param healthy shared by all copies of a run */
  constructor(copy: Copy, healthy: Map<string, boolean>) {
    this.#copy = copy;
    this.#healthy = healthy;
  }

  /** Returns the first of these test files that fails with the changes and passes without them. */
  async findKiller(
    sites: ReadonlyArray<Site>,
    files: ReadonlyArray<string>,
    limitMs: number,
  ): Promise<string | undefined> {
    let left = files;
    while (left.length > 0) {
      const failed = await this.#copy.with(sites, () => this.#run(left, limitMs, ["--bail", "1"]));
      if (failed === "hangs")
        return (await this.#holds(left, limitMs)) ? `no end within ${limitMs / 1_000} s, with ${left[0]}` : undefined;
      const [first] = failed;
      if (first === undefined) return undefined;
      if (await this.#holds([first.file], limitMs)) return first.by;
      left = left.filter((file) => file !== first.file);
    }
    return undefined;
  }

  /** Returns the test files that fail with the changes; all of them on a timeout. */
  async findFailing(sites: ReadonlyArray<Site>, files: ReadonlyArray<string>, limitMs: number) {
    const failed = await this.#copy.with(sites, () => this.#run(files, limitMs, []));
    return failed === "hangs" ? files : [...new Set(failed.map(({ file }) => file))];
  }

  /** Returns the invariant that a simulation finds violated. */
  async simulate(sites: ReadonlyArray<Site>, kind: keyof typeof simulationRuns): Promise<string | undefined> {
    const proof = { simulate: kind, runs: simulationRuns[kind] };
    const said = await this.#copy.with(sites, () => tryProof(proof, this.#copy.root));
    if (said.said === "passed") return undefined;
    return said.said === "failed" ? `simulation: ${said.what} (seed ${said.seed})` : `simulation: ${said.why}`;
  }

  async #run(
    files: ReadonlyArray<string>,
    limitMs: number,
    options: ReadonlyArray<string>,
  ): Promise<ReadonlyArray<Failure> | "hangs"> {
    const config = "scripts/mutants/sample/vitest.config.ts";
    const report = await vitest([...files, "--maxWorkers", "1", ...options], this.#copy.root, limitMs, config);
    if (typeof report === "string") {
      if (report.startsWith("no end")) return "hangs";
      throw new Error(report);
    }
    return report.testResults.flatMap(({ assertionResults, message, name }): ReadonlyArray<Failure> => {
      const file = name.slice(this.#copy.root.length + 1);
      const failed = assertionResults.find(({ status }) => status === "failed");
      if (failed !== undefined) return [{ by: `${basename(file)}: ${failed.fullName}`, file }];
      return assertionResults.length === 0 && message ? [{ by: `${basename(file)} does not run`, file }] : [];
    });
  }

  async #holds(files: ReadonlyArray<string>, limitMs: number): Promise<boolean> {
    const key = files.join();
    const known = this.#healthy.get(key);
    if (known !== undefined) return known;
    const failed = await this.#run(files, limitMs, ["--bail", "1"]);
    const holds = failed !== "hangs" && failed.length === 0;
    this.#healthy.set(key, holds);
    return holds;
  }
}
