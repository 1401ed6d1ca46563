/** Checks a client's server once: fails on missing requirements, and warns about settings that only the server's operator can change. */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { RecorderError } from "../../RecorderError.ts";

/** Limits requested of the server for connections of this program, in milliseconds. */
export interface ServerLimits {
  readonly lock_timeout: number;
  readonly statement_timeout: number;
  readonly idle_in_transaction_session_timeout: number;
}

/**
 * Oldest supported server, as its version number. Older servers lack functions that the statements use (`pg_current_xact_id`,
 * `pg_xact_status`).
 */
const oldestVersion = 130_000;

/** Divisor of a version number that yields the major version. */
const majorVersion = 10_000;

/**
 * Checks that the server can store runs.
 *
 * Fails if the server is too old. Warns if it acknowledges commits before they are on disk, or if its connections have longer limits than
 * requested, for example because a pooler drops the request.
 *
 * @param place name of the database for messages
 * @param limits limits that the connections requested; undefined for a program's own client
 */
export const checkServer = (
  sql: SqlClient,
  place: string,
  limits: ServerLimits | undefined,
): Effect.Effect<void, RecorderError | SqlError> => {
  const names = ["server_version_num", "synchronous_commit", ...Object.keys(limits ?? {})];
  const looked = sql<Setting>`SELECT name, setting FROM pg_settings WHERE name IN ${sql.in(names)}`;
  return Effect.flatMap(looked, (settings) => {
    const of = (name: string) => settings.find((it) => it.name === name)?.setting;
    const version = Number(of("server_version_num"));
    if (!(version >= oldestVersion)) return Effect.fail(tooOldError(place, version));
    return Effect.forEach(warnings(of, limits), (it) => Effect.logWarning(`${place} ${it}`), { discard: true });
  });
};

interface Setting {
  readonly name: string;
  /** The current value. Durations are in milliseconds; 0 means no limit. */
  readonly setting: string;
}

const warnings = (
  of: (name: string) => string | undefined,
  limits: ServerLimits | undefined,
): ReadonlyArray<string> => {
  const longer = Object.entries(limits ?? {}).flatMap(([name, asked]) => {
    const ms = Number(of(name) ?? 0);
    return ms > 0 && ms <= asked ? [] : [`${name} ${ms === 0 ? "none" : ms} instead of ${asked}`];
  });
  return [
    ...(longer.length === 0
      ? []
      : [
          `gives connections longer timeouts than we asked for (ms: ${longer.join(", ")}), for example because a pooler drops them. A stalled process may then block all others. Set the timeouts on the role: docs/postgres.md#poolers`,
        ]),
    ...(of("synchronous_commit") === "off"
      ? [
          "acknowledges writes before they are on disk (synchronous_commit is off). A crash of the server may lose entries that a run relies on: docs/postgres.md lists them",
        ]
      : []),
  ];
};

const tooOldError = (place: string, version: number): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `${place} is on a server of ${Number.isFinite(version) ? `version ${Math.floor(version / majorVersion)}` : "no known version"}, but the recorder needs PostgreSQL ${oldestVersion / majorVersion} or newer`,
  });
