/**
 * A copy of the sources in which mutants are introduced and reverted.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Site } from "./Site.ts";

/** The files that tests and simulations read. */
const copied = [
  "src",
  "test",
  "scripts",
  "docs",
  "README.md",
  "CHANGELOG.md",
  "LICENSE",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
] as const;

/** A copy of the repository in a temporary folder. */
export class Copy {
  readonly root: string;

  constructor(repository: string) {
    this.root = mkdtempSync(join(tmpdir(), "mutants-"));
    // The agents and check tools installed below `scripts` are gigabytes.
    const filter = (source: string) => basename(source) !== "node_modules";
    for (const path of copied) cpSync(join(repository, path), join(this.root, path), { recursive: true, filter });
    this.#linkModules(join(repository, "node_modules"));
    // Some tests start the built command line, which is not mutated.
    symlinkSync(join(repository, "dist"), join(this.root, "dist"));
  }

  /** Links each package separately, so that caches that tools keep in `node_modules` belong to the copy. */
  #linkModules(modules: string): void {
    const own = join(this.root, "node_modules");
    mkdirSync(own);
    for (const name of readdirSync(modules)) {
      if (!name.startsWith(".") || name === ".bin") symlinkSync(join(modules, name), join(own, name));
    }
  }

  /** Changes these files while `use` runs. */
  async with<A>(sites: ReadonlyArray<Site>, use: () => Promise<A>): Promise<A> {
    for (const { mutated, path } of sites) writeFileSync(join(this.root, path), mutated);
    try {
      return await use();
    } finally {
      for (const { original, path } of sites) writeFileSync(join(this.root, path), original);
    }
  }

  /** Removes the copy. Retries, because processes that a proof started may still write for a moment. */
  remove(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
