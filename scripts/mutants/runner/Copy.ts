/**
 * Keeps a copy of the sources that a mutant is put into and taken out of again.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Site } from "./Site.ts";

/** What tests and simulations read. */
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
    // Agents and check tools are installed below `scripts`: gigabytes.
    const filter = (source: string) => basename(source) !== "node_modules";
    for (const path of copied) cpSync(join(repository, path), join(this.root, path), { recursive: true, filter });
    this.#linkModules(join(repository, "node_modules"));
    // Some tests start the built command line: that one is not mutated.
    symlinkSync(join(repository, "dist"), join(this.root, "dist"));
  }

  /** Each package is linked by itself, so that caches that tools keep beside them are the copy's own. */
  #linkModules(modules: string): void {
    const own = join(this.root, "node_modules");
    mkdirSync(own);
    for (const name of readdirSync(modules)) {
      if (!name.startsWith(".") || name === ".bin") symlinkSync(join(modules, name), join(own, name));
    }
  }

  /** Puts a mutant in while something is done. */
  async with<A>({ mutated, original, path }: Site, use: () => Promise<A>): Promise<A> {
    writeFileSync(join(this.root, path), mutated);
    try {
      return await use();
    } finally {
      writeFileSync(join(this.root, path), original);
    }
  }

  /** What a proof has started may still write for a moment. */
  remove(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
