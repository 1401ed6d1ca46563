/**
 * Describes the paths of the gateway's process, as its API and its metrics tell them.
 */
import { Schema } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import type { PathStatus } from "../../paths/Paths.ts";
import { type PathStanding, pathStanding } from "../../story/PathWords.ts";

/** A wait that a provider has announced, and whose requests it holds. */
const PathCooldown = Schema.Struct({
  model: Schema.optionalKey(Label),
  /** The first eight characters of a digest of the credential; left out where it holds for every one. */
  credential: Schema.optionalKey(Label),
  kind: Schema.Literals(["rate_limited", "overloaded"]),
  /** Wall clock, milliseconds since the epoch. */
  until: Milliseconds,
});

/** The way to one origin. Times are wall clock, milliseconds since the epoch. */
export const PathView = Schema.Struct({
  /** Its name: scheme, host and port, with the proxy in front. */
  path: Schema.String,
  /** `returning`: it is back, and waiting runs are let go in waves. */
  state: Schema.Literals(["up", "down", "returning"]),
  since: Milliseconds,
  /** Whether it was ever reached. A path that never was is not waited for. */
  reached: Schema.Boolean,
  /** Probes since it went down. */
  probes: Schema.Natural,
  next_probe_at: Schema.optionalKey(Milliseconds),
  /** The code of the last failed probe or connect. */
  code: Schema.optionalKey(Label),
  /** Runs that wait for it, or for a cooldown on it. */
  waiting: Schema.Natural,
  cooldowns: Schema.Array(PathCooldown),
});
export type PathView = typeof PathView.Type;

/** A path as the API tells it. */
export const pathView = ({ code, nextProbeAt, ...status }: PathStatus): PathView => ({
  ...status,
  ...(nextProbeAt === undefined ? {} : { next_probe_at: nextProbeAt }),
  ...(code === undefined ? {} : { code }),
});

/** What stands first: what is down, then what returns, then what cools. Equal ones stand by name. */
const ranks: Readonly<Record<PathStanding, number>> = { down: 0, returning: 1, cooling: 2, up: 3 };

/** Paths in the order in which a person wants to see them. */
export const inOrder = (paths: ReadonlyArray<PathStatus>): ReadonlyArray<PathStatus> =>
  paths.toSorted((a, b) => ranks[pathStanding(a)] - ranks[pathStanding(b)] || a.path.localeCompare(b.path));

/** Whether anybody waits for a path, or would. */
export const isDisturbed = (path: PathStatus): boolean => pathStanding(path) !== "up" || path.waiting > 0;

/** Everything about paths that a reader of the page has to see anew when it changes. */
export const pathsPrint = (paths: ReadonlyArray<PathStatus>): string =>
  paths
    .filter(isDisturbed)
    .map(({ code, cooldowns, path, state, waiting }) =>
      JSON.stringify([path, state, code, waiting, cooldowns.map(({ kind, model, until }) => [kind, model, until])]),
    )
    .join();
