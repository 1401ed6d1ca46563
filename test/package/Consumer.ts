/**
 * A separate project in a temporary folder that has this package installed from its tarball.
 *
 * Only declared dependencies are linked from this repository's node_modules, so an undeclared import fails.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { compiler, manifest, packed, root, succeed } from "./Packed.ts";

export { manifest, root };

/** The specifier of an entry of `exports`. */
export const specifierOf = (entry: string): string => manifest.name + entry.slice(1);

export interface Consumer {
  readonly folder: string;
  /** The package as it was unpacked. */
  readonly installed: string;
  /** The package as it was built, with this repository's node_modules: a checkout after `npm ci`. */
  readonly checkout: string;
  /** Nothing of the test runner's own options, and the package's command before everything else. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs Node in the project; gives what it printed. */
  readonly node: (...args: ReadonlyArray<string>) => string;
  /** The compiler's lines about the files that `compilerOptions` meet. */
  readonly compile: (files: Readonly<Record<string, string>>, options: object) => ReadonlyArray<string>;
  readonly remove: () => void;
}

/**
 * Makes the project.
 *
 * @param links packages that are linked besides what the package declares
 */
export const make = (links: ReadonlyArray<string>): Consumer => {
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), "consumer-")));
  const folder = join(temporary, "consumer");
  const installed = join(folder, "node_modules", manifest.name);
  const pack = packed();
  unpack(join(pack, "package.tgz"), installed);
  const checkout = checkOut(temporary, join(pack, "dist"));
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) link(folder, name);
  for (const name of links) link(folder, name);
  linkCommands(folder, installed);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const environment = environmentOf(folder);
  return {
    folder,
    installed,
    checkout,
    environment,
    node: (...args) => succeed(process.execPath, args, { cwd: folder, env: environment }),
    compile: (files, options) => compile(folder, files, options),
    remove: () => rmSync(temporary, { recursive: true, force: true }),
  };
};

/** Puts the build where a checkout has it, with what its scripts need: npx runs `prepare` when it meets a checkout. */
const checkOut = (temporary: string, dist: string): string => {
  const checkout = join(temporary, "checkout");
  for (const name of ["package.json", "tsconfig.json", "scripts", "src"]) {
    // Agents and check tools are installed below `scripts`: gigabytes.
    const filter = (source: string) => basename(source) !== "node_modules";
    cpSync(join(root, name), join(checkout, name), { recursive: true, filter });
  }
  cpSync(dist, join(checkout, "dist"), { recursive: true });
  for (const file of Object.values(manifest.bin)) chmodSync(join(checkout, file), 0o755);
  symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
  return checkout;
};

const unpack = (tarball: string, installed: string): void => {
  mkdirSync(installed, { recursive: true });
  succeed("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"], { cwd: installed });
};

const link = (folder: string, name: string): void => {
  const path = join(folder, "node_modules", name);
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path)) symlinkSync(join(root, "node_modules", name), path);
};

/** As npm does it: a link, and a file that may be executed. */
const linkCommands = (folder: string, installed: string): void => {
  mkdirSync(join(folder, "node_modules", ".bin"));
  for (const [command, file] of Object.entries(manifest.bin)) {
    chmodSync(join(installed, file), 0o755);
    symlinkSync(join("..", manifest.name, file), join(folder, "node_modules", ".bin", command));
  }
};

const environmentOf = (folder: string): Readonly<Record<string, string>> => ({
  HOME: process.env.HOME ?? folder,
  ...(process.env.NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
  PATH: [join(folder, "node_modules", ".bin"), dirname(process.execPath), process.env.PATH ?? ""].join(delimiter),
});

const compile = (folder: string, files: Readonly<Record<string, string>>, options: object): ReadonlyArray<string> => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable"],
    module: "nodenext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    ...options,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: Object.keys(files) }));
  const { error, stdout } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.json", "--pretty", "false"], {
    cwd: folder,
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  return stdout.split("\n").filter((line) => line !== "");
};
