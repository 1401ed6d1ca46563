/**
 * Tries many mutations in one run of the tests. Most mutations that reach this point survive, so the quick suite runs once with all of
 * them, and a file that fails is searched for the mutations that cause the failure.
 *
 * A mutation can hide the effect of another, so this may count too many survivors. It never counts too many kills, because a kill is a
 * failure with that mutation alone.
 */
import { sitesOf, withoutOverlaps } from "./Apply.ts";
import type { Killers } from "./Killers.ts";
import type { Mutation } from "./Mutations.ts";

/** Number of test files per start of the test runner. */
const batchSize = 20;

/** Time limits of a batch and of a single file, in milliseconds. */
const batchMsMax = 400_000;
const fileMsMax = 90_000;

/** Tries mutations against these test files and calls `onKilled` for each one that is noticed. */
export const tryTogether = async (
  mutations: ReadonlyArray<Mutation>,
  files: ReadonlyArray<string>,
  killers: Killers,
  root: string,
  onKilled: (mutation: Mutation, by: string) => void,
): Promise<void> => {
  const killed = new Set<Mutation>();
  const search = async (group: ReadonlyArray<Mutation>, file: string): Promise<void> => {
    const by = group.length === 0 ? undefined : await killers.findKiller(sitesOf(group, root), [file], fileMsMax);
    const [first] = group;
    if (by === undefined || first === undefined) return;
    if (group.length === 1) {
      killed.add(first);
      onKilled(first, by);
      return;
    }
    const middle = Math.ceil(group.length / 2);
    await search(group.slice(0, middle), file);
    await search(group.slice(middle), file);
  };
  for (const group of withoutOverlaps(mutations)) {
    const left = () => group.filter((it) => !killed.has(it));
    for (let at = 0; at < files.length && left().length > 0; at += batchSize) {
      const batch = files.slice(at, at + batchSize);
      const failing = await killers.findFailing(sitesOf(left(), root), batch, batchMsMax);
      for (const file of failing) await search(left(), file);
      console.error(`together: ${at + batch.length}/${files.length} test files, ${left().length} mutations left`);
    }
  }
};
