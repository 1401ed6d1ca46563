/**
 * Finds the SDKs under test. They are installed by the user and are not dependencies of this package.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Effect, Option, Runtime, Schema } from "effect";

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

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && /^(?:ERR_)?MODULE_NOT_FOUND$/.test(String(cause.code));

const Manifest = Schema.fromJsonString(Schema.Struct({ name: Schema.String, version: Schema.String }));
const readManifest = Schema.decodeOption(Manifest);

/** Maximum folders to search between a package's entry and its manifest. */
const foldersMax = 8;

/** Maps package names to their installed versions, without packages whose manifest cannot be found. */
export const versionsOf = (packages: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    packages.flatMap((name) => {
      const version = versionOf(name);
      return version === undefined ? [] : [[name, version]];
    }),
  );

const versionOf = (name: string): string | undefined => {
  let folder = folderOf(name);
  if (folder === undefined) return undefined;
  for (let step = 0; step < foldersMax; step += 1) {
    const manifest = Option.flatMap(readText(join(folder, "package.json")), readManifest);
    if (Option.isSome(manifest) && manifest.value.name === name) return manifest.value.version;
    folder = dirname(folder);
  }
  return undefined;
};

/** Finds the folder of a package. Some installed packages have no entry for `require`, so their versions are omitted. */
const folderOf = (name: string): string | undefined => {
  try {
    return dirname(createRequire(import.meta.url).resolve(name));
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
