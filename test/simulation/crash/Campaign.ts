/** Plays the stories of many seeds and judges each. One in eight has two processes at once over one file. */
import { Effect, Layer, Random, References } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { hashOf } from "../../Hashes.ts";
import { randomOf } from "../Simulation.ts";
import { live } from "./Lives.ts";
import { storyOf } from "./Story.ts";
import { problemsOf } from "./StoryJudge.ts";
import { twinProblems } from "./TwinJudge.ts";
import { twinStoryOf } from "./TwinStory.ts";
import { liveTwins } from "./Twins.ts";

/** The result of one seed. */
export interface Judged {
  readonly seed: number;
  readonly problems: ReadonlyArray<string>;
  /** The generated story, as JSON. */
  readonly story: string;
  readonly log: ReadonlyArray<string>;
  readonly deaths: number;
  readonly resumes: number;
  readonly completed: boolean;
  /** The run's end, or its state without one. */
  readonly end: string;
  /** A line that changes if anything on record, on screen or in the log changes. */
  readonly digest: string;
}

/** One story out of this many has two processes at once. */
const twinEvery = 8;

/** Plays the story of a seed and judges it. */
export const playStory = (seed: number): Promise<Judged> => (seed % twinEvery === 0 ? playTwins(seed) : playOne(seed));

/** The totals of many stories. */
export interface Stories {
  readonly deaths: number;
  readonly completed: number;
  readonly resumes: number;
  /** A line for each story. */
  readonly digests: ReadonlyArray<string>;
}

/** Plays the stories of this many seeds. One that violates an invariant fails the campaign and is reported. */
export const playStories = async (runs: number, from: number): Promise<Stories> => {
  let [deaths, completed, resumes] = [0, 0, 0];
  const broken: Array<string> = [];
  const digests: Array<string> = [];
  for (let each = from; each < from + runs; each += 1) {
    const judged = await playStory(each);
    if (judged.problems.length > 0) broken.push(told(judged));
    digests.push(judged.digest);
    deaths += judged.deaths;
    resumes += judged.resumes;
    if (judged.completed) completed += 1;
  }
  if (broken.length > 0) throw new Error(`${broken.length} of ${runs} seeds; the first:\n${broken[0]}`);
  return { deaths, completed, digests, resumes };
};

const playOne = async (seed: number): Promise<Judged> => {
  const story = storyOf(seed);
  const lived = await Effect.runPromise(
    live(story).pipe(
      Effect.provide(Layer.fresh(Layer.provideMerge(RunRecorder.layerMemory(), TestClock.layer()))),
      Effect.provideService(References.MinimumLogLevel, "None"),
      Effect.provideService(Random.Random, randomOf(seed)),
    ),
  );
  const { deaths, record, world } = lived;
  return {
    seed,
    problems: problemsOf(lived),
    story: JSON.stringify(story),
    log: world.log,
    deaths,
    resumes: record?.resumes ?? 0,
    completed: record?.end?.state === "completed",
    end: record?.end?.reason ?? record?.state ?? "nothing on record",
    digest: `${seed}: ${record?.end?.reason ?? record?.state}, log ${hashOf(world.log)}, record ${hashOf(record)}, screen ${hashOf(world.screen)}`,
  };
};

const playTwins = async (seed: number): Promise<Judged> => {
  const story = twinStoryOf(seed);
  const lived = await Effect.runPromise(
    liveTwins(story).pipe(
      // The machine may be slow, and TestClock still waits for the fibers that it has woken.
      Effect.provide(Layer.fresh(TestClock.layer({ warningDelay: "1 minute" }))),
      Effect.provideService(References.MinimumLogLevel, "None"),
      Effect.provideService(Random.Random, randomOf(seed)),
    ),
  );
  const { record, world } = lived;
  return {
    seed,
    problems: twinProblems(lived),
    story: JSON.stringify(story),
    log: world.log,
    deaths: story.twins.flatMap(({ stops }) => stops).filter(({ ms }) => ms === "for_ever").length,
    resumes: record?.resumes ?? 0,
    completed: record?.end?.state === "completed",
    end: record?.end?.reason ?? record?.state ?? "nothing on record",
    digest: `${seed}: ${record?.end?.reason ?? record?.state}, log ${hashOf(world.log)}, record ${hashOf(record)}, screen ${hashOf(world.screen)}`,
  };
};

/** Describes a failure for a person: the seed, the problems, the story and its log. */
export const told = ({ log, problems, seed, story }: Judged): string =>
  [`seed ${seed}:`, ...problems, story, ...log].join("\n  ");
