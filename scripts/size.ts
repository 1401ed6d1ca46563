/**
 * Prints what each entry point loads, the sources by room, the number of `Run`'s imports, and what a healthy stream passes through:
 * `node scripts/size.ts --help`.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { healthyPath } from "./size/HealthyPath.ts";
import { entryPoints, importsOf, loadedBy, rooms, type Sizes } from "./size/Sources.ts";

const help = `npm run size -- [options]

Prints the files and lines that each entry point of the package loads when it is imported, the sources by room, and the number of
modules that Run imports. Types are not counted, and neither are modules that are imported later with import(). Then relays a healthy
stream through a gateway and prints the number of files, functions and lines that it passes through.

  --path   lists these files with their functions
  --json   prints one JSON document instead of tables
  --help   prints this text
`;

const table = (head: string, rows: ReadonlyArray<readonly [name: string, sizes: Sizes]>): string => {
  const width = Math.max(head.length, ...rows.map(([name]) => name.length));
  const line = (name: string, files: number | string, lines: number | string) =>
    `${name.padEnd(width)}  ${String(files).padStart(6)}  ${String(lines).padStart(8)}`;
  return [line(head, "files", "lines"), ...rows.map(([name, { files, lines }]) => line(name, files, lines))].join("\n");
};

const main = async (): Promise<string> => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ options: { path: flag, json: flag, help: flag } });
  if (values.help) return help;
  const loaded = entryPoints().map(({ name, source }) => [name, loadedBy(source)] as const);
  const run = importsOf("src/runtime/run/Run.ts");
  const files = await Effect.runPromise(healthyPath);
  if (values.json) {
    const named = (rows: ReadonlyArray<readonly [string, Sizes]>) => Object.fromEntries(rows);
    return JSON.stringify({ loaded: named(loaded), rooms: named(rooms()), run, path: files }, undefined, 2);
  }
  const functions = files.reduce((sum, file) => sum + file.functions.length, 0);
  const lines = files.reduce((sum, file) => sum + file.lines, 0);
  return [
    table("entry point", loaded),
    table("room", rooms()),
    `Run imports ${run.length} modules`,
    `a healthy stream passes through ${files.length} files: ${functions} functions, ${lines} lines`,
    ...(values.path
      ? files.map(({ file, functions, lines }) => `${file}, ${lines} lines\n  ${functions.join(", ")}`)
      : []),
  ].join("\n\n");
};

console.log(await main());
