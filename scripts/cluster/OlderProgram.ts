/**
 * Makes the program of an older version from the repository's history. Node runs its sources as they are: what `git archive` gives of them
 * stands in a temporary folder, with a link to the packages of this version.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Program } from "./Gateways.ts";

/**
 * The last commit whose programs know the tables before this version's: the one behind it, 7dbe5fb, brought migration 6. A new migration
 * moves it to the last commit before that one: a test compares its number of migrations with this version's.
 */
export const formerRevision = "bbea40d235b8770587369fe8a08487f03e9e6e87";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The sources are some megabytes. */
const archiveMax = 256 * 1024 * 1024;

const git = (...args: ReadonlyArray<string>): Buffer =>
  execFileSync("git", ["-C", root, ...args], { maxBuffer: archiveMax, stdio: ["ignore", "pipe", "pipe"] });

/** What a command that failed has said. */
const wordsOf = (error: unknown): string => {
  const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  return said !== "" ? said : error instanceof Error ? error.message : String(error);
};

/** Why there is no older program here, in one sentence; undefined where there is one. */
export const missing = (revision: string = formerRevision): string | undefined => {
  try {
    git("cat-file", "-e", `${revision}^{commit}`);
    return undefined;
  } catch (error) {
    return `the history here has no commit ${revision} (${wordsOf(error)}): a clone with its whole history has it, \`git fetch --unshallow\` brings it`;
  }
};

/** The program of an older version. */
export interface OlderProgram extends Program {
  readonly revision: string;
  /** Version of the tables that it makes and knows. */
  readonly schema: number;
  /** Removes its folder. */
  readonly remove: () => void;
}

const schemaOf = (folder: string): number => {
  const text = readFileSync(join(folder, "src/recorder/sql/SqlSchema.ts"), "utf8");
  const found = /^export const schemaVersion = (\d+);$/m.exec(text)?.[1];
  if (found === undefined) throw new Error("the older version does not say which tables it knows");
  return Number(found);
};

/** Makes it; fails in words where the history does not have it. */
export const make = (revision: string = formerRevision): OlderProgram => {
  const why = missing(revision);
  if (why !== undefined) throw new Error(why);
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
      // What is compiled of it goes with it: the next one stands in another folder.
      env: { NODE_COMPILE_CACHE: join(folder, "compiled") },
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
};
