/**
 * Prints what each entry point loads and bundles, the sources by room, the number of `Run`'s imports, and what a healthy stream passes
 * through: `node scripts/size.ts --help`.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { type BundleSize, bundleOf } from "./size/Bundles.ts";
import { lineOf, steps } from "./size/FollowStream.ts";
import { healthyPath, type PathFile } from "./size/HealthyPath.ts";
import { entryPoints, importsOf, loadedBy, rooms, type Sizes } from "./size/Sources.ts";

const help = `npm run size -- [options]

Prints the files and lines that each entry point of the package loads when it is imported, the sources by room, and the number of
modules that Run imports. Types are not counted, and neither are modules that are imported later with import(). Then relays a healthy
stream through a gateway and prints the number of files, functions and lines that it passes through, and its main functions in order
("Follow a stream" in docs/gateway.md).

  --bundles  also prints the size of each entry point's minified bundle, without its dependencies
  --path     lists all files of the healthy stream with their functions
  --json     prints one JSON document instead of tables
  --help     prints this text
`;

const table = (head: string, rows: ReadonlyArray<readonly [name: string, sizes: Sizes]>): string => {
  const width = Math.max(head.length, ...rows.map(([name]) => name.length));
  const line = (name: string, files: number | string, lines: number | string) =>
    `${name.padEnd(width)}  ${String(files).padStart(6)}  ${String(lines).padStart(8)}`;
  return [line(head, "files", "lines"), ...rows.map(([name, { files, lines }]) => line(name, files, lines))].join("\n");
};

/** The main functions of the healthy path with their lines. Marks those that only the first stream of a connection calls. */
const followed = (path: ReadonlyArray<PathFile>): ReadonlyArray<string> =>
  steps.map((step) => {
    const isCalled = path.some(({ file, functions }) => file === step.file && functions.some((it) => isOf(it, step)));
    const where = `${step.file}:${lineOf(step) ?? "?"}`;
    return `${step.stage.padEnd(9)}  ${step.name.padEnd(15)}  ${where}${isCalled ? "" : "  once per connection"}`;
  });

/** True if V8's name of a function is that of a step. V8 prefixes accessors, and names a wrapped generator after its wrapper. */
const isOf = (name: string, { name: of }: { readonly name: string }): boolean =>
  name === of || name === `get ${of}` || name.startsWith(`${of}.`);

const bundles = async (): Promise<ReadonlyArray<readonly [name: string, size: BundleSize]>> => {
  const sizes: Array<readonly [string, BundleSize]> = [];
  for (const { name, source } of entryPoints()) sizes.push([name, await bundleOf(source)]);
  return sizes;
};

const bundleTable = (sizes: ReadonlyArray<readonly [name: string, size: BundleSize]>): string =>
  [
    "entry point       bundle, KB  gzip, KB",
    ...sizes.map(([name, { bytes, gzip }]) => `${name.padEnd(16)}  ${kb(bytes).padStart(10)}  ${kb(gzip).padStart(8)}`),
  ].join("\n");

const kb = (bytes: number): string => (bytes / 1000).toFixed(1);

const main = async (): Promise<string> => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ options: { bundles: flag, path: flag, json: flag, help: flag } });
  if (values.help) return help;
  const loaded = entryPoints().map(({ name, source }) => [name, loadedBy(source)] as const);
  const bundled = values.bundles ? await bundles() : [];
  const run = importsOf("src/runtime/run/Run.ts");
  const files = await Effect.runPromise(healthyPath);
  if (values.json) {
    const named = (rows: ReadonlyArray<readonly [string, Sizes]>) => Object.fromEntries(rows);
    const measured = { loaded: named(loaded), bundles: Object.fromEntries(bundled), rooms: named(rooms()), run };
    return JSON.stringify({ ...measured, path: files, follow: followed(files) }, undefined, 2);
  }
  const functions = files.reduce((sum, file) => sum + file.functions.length, 0);
  const lines = files.reduce((sum, file) => sum + file.lines, 0);
  return [
    table("entry point", loaded),
    ...(values.bundles ? [bundleTable(bundled)] : []),
    table("room", rooms()),
    `Run imports ${run.length} modules`,
    `a healthy stream passes through ${files.length} files: ${functions} functions, ${lines} lines`,
    followed(files).join("\n"),
    ...(values.path
      ? files.map(({ file, functions, lines }) => `${file}, ${lines} lines\n  ${functions.join(", ")}`)
      : []),
  ].join("\n\n");
};

console.log(await main());
