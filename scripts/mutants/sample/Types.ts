/**
 * Type-checks changed sources. The compiler stays open, so a check takes a fraction of a second.
 */
import { join } from "node:path";
import { API, DiagnosticCategory } from "typescript/unstable/sync";
import type { Copy } from "../runner/Copy.ts";
import type { Site } from "../runner/Site.ts";

/** Errors about unused names. A program with them still runs. */
const unused = new Set([6133, 6138, 6192, 6196, 6198, 6199, 6205]);

const config = "scripts/tsconfig.build.json";

/** The compiler for one copy of the sources. */
export class Types {
  readonly #api: API;
  readonly #copy: Copy;
  /** Files that were changed for the last check and have been restored since. */
  #restored: ReadonlyArray<string> = [];

  constructor(copy: Copy) {
    this.#copy = copy;
    this.#api = new API({ cwd: copy.root });
    this.#api.updateSnapshot({ openProjects: [join(copy.root, config)] });
  }

  /** True if the compiler accepts the changed files. Files that import them are not checked again. */
  accept(sites: ReadonlyArray<Site>): Promise<boolean> {
    const files = sites.map(({ path }) => join(this.#copy.root, path));
    return this.#copy.with(sites, async () => {
      const snapshot = this.#api.updateSnapshot({ fileChanges: { changed: [...this.#restored, ...files] } });
      this.#restored = files;
      const program = snapshot.getProject(join(this.#copy.root, config))?.program;
      if (program === undefined) throw new Error(`the compiler does not open ${config}`);
      const found = files.flatMap((file) => [
        ...program.getSyntacticDiagnostics(file),
        ...program.getSemanticDiagnostics(file),
      ]);
      snapshot.dispose();
      return !found.some(({ category, code }) => category === DiagnosticCategory.Error && !unused.has(code));
    });
  }

  close(): void {
    this.#api.close();
  }
}
