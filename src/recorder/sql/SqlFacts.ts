/**
 * Keeps facts that processes share, in two tables next to those of the runs.
 *
 * Each operation is one statement in its own transaction. If two processes change a row concurrently, one waits for the other and neither
 * is rolled back. These statements never join the transactions that write runs.
 */
import * as Effect from "effect/Effect";
import type * as Redacted from "effect/Redacted";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RecorderError } from "../RecorderError.ts";
import type { Listeners } from "../shared/Listeners.ts";
import {
  type BucketSize,
  type Fact,
  type FactKind,
  factsMax,
  type SharedFacts,
  toldKinds,
} from "../shared/SharedFacts.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";

/** The parts of the store that facts need. */
export interface FactsOptions {
  readonly database: SqlDatabase;
  readonly node: string;
  readonly secret: Redacted.Redacted<string>;
  /** Wall clock, in milliseconds since the epoch. */
  readonly now: () => number;
  readonly listeners: Listeners;
  /** True if notifications arrive as they are sent. */
  readonly hasNotifications: () => boolean;
  /** Notifies every process if the statement in `told` changed a row; undefined if the store has no notifications. */
  readonly notify: ((told: Fragment, word: string) => Fragment) | undefined;
}

interface FactRow {
  readonly key: string;
  readonly value: string;
  readonly node: string;
  readonly stamp: string;
  readonly age_ms: number;
  readonly left_ms: number;
}

const factOf = ({ age_ms, key, left_ms, node, stamp, value }: FactRow): Fact => ({
  ...{ key, value, node, stamp },
  ageMs: Math.max(0, Number(age_ms)),
  leftMs: Number(left_ms),
});

const isTold = (kind: FactKind): boolean => toldKinds.some((it) => it === kind);

/** Creates the shared facts of a store. */
export const make = (options: FactsOptions): SharedFacts => {
  const { database, hasNotifications: hears, listeners, node, now } = options;
  const { dialect, facts, sql } = database.tables;
  const time = () => dialect.time(now());
  const factColumns = () => sql`key, value, node, stamp, ${time()} - put_at AS age_ms, until - ${time()} AS left_ms`;
  return {
    node,
    secret: options.secret,
    put: (kind, key, value, keepMs) =>
      database.execute(
        Effect.suspend(() => {
          const put = sql`INSERT INTO ${facts} (kind, key, value, node, stamp, put_at, until)
            VALUES (${kind}, ${key}, ${value}, ${node}, ${globalThis.crypto.randomUUID()}, ${time()}, ${time()} + ${keepMs})
            ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, node = excluded.node, stamp = excluded.stamp,
              put_at = excluded.put_at, until = excluded.until RETURNING 1 AS changed`;
          const { notify } = options;
          return Effect.asVoid(isTold(kind) && notify !== undefined ? sql`${notify(put, kind)}` : put);
        }),
      ),
    find: (kind, key) =>
      database.execute(
        Effect.map(
          sql<FactRow>`SELECT ${factColumns()} FROM ${facts} WHERE kind = ${kind} AND key = ${key} AND until > ${time()}`,
          ([row]) => (row === undefined ? undefined : factOf(row)),
        ),
      ),
    take: (kind, key) =>
      Effect.suspend(() => database.execute(takeFact(options, kind, key, globalThis.crypto.randomUUID()))),
    all: (kind) =>
      database.execute(
        Effect.map(
          sql<FactRow>`SELECT ${factColumns()} FROM ${facts} WHERE kind = ${kind} AND until > ${time()}
            ORDER BY put_at DESC LIMIT ${factsMax}`,
          (rows) => rows.map(factOf),
        ),
      ),
    spend: (group, spent, keepMs) =>
      Effect.suspend(() =>
        database.execute(addSpending(options, group, spent, keepMs, globalThis.crypto.randomUUID())),
      ),
    draw: (bucket, count, size) => Effect.suspend(() => database.execute(drawTokens(options, bucket, count, size))),
    hasNotifications: hears,
    on: listeners.on,
  };
};

/**
 * Deletes a fact and returns it. A server remembers the result until the fact would have expired.
 *
 * @param taken idempotency key for retries on a server. A file does not need it, because it always reports the result of a statement
 */
