/**
 * Makes the program of an older version from the repository's history. Node runs its sources as they are: what `git archive` gives of them
 * stands in a temporary folder, with a link to the packages of this version.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaVersion } from "../../src/recorder/sql/SqlSchema.ts";
import type { Program } from "./Gateways.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The sources are some megabytes. */
const archiveMax = 256 * 1024 * 1024;

const git = (...args: ReadonlyArray<string>): Buffer =>
  execFileSync("git", ["-C", root, ...args], { maxBuffer: archiveMax, stdio: ["ignore", "pipe", "pipe"] });

const schemaFile = "src/recorder/sql/SqlSchema.ts";

/**
 * The last commit whose programs know the tables before this version's: the one in front of that which brought this version's number. It is
 * looked for, since a new migration moves it, and a history that is written again has other names for all of its commits.
 */
const formerRevision = (): string => {
  const number = `-Sexport const schemaVersion = ${schemaVersion};`;
  const [brought = ""] = git("log", "--reverse", "--format=%H", number, "--", schemaFile).toString().split("\n");
  // A migration that is not committed stands behind all that is.
  return brought === "" ? "HEAD" : `${brought}^`;
};

/** What a command that failed has said. */
const wordsOf = (error: unknown): string => {
  const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  return said !== "" ? said : error instanceof Error ? error.message : String(error);
};

/**
 * Why there is no older program here, in one sentence; undefined where there is one.
 *
 * @param named any commit; left out, the last one with the tables before this version's
 */
export const missing = (named?: string): string | undefined => {
  try {
    git("cat-file", "-e", `${named ?? formerRevision()}^{commit}`);
    return undefined;
  } catch (error) {
    return `the history here has no commit ${named ?? "of the version before"} (${wordsOf(error)}): a clone with its whole history has it, \`git fetch --unshallow\` brings it`;
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
  const text = readFileSync(join(folder, schemaFile), "utf8");
  const found = /^export const schemaVersion = (\d+);$/m.exec(text)?.[1];
  if (found === undefined) throw new Error("the older version does not say which tables it knows");
  return Number(found);
};

/**
 * Makes it; fails in words where the history does not have it. See `missing`.
 *
 * @param named any commit; left out, the last one with the tables before this version's
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
      // What is compiled of it goes with it: the next one stands in another folder.
      env: { NODE_COMPILE_CACHE: join(folder, "compiled") },
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
};
