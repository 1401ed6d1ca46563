/**
 * Applies mutations to the text of the sources.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Site } from "../runner/Site.ts";
import type { Mutation } from "./Mutations.ts";

/** Creates the files that mutations change. Mutations of one file must not overlap. */
export const sitesOf = (mutations: ReadonlyArray<Mutation>, root: string): ReadonlyArray<Site> =>
  [...Map.groupBy(mutations, ({ path }) => path)].map(([path, own]) => {
    const original = readFileSync(join(root, path), "utf8");
    // Applied from the end, so that earlier offsets stay valid.
    const mutated = own
      .toSorted((a, b) => b.start - a.start)
      .reduce((text, { end, replace, start }) => text.slice(0, start) + replace + text.slice(end), original);
    return { path, original, mutated };
  });

/** Splits mutations into groups without overlapping changes. */
export const withoutOverlaps = (mutations: ReadonlyArray<Mutation>): ReadonlyArray<ReadonlyArray<Mutation>> => {
  const groups: Array<Array<Mutation>> = [];
  for (const it of mutations) {
    const overlaps = (other: Mutation) => other.path === it.path && other.start < it.end && it.start < other.end;
    const group = groups.find((members) => !members.some(overlaps));
    if (group === undefined) groups.push([it]);
    else group.push(it);
  }
  return groups;
};
