/** Plays the worlds of many seeds, judges each, and shrinks a world that breaks a law. */
import { judge, type Violation } from "./Judge.ts";
import { type Played, play } from "./Play.ts";
import { smaller } from "./Shrink.ts";
import { draw, type World } from "./World.ts";

/** A world that was played and judged. */
export interface Judged extends Played {
  readonly seed: number;
  readonly violations: ReadonlyArray<Violation>;
}

/** Plays the world of a seed. */
export const playSeed = (seed: number): Promise<Judged> => judged(draw(seed), seed);

const judged = async (world: World, seed: number): Promise<Judged> => {
  const played = await play(world, seed);
  return { ...played, seed, violations: judge(played.history) };
};

/** Describes a violation: the seed, what was found, and the smallest world that still breaks the law, with its story. */
export const report = async ({ history, seed, violations }: Judged): Promise<string> => {
  const laws = new Set(violations.map(({ law }) => law));
  const smallest = await smaller(history.world, async (world) =>
    (await judged(world, seed)).violations.some(({ law }) => laws.has(law)),
  );
  const { digest, story, violations: left } = await judged(smallest, seed);
  return [
    `seed ${seed}: ${violations.map(({ found, law }) => `${law}: ${found}`).join("; ")}`,
    `the smallest world (${digest}): ${left.map(({ found, law }) => `${law}: ${found}`).join("; ")}`,
    JSON.stringify(smallest),
    ...story.map((line) => `  ${line}`),
    `again: npm run simulate -- --gateway --seed ${seed} --runs 1 --trace`,
  ].join("\n");
};
