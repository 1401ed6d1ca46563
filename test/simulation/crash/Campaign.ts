/** Lives the stories of many seeds and judges each. */
import { Effect, Layer, References } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { type Lived, live } from "./Lives.ts";
import { storyOf } from "./Story.ts";
import { problemsOf } from "./Verdict.ts";

/** What one seed gave. */
export interface Judged {
  readonly seed: number;
  readonly lived: Lived;
  readonly problems: ReadonlyArray<string>;
}

/** Lives the story of a seed and judges it. */
export const playStory = async (seed: number): Promise<Judged> => {
  const lived = await Effect.runPromise(
    live(storyOf(seed)).pipe(
      Effect.provide(Layer.fresh(Layer.provideMerge(RunRecorder.layerMemory(), TestClock.layer()))),
      Effect.provideService(References.MinimumLogLevel, "None"),
    ),
  );
  return { seed, lived, problems: problemsOf(lived) };
};

/** What a person needs of a failure: the seed, what was found, the story and what happened. */
export const told = ({ lived, problems, seed }: Judged): string =>
  [`seed ${seed}:`, ...problems, JSON.stringify(storyOf(seed)), ...lived.world.log].join("\n  ");
