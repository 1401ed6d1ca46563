/**
 * Builds and packs the package once for all test files that install it.
 *
 * The result is kept under a name that its sources give, so that no test finds an older build.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Schema } from "effect";

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    name: Schema.String,
    version: Schema.String,
    files: Schema.Array(Schema.String),
    bin: Schema.Record(Schema.String, Schema.String),
    exports: Schema.Record(Schema.String, Schema.Unknown),
    dependencies: Schema.Record(Schema.String, Schema.String),
    peerDependencies: Schema.Record(Schema.String, Schema.String),
  }),
);

/** The root of the repository. */
export const root = fileURLToPath(new URL("../..", import.meta.url));

export const manifest = Schema.decodeSync(Manifest)(readFileSync(join(root, "package.json"), "utf8"));

export const compiler = join(root, "node_modules/typescript/bin/tsc");

const packs = join(root, "node_modules/.cache/packed");

/** Packs that are kept: that of the sources, and one that another run may still read. */
const keptMax = 2;

/** The files that are packed, and those that the build and the API reference need. */
const copied = ["package.json", "src", ...manifest.files.filter((file) => file !== "dist")];
const builtWith = [
  ...["tsconfig.json", "scripts/tsconfig.build.json", "scripts/bundle.ts", "scripts/programs/Bundler.ts"],
  ...["scripts/api-reference.ts", "scripts/api-reference"],
];

/**
 * A folder with the package's tarball, `package.tgz`, and its build, `dist`. Takes some seconds the first time.
 *
 * @throws Error if the package cannot be built or packed
 */
export const packed = (): string => {
  const folder = join(packs, digest());
  if (existsSync(folder)) return folder;
  mkdirSync(packs, { recursive: true });
  // A build below node_modules would name its own types by paths of that folder.
  const staged = mkdtempSync(join(tmpdir(), "staged-"));
  build(staged);
  const made = mkdtempSync(join(packs, "made-"));
  succeed("npm", ["pack", "--ignore-scripts", "--pack-destination", made], { cwd: staged });
  renameSync(join(made, `${manifest.name}-${manifest.version}.tgz`), join(made, "package.tgz"));
  cpSync(join(staged, "dist"), join(made, "dist"), { recursive: true });
  rmSync(staged, { recursive: true, force: true });
  try {
    renameSync(made, folder);
  } catch (error) {
    // Another test file has packed the same sources meanwhile.
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  forgetOlder(folder);
  return folder;
};

/** Packs for a suite before its test files start, as Vitest's `globalSetup` calls it. */
export default (): void => {
  packed();
};

/** Builds where it is packed. */
const build = (staged: string): void => {
  mkdirSync(join(staged, "scripts"));
  // The package's own test names what is missing. The API reference is written here and not copied.
  for (const name of copied)
    if (existsSync(join(root, name))) cpSync(join(root, name), join(staged, name), { recursive: true });
  const said = succeed(process.execPath, [join(root, "scripts/api-reference.ts"), staged], { cwd: root });
  if (said !== "") throw new Error(`the script of the API reference has printed where npm prints its tarball: ${said}`);
  for (const name of ["tsconfig.json", "scripts/tsconfig.build.json"]) cpSync(join(root, name), join(staged, name));
  symlinkSync(join(root, "node_modules"), join(staged, "node_modules"));
  succeed(process.execPath, [compiler, "-p", "scripts/tsconfig.build.json"], { cwd: staged });
  succeed(process.execPath, [join(root, "scripts/bundle.ts"), staged], { cwd: root });
};

const digest = (): string => {
  const hash = createHash("sha256");
  const paths = [...copied, ...builtWith, "package-lock.json"].flatMap((name) =>
    [name, ...globSync(`${name}/**/*`, { cwd: root })].filter((path) =>
      statSync(join(root, path), { throwIfNoEntry: false })?.isFile(),
    ),
  );
  for (const path of [...new Set(paths)].sort()) hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  return hash.digest("hex").slice(0, 16);
};

const forgetOlder = (newest: string): void => {
  const older = readdirSync(packs)
    .filter((name) => /^[0-9a-f]{16}$/.test(name) && join(packs, name) !== newest)
    .map((name) => ({ path: join(packs, name), madeMs: statSync(join(packs, name)).mtimeMs }))
    .sort((a, b) => b.madeMs - a.madeMs);
  for (const { path } of older.slice(keptMax - 1)) rmSync(path, { recursive: true, force: true });
};

/** Runs a program to its end, and gives what it printed. */
export const succeed = (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): string => {
  const { error, status, stdout, stderr } = spawnSync(command, args, { ...options, encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}\n${stdout}${stderr}`);
  return stdout;
};
