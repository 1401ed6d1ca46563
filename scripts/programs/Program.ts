/**
 * Bundles a program that tests and plays start many times. The command line consists of a thousand modules, and reading, compiling and
 * linking them took more than half of the CPU time of a start.
 *
 * A bundle is built once and stored under a digest of its sources, so an outdated one is never started.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Schema } from "effect";
import { bundler } from "./Bundler.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** Programs that another program starts from its own folder. */
const beside: Readonly<Record<string, ReadonlyArray<string>>> = {
  "src/cli/bin.ts": ["src/cli/serve/WorkerMain.ts"],
};

/** The only module that looks for a program in its own folder. */
const looksBeside = /\/src\/cli\/serve\/WorkerProcess\.ts$/;

const ownUrl = "import.meta.url";

/** Imports that are bundled with a program. All others are loaded from node_modules. */
const bundled = /^(?:[./]|effect(?:$|\/)|@effect\/)/;

/** The sources of all programs, and of this module. */
const sources = [
  "src/**/*.ts",
  "scripts/{histories,kill,programs}/**/*.ts",
  "{docs,test}/examples/**/*.ts",
  "test/Seeded.ts",
  "test/recorder/**/*.ts",
  "package.json",
];

/** Maximum bundles that are kept: those of the current sources, and some that another run may still start. */
const keptMax = 24;

/**
 * Builds a program if necessary, and returns the file to start.
 *
 * @param entry path of its module, relative to the root
 * @param root of the repository, or of an older version of it
 */
export const program = async (entry: string, root: string = repository): Promise<string> => {
  const programs = join(root, "node_modules/.cache/programs");
  const folder = join(programs, digest(root, entry));
  const file = join(folder, basename(entry).replace(/\.ts$/, ".js"));
  if (existsSync(folder)) return file;
  mkdirSync(programs, { recursive: true });
  const made = mkdtempSync(join(programs, "made-"));
  await build(root, [entry, ...(beside[entry] ?? [])], made);
  try {
    renameSync(made, folder);
  } catch (error) {
    // Another process has built it meanwhile.
    rmSync(made, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  forgetOlder(programs);
  return file;
};

const forgetOlder = (programs: string): void => {
  const made = readdirSync(programs)
    .filter((name) => /^[0-9a-f]{16}$/.test(name))
    .map((name) => ({ path: join(programs, name), madeMs: statSync(join(programs, name)).mtimeMs }))
    .sort((a, b) => b.madeMs - a.madeMs);
  for (const { path } of made.slice(keptMax)) rmSync(path, { recursive: true, force: true });
};

const digest = (root: string, entry: string): string => {
  const hash = createHash("sha256").update(`${root}\n${entry}\n`);
  for (const path of globSync([...sources, "package-lock.json"], { cwd: root }).sort())
    hash.update(`${path}\n`).update(readFileSync(join(root, path)));
  return hash.digest("hex").slice(0, 16);
};

const Manifest = Schema.fromJsonString(
  Schema.Struct({
    name: Schema.String,
    exports: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Struct({ default: Schema.String })])),
  }),
);

/** The source of each entry point of the package, by its import specifier. */
const ownEntries = (root: string): ReadonlyMap<string, string> => {
  const { exports, name } = Schema.decodeSync(Manifest)(readFileSync(join(root, "package.json"), "utf8"));
  return new Map(
    Object.entries(exports).flatMap(([entry, target]) =>
      typeof target === "string"
        ? []
        : [[name + entry.slice(1), target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts")]],
    ),
  );
};

/** Bundles modules into a folder, each under its own name. */
const build = async (root: string, inputs: ReadonlyArray<string>, dir: string): Promise<void> => {
  const { rolldown } = await bundler();
  const entries = ownEntries(root);
  const built = await rolldown({
    input: inputs.map((it) => join(root, it)),
    platform: "node",
    plugins: [
      {
        name: "programs",
        resolveId: (specifier) => {
          const own = entries.get(specifier);
          if (own !== undefined) return { id: join(root, own), external: false };
          return bundled.test(specifier) ? null : { id: specifier, external: true };
        },
        // Modules find files relative to their source, so their URL must stay that of the source.
        transform: (code, id) =>
          looksBeside.test(id) || !code.includes(ownUrl)
            ? null
            : code.replaceAll(ownUrl, JSON.stringify(pathToFileURL(id).href)),
      },
    ],
    onLog: (level, { message }) => {
      if (level === "warn") console.warn(message);
    },
  });
  await built.write({ format: "esm", dir, entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" });
  await built.close();
  writeFileSync(join(dir, "package.json"), '{ "type": "module" }\n');
};
