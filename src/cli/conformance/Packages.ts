/**
 * Finds the SDKs under test. They are installed by the user and are not dependencies of this package.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Context, Effect, Option, Runtime, Schema } from "effect";

/** A package under test is not installed. The message names the missing packages; the exit code is 2. */
export class MissingPackage extends Schema.TaggedError<MissingPackage>()("MissingPackage", {
  reason: Schema.Literal("missing_package"),
  packages: Schema.NonEmptyArray(Schema.String),
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 2;
  override readonly [Runtime.errorReported] = false;
}

/**
 * Loads an SDK that the user has installed.
 *
 * @param packages all packages of the SDK, for the error message
 * @param load the dynamic import
 * @throws MissingPackage when one is not installed; any other loading problem is a defect
 */
export const loadPackages = <A>(
  packages: readonly [string, ...Array<string>],
  load: () => Promise<A>,
): Effect.Effect<A, MissingPackage> =>
  Effect.tryPromise(load).pipe(
    Effect.catch(({ cause }) =>
      isMissing(cause)
        ? Effect.fail(
            new MissingPackage({
              reason: "missing_package",
              packages,
              message: `needs ${packages.join(" and ")}: npm install ${packages.join(" ")}`,
            }),
          )
        : Effect.die(cause),
    ),
  );

/** The folder whose packages are found besides those next to this package. Default: the working directory. */
export const PackageFolder = Context.Reference<string>("effect-stream-recovery/cli/PackageFolder", {
  defaultValue: () => process.cwd(),
});

/**
 * Loads an SDK that is no dependency of this package, not even for its types.
 *
 * @returns the exports of all packages, and their installed versions
 */
export const requirePackages = Effect.fnUntraced(function* (packages: readonly [string, ...Array<string>]) {
  const folder = yield* PackageFolder;
  const load = async () => packages.map((name): object => requireFor(name, folder)(name));
  const modules = yield* loadPackages(packages, load);
  const exported: object = Object.assign({}, ...modules);
  return { exported, versions: versionsOf(packages, folder) };
});

/** Returns the `require` that finds a package: this file's own, or else that of a folder. */
const requireFor = (name: string, folder: string): NodeJS.Require => {
  const own = createRequire(import.meta.url);
  return own.resolve.paths(name)?.some((path) => existsSync(join(path, name))) === true
    ? own
    : createRequire(join(folder, "package.json"));
};

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && /^(?:ERR_)?MODULE_NOT_FOUND$/.test(String(cause.code));

const Manifest = Schema.fromJsonString(Schema.Struct({ name: Schema.String, version: Schema.String }));
const readManifest = Schema.decodeOption(Manifest);

/** Maximum folders to search between a package's entry and its manifest. */
const foldersMax = 8;

/** Maps package names to their installed versions, without packages whose manifest cannot be found. */
export const versionsOf = (
  packages: ReadonlyArray<string>,
  folder: string = process.cwd(),
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    packages.flatMap((name) => {
      const version = versionOf(name, folder);
      return version === undefined ? [] : [[name, version]];
    }),
  );

const versionOf = (name: string, base: string): string | undefined => {
  let folder = folderOf(name, base);
  if (folder === undefined) return undefined;
  for (let step = 0; step < foldersMax; step += 1) {
    const manifest = Option.flatMap(readText(join(folder, "package.json")), readManifest);
    if (Option.isSome(manifest) && manifest.value.name === name) return manifest.value.version;
    folder = dirname(folder);
  }
  return undefined;
};

/** Finds the folder of a package. Some installed packages have no entry for `require`, so their versions are omitted. */
const folderOf = (name: string, base: string): string | undefined => {
  try {
    return dirname(requireFor(name, base).resolve(name));
  } catch {
    return undefined;
  }
};

/** Reads a manifest. Returns none if the folder has no manifest; the caller then continues with the parent folder. */
const readText = (file: string): Option.Option<string> => {
  try {
    return Option.some(readFileSync(file, "utf8"));
  } catch {
    return Option.none();
  }
};
