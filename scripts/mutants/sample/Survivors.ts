/**
 * Compares the outcome of a sample with the explained survivors, and reports both.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Schema } from "effect";
import { type Mutation, mutationsOf } from "./Mutations.ts";

/** The folders of `src` that decide about recovery. */
export const rooms = ["domain", "facts", "policy", "failure", "seam", "runtime", "stages"] as const;

/** Lists every mutation of the rooms. */
export const allMutations = (root: string): ReadonlyArray<Mutation> =>
  rooms.flatMap((room) =>
    globSync(`src/${room}/**/*.ts`, { cwd: root })
      .sort()
      .flatMap((path) => mutationsOf(path, readFileSync(join(root, path), "utf8"))),
  );

/** The outcome of a mutation. */
export interface Sampled {
  readonly mutation: Mutation;
  /**
   * `ill-typed`: the compiler rejects it, so it can never run and does not count. `error`: some tests could not run, so the outcome is
   * unknown and counts as survived.
   */
  readonly state: "killed" | "survived" | "ill-typed" | "error";
  /** The test or simulation that noticed it, or the reason why the outcome is unknown. */
  readonly by?: string;
  readonly seconds: number;
}

/** A surviving mutation, and the reason why no test can or need notice it. */
const Explained = Schema.Struct({
  path: Schema.NonEmptyString,
  /** The text of the line that it starts on. */
  on: Schema.NonEmptyString,
  find: Schema.NonEmptyString,
  replace: Schema.String,
  why: Schema.NonEmptyString,
});

/** Reads the explained survivors from `survivors.jsonl`. */
export const explanations = (root: string): ReadonlyArray<typeof Explained.Type> => {
  const file = join(root, "scripts/mutants/sample/survivors.jsonl");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => Schema.decodeUnknownSync(Schema.fromJsonString(Explained))(line));
};

/** True if the explanation belongs to the mutation. */
export const explains = (it: typeof Explained.Type, { find, on, path, replace }: Mutation): boolean =>
  it.path === path && it.on === on && it.find === find && it.replace === replace;

/** The score of a sample and its report. */
export interface SampleReport {
  /** Percentage of the mutations that compile. */
  readonly killedShare: number;
  /** Number of survivors without an explanation, including mutations with an unknown outcome. */
  readonly unexplained: number;
  readonly text: string;
}

/**
 * Scores a sample and lists every survivor with its reason.
 *
 * @param total number of all mutations, including those outside the sample
 */
export const reportSample = (
  results: ReadonlyArray<Sampled>,
  total: number,
  known: ReadonlyArray<typeof Explained.Type>,
): SampleReport => {
  const tried = results.filter(({ state }) => state !== "ill-typed");
  const killed = tried.filter(({ state }) => state === "killed");
  const survivors = tried
    .filter(({ state }) => state !== "killed")
    .map(({ by, mutation, state }) => ({
      mutation,
      why: state === "error" ? by : known.find((it) => explains(it, mutation))?.why,
      word: state === "error" ? "ERROR" : known.some((it) => explains(it, mutation)) ? "EXPLAINED" : "SURVIVED",
    }));
  const lines = survivors.map(
    ({ mutation: { find, line, operator, path, replace }, why, word }) =>
      `${word}  ${path}:${line} ${operator}: ${find} → ${replace}\n    ${why ?? "not explained"}`,
  );
  const rows = rooms.map((room) => {
    const isOwn = ({ mutation }: Sampled) => mutation.path.startsWith(`src/${room}/`);
    return `  ${room.padEnd(8)} ${killed.filter(isOwn).length} of ${tried.filter(isOwn).length}`;
  });
  const killedShare = tried.length === 0 ? 0 : (100 * killed.length) / tried.length;
  const unexplained = survivors.filter(({ word }) => word !== "EXPLAINED").length;
  const sums = [
    `${results.length} of ${total} mutations, ${results.length - tried.length} of them do not compile`,
    `${tried.length} tried: ${killed.length} killed (${killedShare.toFixed(1)} %), ${survivors.length} survived, ${unexplained} without an explanation`,
  ];
  return { killedShare, unexplained, text: [...lines, ...rows, ...sums].join("\n") };
};
