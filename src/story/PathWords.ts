/**
 * Holds the words that a person reads for the paths of a process, and for what a run waits for.
 */
import type { RunRecord, RunWait } from "../recorder/RunRecord.ts";
import { lasting, relative } from "./Times.ts";
import type { Tone } from "./Words.ts";

/** How a path stands for a person. `cooling`: it can be reached, and its provider has asked somebody to wait. */
export type PathStanding = "up" | "cooling" | "returning" | "down";

/** The word, the mark and the colour of each, and what it means. */
export const pathStandings: Readonly<
  Record<PathStanding, { readonly word: string; readonly mark: string; readonly tone: Tone; readonly means: string }>
> = {
  up: { word: "up", mark: "✓", tone: "good", means: "Requests go out at once." },
  cooling: { word: "cooling", mark: "‖", tone: "ask", means: "The provider has asked to be left alone for a while." },
  returning: {
    word: "returning",
    mark: "↑",
    tone: "run",
    means: "It can be reached again, and runs are let go in waves.",
  },
  down: { word: "down", mark: "✕", tone: "bad", means: "No connection can be made." },
};

/** What the standing of a path is read from. */
export interface PathFacts {
  readonly state: "up" | "down" | "returning";
  readonly cooldowns: ReadonlyArray<unknown>;
}

/** How a path stands. */
export const pathStanding = ({ cooldowns, state }: PathFacts): PathStanding =>
  state === "up" && cooldowns.length > 0 ? "cooling" : state;

/** Why no connection can be made, in plain words, by its code. */
export const connectWords: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "nothing listens at its address"],
  ["ENOTFOUND", "its name is not known"],
  ["EAI_AGAIN", "its name could not be looked up"],
  ["ETIMEDOUT", "it does not answer"],
  ["UND_ERR_CONNECT_TIMEOUT", "it does not answer"],
  ["probe_timeout", "it does not answer"],
  ["ENETUNREACH", "there is no network"],
  ["ENETDOWN", "there is no network"],
  ["EHOSTUNREACH", "there is no route to it"],
  ["ECONNRESET", "it breaks connections off"],
  ["path_lost", "it fell silent"],
]);

const ofCertificate = /CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|ERR_TLS/;

/** Why no connection can be made; the code itself where there are no words for it. */
export const whyDown = (code: string): string =>
  connectWords.get(code) ??
  (ofCertificate.test(code) ? "somebody else answers in its place, such as the sign-in page of a network" : code);

/** What a cooldown is, by what the provider said. */
export const cooldownWords: Readonly<Record<"rate_limited" | "overloaded", string>> = {
  rate_limited: "too many requests",
  overloaded: "overloaded",
};

/** What a run waits for before its next request goes out. */
export interface WaitStory {
  /** `waits for the way to api.openai.com`. */
  readonly said: string;
  /** How long it has waited now, and until when at the latest. */
  readonly times: string;
}

/**
 * What a run waits for; undefined where it does not.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const waitOf = ({ provider, state, waiting }: RunRecord, now: number): WaitStory | undefined => {
  if (waiting === undefined || state !== "live") return undefined;
  const until = waiting.until === undefined ? "" : `, until ${relative(waiting.until, now)} at the latest`;
  return { said: waitingFor(waiting, provider.id), times: `for ${lasting(Math.max(0, now - waiting.since))}${until}` };
};

const waitingFor = (wait: RunWait, provider: string): string =>
  wait.for === "path" ? `waits for the way to ${provider}` : `waits, as ${provider} has asked`;
