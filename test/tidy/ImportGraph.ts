/**
 * Walks the imports between modules.
 */
import type { Import, Source } from "./Sources.ts";

export interface Cycle {
  /** The module of the round that comes first by name, and the line of its import. */
  readonly path: string;
  readonly line: number;
  readonly round: ReadonlyArray<string>;
  /** True if an import of the cycle is erased, so that there is no cycle at run time. */
  readonly typeOnly: boolean;
}

/** The shortest round through each module that comes first in its round. A value cycle is named before a type-only one. */
export const cycles = (sources: ReadonlyArray<Source>): ReadonlyArray<Cycle> =>
  sources.flatMap((source) => {
    const values = roundThrough(sources, source.path, ({ typeOnly }) => !typeOnly);
    const round = values ?? roundThrough(sources, source.path, () => true);
    if (round === undefined || round.some((path) => path < source.path)) return [];
    const line = source.imports.find(({ target }) => target === round[1])?.line ?? 1;
    return [{ path: source.path, line, round, typeOnly: values === undefined }];
  });

/** The modules that load when this one does, itself first. */
export const reachable = (sources: ReadonlyArray<Source>, entry: string): ReadonlyArray<Source> => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const found = new Set<Source>();
  const visit = (path: string): void => {
    const source = byPath.get(path);
    if (source === undefined || found.has(source)) return;
    found.add(source);
    for (const { target, typeOnly } of source.imports) if (target !== undefined && !typeOnly) visit(target);
  };
  visit(entry);
  return [...found];
};

const roundThrough = (
  sources: ReadonlyArray<Source>,
  start: string,
  follows: (imported: Import) => boolean,
): ReadonlyArray<string> | undefined => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const seen = new Set<string>();
  let paths: ReadonlyArray<ReadonlyArray<string>> = [[start]];
  while (paths.length > 0) {
    const longer = paths.flatMap((path) =>
      (byPath.get(path.at(-1) ?? "")?.imports ?? [])
        .filter(follows)
        .flatMap(({ target }) => (target === undefined ? [] : [[...path, target]])),
    );
    const round = longer.find((path) => path.at(-1) === start);
    if (round !== undefined) return round;
    paths = longer.filter((path) => {
      const last = path.at(-1) ?? "";
      return !seen.has(last) && seen.add(last);
    });
  }
  return undefined;
};
