/**
 * Formats signatures in the style of the sources.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const prettier = fileURLToPath(new URL("../../node_modules/prettier/bin/prettier.cjs", import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));

const separator = "// ---- next";

/**
 * Formats all declarations in a single run of the formatter.
 *
 * @param texts declarations; a leading `declare` is only for the formatter
 * @returns the formatted text of each
 * @throws Error if the formatter cannot parse one of them
 */
export const format = (texts: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const args = [prettier, "--parser=typescript", "--print-width=120"];
  const input = texts.join(`\n${separator}\n`);
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: root, input, encoding: "utf8" });
  if (status !== 0)
    throw new Error(`prettier cannot format the signatures: ${stderr}\n${linesAroundError(texts, stderr)}`);
  const results = stdout.split(separator);
  if (results.length !== texts.length) throw new Error("prettier has moved the comments between the signatures");
  return new Map(texts.map((text, index) => [text, stripDeclare(results[index] ?? "")]));
};

const stripDeclare = (text: string): string =>
  text
    .trim()
    .replace(/^declare /gm, "")
    .replace(/^const default_/, "const default");

/** Returns the lines around the first one that the formatter reports. */
const linesAroundError = (texts: ReadonlyArray<string>, stderr: string): string => {
  const line = Number(/\((\d+):\d+\)/.exec(stderr)?.[1] ?? 0);
  return texts
    .join(`\n${separator}\n`)
    .split("\n")
    .slice(Math.max(0, line - 5), line + 5)
    .join("\n");
};
