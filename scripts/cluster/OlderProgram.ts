/**
 * Builds the program of an older version from the git history. The sources are extracted with `git archive` into a temporary folder
 * that links to this version's node_modules, and Node runs them directly.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaVersion } from "../../src/recorder/sql/SqlSchema.ts";
import type { Program } from "./Gateways.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Maximum size of the archive, in bytes. The sources are a few megabytes. */
const archiveMax = 256 * 1024 * 1024;

const git = (...args: ReadonlyArray<string>): Buffer =>
  execFileSync("git", ["-C", root, ...args], { maxBuffer: archiveMax, stdio: ["ignore", "pipe", "pipe"] });

const schemaFile = "src/recorder/sql/SqlSchema.ts";

/**
 * Finds the last commit with the previous schema version: the parent of the commit that introduced the current one. It is searched for
 * and not written down, because each migration moves it and a rewritten history renames every commit.
 */
const formerRevision = (): string => {
  const number = `-Sexport const schemaVersion = ${schemaVersion};`;
  const [brought = ""] = git("log", "--reverse", "--format=%H", number, "--", schemaFile).toString().split("\n");
  // An uncommitted migration: HEAD still has the previous schema.
  return brought === "" ? "HEAD" : `${brought}^`;
};

const wordsOf = (error: unknown): string => {
  const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  return said !== "" ? said : error instanceof Error ? error.message : String(error);
};

/**
 * Explains in one sentence why the older program cannot be built here; undefined if it can.
 *
 * @param named any commit; the default is the last one with the previous schema version
 */
export const missing = (named?: string): string | undefined => {
  try {
    git("cat-file", "-e", `${named ?? formerRevision()}^{commit}`);
    return undefined;
  } catch (error) {
    return `this clone has no commit ${named ?? "with the previous schema version"} (${wordsOf(error)}): \`git fetch --unshallow\` fetches the whole history`;
  }
};

/** The program of an older version, in a temporary folder. */
export interface OlderProgram extends Program {
  readonly revision: string;
  /** The schema version that it creates and knows. */
  readonly schema: number;
  readonly remove: () => void;
}

const schemaOf = (folder: string): number => {
  const text = readFileSync(join(folder, schemaFile), "utf8");
  const found = /^export const schemaVersion = (\d+);$/m.exec(text)?.[1];
  if (found === undefined) throw new Error("the older version declares no schemaVersion");
  return Number(found);
};

/**
 * Builds the older program. Throws an error with the reason if the history does not have it.
 *
 * @param named any commit; the default is the last one with the previous schema version
 */
export const make = (named?: string): OlderProgram => {
  const why = missing(named);
  if (why !== undefined) throw new Error(why);
  const revision = git("rev-parse", "--verify", `${named ?? formerRevision()}^{commit}`)
    .toString()
    .trim();
  const folder = mkdtempSync(join(tmpdir(), "older-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    execFileSync("tar", ["-x", "-C", folder], {
      input: git("archive", "--format=tar", revision, "src", "package.json"),
    });
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    return {
      version: "older",
      revision,
      schema: schemaOf(folder),
      bin: join(folder, "src/cli/bin.ts"),
      // The compile cache is removed with the folder. The next build uses another folder, so it could not reuse the cache.
      env: { NODE_COMPILE_CACHE: join(folder, "compiled") },
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
};