const takeFact = ({ database, now }: FactsOptions, kind: FactKind, key: string, taken: string) => {
  const { dialect, facts, sql } = database.tables;
  let tries = 0;
  return Effect.suspend(() => {
    tries += 1;
    const time = dialect.time(now());
    const found = sql`value, node, stamp, ${time} - put_at AS age_ms, until - ${time} AS left_ms`;
    const removed = sql`DELETE FROM ${facts} WHERE kind = ${kind} AND key = ${key}`;
    const kept = sql`SELECT ${found} FROM ${facts} WHERE kind = 'taken' AND key = ${taken}`;
    const take = sql<Omit<FactRow, "key">>`${
      dialect.name === "sqlite"
        ? sql`${removed} RETURNING ${found}`
        : sql`WITH gone AS (${removed} RETURNING value, node, stamp, put_at, until),
            kept AS (INSERT INTO ${facts} (kind, key, value, node, stamp, put_at, until)
              SELECT 'taken', ${taken}, value, node, stamp, put_at, until FROM gone)
          SELECT ${found} FROM gone UNION ALL ${kept}`
    }`;
    return take.pipe(
      // An earlier try may still have been in flight. This statement waited for that try, but its snapshot is older than the result, so
      // read the result again.
      Effect.flatMap((rows) =>
        rows.length === 0 && tries > 1 ? sql<Omit<FactRow, "key">>`${kept}` : Effect.succeed(rows),
      ),
      Effect.map(([row]) => (row === undefined || Number(row.left_ms) <= 0 ? undefined : factOf({ ...row, key }))),
    );
  });
};

/**
 * Time for which a server remembers that the spending under an idempotency key was added, in milliseconds. It exceeds the time in which a
 * lost statement is retried.
 */
const countedMs = 60_000;

/**
 * Adds to a group's spending. A group that spends nothing for `keepMs` expires and starts from zero. The database may return numbers as
 * text.
 *
 * @param key idempotency key for retries on a server. A file does not need it, because it always reports the result of a statement
 */
const addSpending = (
  { database, node, now }: FactsOptions,
  group: string,
  { retries, tokens }: { readonly retries: number; readonly tokens: number },
  keepMs: number,
  key: string,
) => {
  const { dialect, facts, groups, sql } = database.tables;
  return Effect.suspend(() => {
    const [time, name] = [dialect.time(now()), groups];
    const sumOf = (column: "retries" | "tokens") => {
      const its = sql.literal(column);
      return sql`CASE WHEN ${name}.until > ${time} THEN ${name}.${its} ELSE 0 END + excluded.${its}`;
    };
    const added =
      dialect.name === "sqlite"
        ? sql`INSERT INTO ${groups} (id, retries, tokens, until) VALUES (${group}, ${retries}, ${tokens}, ${time} + ${keepMs})`
        : sql`WITH counted AS (INSERT INTO ${facts} (kind, key, value, node, stamp, put_at, until)
            VALUES ('counted', ${key}, '', ${node}, '', ${time}, ${time} + ${countedMs})
            ON CONFLICT (kind, key) DO NOTHING RETURNING 1)
          INSERT INTO ${groups} (id, retries, tokens, until)
          SELECT ${group}, ${retries}::integer * n, ${tokens}::double precision * n, ${time} + ${keepMs}
          FROM (SELECT count(*)::integer AS n FROM counted) AS c`;
    return Effect.map(
      sql<{ readonly retries: number; readonly tokens: number }>`${added}
        ON CONFLICT (id) DO UPDATE SET retries = ${sumOf("retries")}, tokens = ${sumOf("tokens")}, until = excluded.until
        RETURNING retries, tokens`,
      ([row]) => ({ retries: Number(row?.retries ?? 0), tokens: Number(row?.tokens ?? 0) }),
    );
  });
};

/** Time for which an unused bucket is kept, in milliseconds. The bucket is full again long before that. */
const bucketMs = 3_600_000;

/**
 * Draws from a bucket, which is a row of the groups table. The row holds the tokens left at the last draw; the time of that draw is
 * `bucketMs` before the row's `until`. If a clock is set back, one draw gains no tokens, and the next one refills as usual. If a server's
 * response is lost, a draw may count twice, which permits one retry fewer, or a returned token may count twice, which permits one more.
 * Refilling corrects either within a tenth of a second.
 */
