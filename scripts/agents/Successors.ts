/**
 * Says which pinned packages have a successor: a table of yesterday's versions proves nothing of what people install today.
 */

/** The pinned packages with a successor, and whether that is known at all. */
export interface Successors {
  /** One sentence for each package that has a successor. */
  readonly found: ReadonlyArray<string>;
  /** One sentence, if the registry could not be asked about a package. */
  readonly unknown: string | undefined;
}

/** What is known of versions. */
export interface Versions {
  readonly pinned: (name: string) => string | undefined;
  /** Undefined: the registry could not be asked. */
  readonly newest: (name: string) => string | undefined;
}

/** Compares pinned packages with their newest versions. After the first that cannot be asked about, no other one is. */
export const successorsOf = (packages: ReadonlyArray<string>, { newest, pinned }: Versions): Successors => {
  const found: Array<string> = [];
  for (const name of packages) {
    const version = newest(name);
    if (version === undefined)
      return {
        found,
        unknown: `cannot ask for the newest version of ${name}: without a network, successors of the pinned versions stay unknown`,
      };
    const before = pinned(name);
    if (version !== before)
      found.push(
        `${name} is pinned at ${before} and has the successor ${version}: run it with --newest, then pin it in scripts/agents`,
      );
  }
  return { found, unknown: undefined };
};
