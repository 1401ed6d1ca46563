/**
 * Finds pinned packages with a newer version. A table of outdated versions proves nothing about what people install today.
 */

/** The pinned packages with a newer version, as far as known. */
export interface Successors {
  /** One sentence for each package with a newer version. */
  readonly found: ReadonlyArray<string>;
  /** One sentence if the registry could not be asked about a package. */
  readonly unknown: string | undefined;
}

/** The sources of versions. */
export interface Versions {
  readonly pinned: (name: string) => string | undefined;
  /** Undefined if the registry could not be asked. */
  readonly newest: (name: string) => string | undefined;
}

/** Compares pinned packages with their newest versions. Stops at the first package that the registry cannot be asked about. */
export const successorsOf = (packages: ReadonlyArray<string>, { newest, pinned }: Versions): Successors => {
  const found: Array<string> = [];
  for (const name of packages) {
    const version = newest(name);
    if (version === undefined)
      return {
        found,
        unknown: `cannot look up the newest version of ${name}: without a network, newer versions of the pinned agents stay unknown`,
      };
    const before = pinned(name);
    if (version !== before)
      found.push(
        `${name} is pinned at ${before}, and ${version} is available: run it with --newest, then pin it in scripts/agents`,
      );
  }
  return { found, unknown: undefined };
};