const drawTokens = (
  { database, now }: Pick<FactsOptions, "database" | "now">,
  bucket: string,
  count: number,
  { max, perSecond }: BucketSize,
) => {
  const { dialect, groups, sql } = database.tables;
  return Effect.suspend(() => {
    const [time, name] = [dialect.time(now()), groups];
    const [least, greatest] = (dialect.name === "sqlite" ? ["min", "max"] : ["least", "greatest"]).map((it) =>
      sql.literal(it),
    );
    const came = sql`${greatest}(0, ${time} - ${name}.until + ${bucketMs}) * ${perSecond / 1_000}`;
    return Effect.map(
      sql<{ readonly tokens: number }>`INSERT INTO ${groups} (id, retries, tokens, until)
        VALUES (${`bucket ${bucket}`}, 0, ${max - count}, ${time} + ${bucketMs})
        ON CONFLICT (id) DO UPDATE SET tokens = ${least}(${max}, ${name}.tokens + ${came}) - ${count}, until = excluded.until
        RETURNING tokens`,
      ([row]) => Number(row?.tokens ?? 0),
    );
  });
};

/** Kind of the rows by which the processes that share a SQLite file notice an answered question. */
export const answeredKind = "answered";

/** Announces an answered question within the current transaction. */
export const announceAnswer = (
  { database, now }: Pick<FactsOptions, "database" | "now">,
  runId: string,
  keepMs: number,
): Effect.Effect<void, SqlError> => {
  const { dialect, facts, sql } = database.tables;
  return Effect.suspend(() => {
    const time = dialect.time(now());
    return Effect.andThen(
      sql`DELETE FROM ${facts} WHERE kind = ${answeredKind} AND until <= ${time}`,
      Effect.asVoid(sql`INSERT INTO ${facts} (kind, key, value, node, stamp, put_at, until)
        VALUES (${answeredKind}, ${runId}, '', '', '', ${time}, ${time} + ${keepMs})
        ON CONFLICT (kind, key) DO UPDATE SET put_at = excluded.put_at, until = excluded.until`),
    );
  });
};

/** Lists runs whose questions were answered recently. */
export const listAnswered = (database: SqlDatabase): Effect.Effect<ReadonlyArray<string>, RecorderError> => {
  const { facts, sql } = database.tables;
  return database.execute(
    Effect.map(
      sql<{ readonly key: string }>`SELECT key FROM ${facts} WHERE kind = ${answeredKind}
        ORDER BY put_at DESC LIMIT ${factsMax}`,
      (rows) => rows.map(({ key }) => key),
    ),
  );
};

/** Reads SQLite's `data_version`, which changes when another connection writes to the file. */
export const readDataVersion = (database: SqlDatabase): Effect.Effect<number, RecorderError> =>
  database.execute(
    Effect.map(
      database.tables.sql<{ readonly data_version: number }>`PRAGMA data_version`,
      ([row]) => row?.data_version ?? 0,
    ),
  );

/** Reads, for each kind of fact, a value that changes when a fact of the kind is put. */
export const readMarks = (
  database: SqlDatabase,
  kinds: ReadonlyArray<string>,
): Effect.Effect<ReadonlyMap<string, string>, RecorderError> => {
  const { facts, sql } = database.tables;
  const rows = sql<{ readonly kind: string; readonly mark: string }>`
    SELECT kind, COUNT(*) || ' ' || SUM(CAST(put_at AS INTEGER)) AS mark FROM ${facts} WHERE ${sql.in("kind", kinds)} GROUP BY kind`;
  return database.execute(Effect.map(rows, (all) => new Map(all.map(({ kind, mark }) => [kind, mark]))));
};

/** Returns the display name of the process that owns a run; undefined if no process does, or if the owner's lease is fenced. */
export const findOwner = (database: SqlDatabase, runId: string): Effect.Effect<string | undefined, RecorderError> => {
  const { leases, runs, sql } = database.tables;
  return database.execute(
    Effect.map(
      sql<{ readonly label: string }>`SELECT l.label FROM ${runs} r JOIN ${leases} l ON l.id = r.owner
        WHERE r.run_id = ${runId} AND r.ended_at IS NULL AND l.fenced = 0`,
      ([row]) => row?.label,
    ),
  );
};

/** Deletes expired facts and groups. */
export const forget = ({
  database,
  now,
}: Pick<FactsOptions, "database" | "now">): Effect.Effect<void, RecorderError> => {
  const { dialect, facts, groups, sql } = database.tables;
  return Effect.suspend(() => {
    const time = dialect.time(now());
    return Effect.andThen(
      database.execute(sql`DELETE FROM ${facts} WHERE until <= ${time}`),
      Effect.asVoid(database.execute(sql`DELETE FROM ${groups} WHERE until <= ${time}`)),
    );
  });
};
