/**
 * Keeps what equal processes know together in two tables beside the runs.
 *
 * Each operation is one statement, a transaction by itself: a row that two processes change at the same time is changed by one
 * after the other, and nothing is undone for that. They are no part of the transactions that write runs.
 */
import * as Effect from "effect/Effect";
import type * as Redacted from "effect/Redacted";
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

/** What the facts need of the store. */
export interface FactsOptions {
  readonly database: SqlDatabase;
  readonly node: string;
  readonly secret: Redacted.Redacted<string>;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number;
  readonly listeners: Listeners;
  /** Whether words come as they are said. */
  readonly hears: () => boolean;
  /** Says a word to every process once the statement `told` has changed something; undefined where there is no way to. */
  readonly says: ((told: Fragment, word: string) => Fragment) | undefined;
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

/** The facts of a store. */
export const make = (options: FactsOptions): SharedFacts => {
  const { database, hears, listeners, node, now } = options;
  const { dialect, facts, sql } = database.tables;
  const time = () => dialect.time(now());
  const found = () => sql`key, value, node, stamp, ${time()} - put_at AS age_ms, until - ${time()} AS left_ms`;
  return {
    node,
    secret: options.secret,
    put: (kind, key, value, keepMs) =>
      database.once(
        Effect.suspend(() => {
          const put = sql`INSERT INTO ${facts} (kind, key, value, node, stamp, put_at, until)
            VALUES (${kind}, ${key}, ${value}, ${node}, ${globalThis.crypto.randomUUID()}, ${time()}, ${time()} + ${keepMs})
            ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, node = excluded.node, stamp = excluded.stamp,
              put_at = excluded.put_at, until = excluded.until RETURNING 1 AS changed`;
          const { says } = options;
          return Effect.asVoid(isTold(kind) && says !== undefined ? sql`${says(put, kind)}` : put);
        }),
      ),
    find: (kind, key) =>
      database.once(
        Effect.map(
          sql<FactRow>`SELECT ${found()} FROM ${facts} WHERE kind = ${kind} AND key = ${key} AND until > ${time()}`,
          ([row]) => (row === undefined ? undefined : factOf(row)),
        ),
      ),
    take: (kind, key) =>
      Effect.suspend(() => database.once(taking(options, kind, key, globalThis.crypto.randomUUID()))),
    all: (kind) =>
      database.once(
        Effect.map(
          sql<FactRow>`SELECT ${found()} FROM ${facts} WHERE kind = ${kind} AND until > ${time()}
            ORDER BY put_at DESC LIMIT ${factsMax}`,
          (rows) => rows.map(factOf),
        ),
      ),
    spend: (group, spent, keepMs) =>
      Effect.suspend(() => database.once(spending(options, group, spent, keepMs, globalThis.crypto.randomUUID()))),
    draw: (bucket, count, size) => Effect.suspend(() => database.once(drawing(options, bucket, count, size))),
    hears,
    on: listeners.on,
  };
};

/**
 * Takes a fact away. A server keeps what was taken under a key, for as long as the fact itself was to be kept.
 *
 * @param taken what is taken: said again, it is the same fact. The word of a file is never lost
 */
const taking = ({ database, now }: FactsOptions, kind: FactKind, key: string, taken: string) => {
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
      // What was said before may have been under way still: this statement waited for it, and sees what was there before.
      Effect.flatMap((rows) =>
        rows.length === 0 && tries > 1 ? sql<Omit<FactRow, "key">>`${kept}` : Effect.succeed(rows),
      ),
      Effect.map(([row]) => (row === undefined || Number(row.left_ms) <= 0 ? undefined : factOf({ ...row, key }))),
    );
  });
};

/** How long it is known what was counted, in milliseconds: longer than it is said again where a server's word of it is lost. */
const countedMs = 60_000;

/**
 * Numbers of the database may come as text. A group that was idle for its time begins anew.
 *
 * @param key what is counted: said again, it counts once. The word of a file is never lost
 */
const spending = (
  { database, node, now }: FactsOptions,
  group: string,
  { retries, tokens }: { readonly retries: number; readonly tokens: number },
  keepMs: number,
  key: string,
) => {
  const { dialect, facts, groups, sql } = database.tables;
  return Effect.suspend(() => {
    const [time, name] = [dialect.time(now()), groups];
    const grown = (column: "retries" | "tokens") => {
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
        ON CONFLICT (id) DO UPDATE SET retries = ${grown("retries")}, tokens = ${grown("tokens")}, until = excluded.until
        RETURNING retries, tokens`,
      ([row]) => ({ retries: Number(row?.retries ?? 0), tokens: Number(row?.tokens ?? 0) }),
    );
  });
};

/** How long a bucket is kept that nobody draws from, in milliseconds: it is full again long before. */
const bucketMs = 3_600_000;

/**
 * A bucket is a row of the groups: its tokens are those that were left when it was last drawn from, a while before its end. So a clock that
 * was set back gives none for the time of one draw, and the next one fills it again. What a server loses its word of may count twice: a draw
 * lets one retry less go then, and a token that was put back one more. Either is over in a tenth of a second.
 */
const drawing = (
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

/** The process that drives a run, as its lease names it; undefined where none does, or its lease was taken from it. */
export const driver = (database: SqlDatabase, runId: string): Effect.Effect<string | undefined, RecorderError> => {
  const { leases, runs, sql } = database.tables;
  return database.once(
    Effect.map(
      sql<{ readonly label: string }>`SELECT l.label FROM ${runs} r JOIN ${leases} l ON l.id = r.owner
        WHERE r.run_id = ${runId} AND r.ended_at IS NULL AND l.fenced = 0`,
      ([row]) => row?.label,
    ),
  );
};

/** Forgets what is over. */
export const forget = ({
  database,
  now,
}: Pick<FactsOptions, "database" | "now">): Effect.Effect<void, RecorderError> => {
  const { dialect, facts, groups, sql } = database.tables;
  return Effect.suspend(() => {
    const time = dialect.time(now());
    return Effect.andThen(
      database.once(sql`DELETE FROM ${facts} WHERE until <= ${time}`),
      Effect.asVoid(database.once(sql`DELETE FROM ${groups} WHERE until <= ${time}`)),
    );
  });
};
