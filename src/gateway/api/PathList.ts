/**
 * Describes the paths of the gateway's process for the API and the metrics.
 */
import { Schema } from "effect";
import { Label, Milliseconds } from "../../domain/Limits.ts";
import type { PathStatus } from "../../paths/Paths.ts";
import { type PathStanding, pathStanding } from "../../story/PathWords.ts";

/** A wait that a provider has requested and that delays requests to it. */
const PathCooldown = Schema.Struct({
  model: Schema.optionalKey(Label),
  /** First eight characters of a digest of the credential. Missing if the cooldown applies to all credentials. */
  credential: Schema.optionalKey(Label),
  kind: Schema.Literals(["rate_limited", "overloaded"]),
  /** End of the cooldown: wall clock, in milliseconds since the epoch. */
  until: Milliseconds,
});

/** The path to one origin. All times are wall clock, in milliseconds since the epoch. */
export const PathView = Schema.Struct({
  /** Scheme, host and port, followed by `via` and the egress proxy if there is one. */
  path: Schema.String,
  /** `returning`: the path works again, and waiting runs are released in batches. */
  state: Schema.Literals(["up", "down", "returning"]),
  since: Milliseconds,
  /** True if a connection over the path ever succeeded. Requests do not wait for a path that never worked. */
  reached: Schema.Boolean,
  /** Number of probes since the path went down. */
  probes: Schema.Natural,
  next_probe_at: Schema.optionalKey(Milliseconds),
  /** Error code of the last failed probe or connection attempt. */
  code: Schema.optionalKey(Label),
  /** Number of runs that wait for the path, or for a cooldown on it. */
  waiting: Schema.Natural,
  cooldowns: Schema.Array(PathCooldown),
});
export type PathView = typeof PathView.Type;

/** Converts a path to its form in the API. */
export const pathView = ({ code, nextProbeAt, ...status }: PathStatus): PathView => ({
  ...status,
  ...(nextProbeAt === undefined ? {} : { next_probe_at: nextProbeAt }),
  ...(code === undefined ? {} : { code }),
});

/** Sort order of the states. Paths with the same state are sorted by name. */
const ranks: Readonly<Record<PathStanding, number>> = { down: 0, returning: 1, cooling: 2, up: 3 };

/** Sorts paths for display: paths with trouble first. */
export const sortPaths = (paths: ReadonlyArray<PathStatus>): ReadonlyArray<PathStatus> =>
  paths.toSorted((a, b) => ranks[pathStanding(a)] - ranks[pathStanding(b)] || a.path.localeCompare(b.path));

/** True if runs wait for the path, or would wait if they started now. */
export const isDisturbed = (path: PathStatus): boolean => pathStanding(path) !== "up" || path.waiting > 0;

/** Fingerprints the paths. The fingerprint changes whenever the page has to display a change. */
export const pathsPrint = (paths: ReadonlyArray<PathStatus>): string =>
  paths
    .filter(isDisturbed)
    .map(({ code, cooldowns, path, state, waiting }) =>
      JSON.stringify([path, state, code, waiting, cooldowns.map(({ kind, model, until }) => [kind, model, until])]),
    )
    .join();
