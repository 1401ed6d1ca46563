/**
 * Prints what each entry point loads, the sources by room, and the number of `Run`'s imports: `node scripts/size.ts --help`.
 */
import { parseArgs } from "node:util";
import { entryPoints, importsOf, loadedBy, rooms, type Sizes } from "./size/Sources.ts";

const help = `npm run size -- [options]

Prints the files and lines that each entry point of the package loads when it is imported, the sources by room, and the number of
modules that Run imports. Types are not counted, and neither are modules that are imported later with import().

  --json   prints one JSON document instead of tables
  --help   prints this text
`;

const table = (head: string, rows: ReadonlyArray<readonly [name: string, sizes: Sizes]>): string => {
  const width = Math.max(head.length, ...rows.map(([name]) => name.length));
  const line = (name: string, files: number | string, lines: number | string) =>
    `${name.padEnd(width)}  ${String(files).padStart(6)}  ${String(lines).padStart(8)}`;
  return [line(head, "files", "lines"), ...rows.map(([name, { files, lines }]) => line(name, files, lines))].join("\n");
};

const main = (): string => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ options: { json: flag, help: flag } });
  if (values.help) return help;
  const loaded = entryPoints().map(({ name, source }) => [name, loadedBy(source)] as const);
  const run = importsOf("src/runtime/run/Run.ts");
  if (values.json) {
    const named = (rows: ReadonlyArray<readonly [string, Sizes]>) => Object.fromEntries(rows);
    return JSON.stringify({ loaded: named(loaded), rooms: named(rooms()), run }, undefined, 2);
  }
  return `${table("entry point", loaded)}\n\n${table("room", rooms())}\n\nRun imports ${run.length} modules`;
};

console.log(main());
