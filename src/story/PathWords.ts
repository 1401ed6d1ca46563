/** Holds the words for the paths of a process, and for the waits of a run. */
import type { RunRecord, RunWait } from "../recorder/RunRecord.ts";
import { formatLasting, formatRelative } from "./Times.ts";
import type { Tone } from "./Words.ts";

/** State of a path for a person. `cooling`: the path works, but its provider has asked a run to wait. */
export type PathStanding = "up" | "cooling" | "returning" | "down";

/** Word, symbol, colour and meaning of each state, for display. */
export const pathStandings: Readonly<
  Record<PathStanding, { readonly word: string; readonly mark: string; readonly tone: Tone; readonly means: string }>
> = {
  up: { word: "up", mark: "✓", tone: "good", means: "Requests go out at once." },
  cooling: { word: "cooling", mark: "‖", tone: "ask", means: "The provider has asked us to wait." },
  returning: {
    word: "returning",
    mark: "↑",
    tone: "run",
    means: "The provider can be reached again. Waiting runs are released in groups.",
  },
  down: { word: "down", mark: "✕", tone: "bad", means: "No connection can be made." },
};

/** Facts from which the state of a path is derived. */
export interface PathFacts {
  readonly state: "up" | "down" | "returning";
  readonly cooldowns: ReadonlyArray<unknown>;
}

/** Returns the state of a path for a person. */
export const pathStanding = ({ cooldowns, state }: PathFacts): PathStanding =>
  state === "up" && cooldowns.length > 0 ? "cooling" : state;

/** Reasons why no connection can be made, in plain words, by code. */
export const connectWords: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "nothing listens at its address"],
  ["ENOTFOUND", "its host name is unknown"],
  ["EAI_AGAIN", "its host name could not be looked up"],
  ["ETIMEDOUT", "it does not answer"],
  ["UND_ERR_CONNECT_TIMEOUT", "it does not answer"],
  ["probe_timeout", "it does not answer"],
  ["ENETUNREACH", "there is no network"],
  ["ENETDOWN", "there is no network"],
  ["EHOSTUNREACH", "there is no route to it"],
  ["ECONNRESET", "it resets connections"],
  ["path_lost", "it fell silent"],
]);

const ofCertificate = /CERT|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH|ERR_TLS/;

/** Explains why no connection can be made; returns the code itself if there are no words for it. */
export const describeDown = (code: string): string =>
  connectWords.get(code) ??
  (ofCertificate.test(code) ? "another server answers in its place, for example the sign-in page of a network" : code);

/** Words for a cooldown, by the provider's error. */
export const cooldownWords: Readonly<Record<"rate_limited" | "overloaded", string>> = {
  rate_limited: "too many requests",
  overloaded: "overloaded",
};

/** Wait of a run before its next request is sent. */
export interface WaitStory {
  /** For example `waits until api.openai.com can be reached`. */
  readonly said: string;
  /** Time waited so far, and the latest end of the wait. */
  readonly times: string;
}

/**
 * Describes the wait of a run; undefined if the run does not wait.
 *
 * @param now wall-clock time, in milliseconds since the epoch
 */
export const waitOf = ({ provider, state, waiting }: RunRecord, now: number): WaitStory | undefined => {
  if (waiting === undefined || state !== "live") return undefined;
  const until = waiting.until === undefined ? "" : `, ends ${formatRelative(waiting.until, now)} at the latest`;
  return {
    said: waitingFor(waiting, provider.id),
    times: `for ${formatLasting(Math.max(0, now - waiting.since))}${until}`,
  };
};

const waitingFor = (wait: RunWait, provider: string): string =>
  wait.for === "path" ? `waits until ${provider} can be reached` : `waits at the request of ${provider}`;
