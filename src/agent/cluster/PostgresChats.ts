/**
 * Keeps the journals of chats in PostgreSQL, where every node reaches them, and lets one owner at a time write: whoever claims a
 * chat raises its epoch, and a line of an earlier epoch is refused by the server in the same statement that would write it.
 *
 * So a process that stood still and wakes up behind a new owner begins no turn, no request and no tool: the agent writes each
 * down before it does it.
 */
import { Effect, Schema, Semaphore } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { inRealTime, monotonicMs, realClock } from "../../recorder/MonotonicTime.ts";
import { AgentError } from "../conversation/AgentError.ts";
import { Entry } from "../conversation/Entry.ts";
import type { Journal } from "../conversation/Journal.ts";

/** Largest journal that is read, in bytes: it is in memory as long as its conversation is. */
export const journalBytesMax = 64 * 1024 * 1024;

/** How long a line that the server did not take is tried again, in milliseconds. Nothing of it is used meanwhile. */
const patienceMsDefault = 8_000;

/** Between two tries, in milliseconds. */
const againMs = 250;

/** A line was not written, so what it says must not be done: the conversation has another owner, or its store is away. */
export class LineRefused extends Schema.TaggedError<LineRefused>()("LineRefused", {
  reason: Schema.Literals(["moved", "store"]),
  message: Schema.String,
}) {}

/** The journals of a store. */
export interface PostgresChats {
  /** Makes this process the owner of a chat, and reads its journal. Every earlier owner writes nothing more. */
  readonly claim: (chat: string, owner: string) => Effect.Effect<Claimed, AgentError>;
  /** Whether a chat was begun. */
  readonly has: (chat: string) => Effect.Effect<boolean, AgentError>;
  /** Whether the claim of an epoch is still the newest one of its chat, and the chat was not forgotten. */
  readonly isClaimed: (chat: string, epoch: number) => Effect.Effect<boolean, AgentError>;
}

/** A chat of this process. */
export interface Claimed {
  readonly journal: Journal;
  readonly epoch: number;
}

const EntryJson = Schema.fromJsonString(Entry);
const encode = Schema.encodeSync(EntryJson);

/** Names of chats, as in a folder: the same name is the same chat wherever it is kept. */
const chatPattern = /^[A-Za-z0-9][\w-]{0,63}$/;

/**
 * Opens the journals of a store.
 *
 * @param prefix what the tables' names begin with
 * @param place the database, as a person knows it
 * @param patienceMs how long a line that the server did not take is tried again; default 8,000
 */
export const make = (
  client: SqlClient,
  prefix: string,
  place: string,
  patienceMs = patienceMsDefault,
): PostgresChats => {
  const tables = tablesOf(client, prefix);
  const { sql } = tables;
  const failed = failedAt(place);
  return {
    isClaimed: (chat, epoch) =>
      Effect.mapError(
        Effect.map(
          sql`SELECT chat FROM ${tables.chats} WHERE chat = ${chat} AND epoch = ${epoch}`,
          (found) => found.length > 0,
        ),
        failed,
      ),
    has: (chat) =>
      Effect.mapError(
        Effect.map(
          sql`SELECT chat FROM ${tables.chats} WHERE chat = ${chat} AND lines > 0`,
          (found) => found.length > 0,
        ),
        failed,
      ),
    claim: (chat, owner) =>
      Effect.gen(function* () {
        if (!chatPattern.test(chat)) {
          return yield* new AgentError({
            reason: "refused",
            message: `chat: expected letters, digits and -, got ${chat}`,
          });
        }
        const { epoch, lines } = yield* Effect.mapError(raised(tables, chat, owner), failed);
        if (lines.bytes > journalBytesMax) {
          const message = `chat ${chat}: expected at most ${journalBytesMax} bytes, got ${lines.bytes}`;
          return yield* new AgentError({ reason: "store", message });
        }
        const read = yield* Effect.mapError(linesOf(tables, chat), failed);
        const entries = yield* Effect.forEach(read, (line, index) =>
          Effect.mapError(entryOf(line), (error) => failed(`chat ${chat}, line ${index + 1}: ${error.message}`)),
        );
        const append = yield* appender({ tables, chat, epoch, place, patienceMs }, lines.count);
        return { epoch, journal: { file: `${place} (chat ${chat})`, entries, append } };
      }),
  };
};

/** The tables of journals. */
export interface Tables {
  readonly sql: SqlClient;
  readonly chats: ReturnType<SqlClient["literal"]>;
  readonly lines: ReturnType<SqlClient["literal"]>;
}

/** Names the tables of journals. */
export const tablesOf = (client: SqlClient, prefix: string): Tables => {
  const sql = client.withoutTransforms();
  return { sql, chats: sql.literal(`${prefix}chats`), lines: sql.literal(`${prefix}chat_lines`) };
};

/** What failed at a store, in its own words. */
export const failedAt =
  (place: string) =>
  (cause: unknown): AgentError =>
    new AgentError({
      reason: "store",
      message: `${place}: ${isSqlError(cause) ? cause.reason.message : String(cause)}`,
    });

/** Reads the lines of a journal, as they stand. */
export const linesOf = ({ lines, sql }: Tables, chat: string): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(sql<{ readonly line: string }>`SELECT line FROM ${lines} WHERE chat = ${chat} ORDER BY n`, (rows) =>
    rows.map(({ line }) => line),
  );

/** Reads one line. */
export const entryOf = Schema.decodeUnknownEffect(EntryJson);

/** Makes the tables where they are missing. */
export const makeTables = Effect.fn("PostgresChats.makeTables")(function* (client: SqlClient, prefix: string) {
  const sql = client.withoutTransforms();
  yield* sql`CREATE TABLE IF NOT EXISTS ${sql.literal(`${prefix}chats`)} (
    chat text PRIMARY KEY, epoch bigint NOT NULL, owner text NOT NULL, lines bigint NOT NULL, bytes bigint NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(), written_at timestamptz NOT NULL DEFAULT now()
  ) WITH (fillfactor = 50)`;
  // Tables of an earlier version. It is looked for first, because the change itself waits for every reader.
  const [old] = yield* sql`SELECT 1 FROM pg_attribute
    WHERE attrelid = ${`${prefix}chats`}::regclass AND attname = 'written_at' AND NOT attisdropped`;
  if (old === undefined)
    yield* sql`ALTER TABLE ${sql.literal(`${prefix}chats`)}
      ADD COLUMN IF NOT EXISTS written_at timestamptz NOT NULL DEFAULT now()`;
  yield* sql`CREATE TABLE IF NOT EXISTS ${sql.literal(`${prefix}chat_lines`)} (
    chat text NOT NULL, n bigint NOT NULL, line text NOT NULL, PRIMARY KEY (chat, n)
  )`;
});

/**
 * Raises the epoch of a chat. The server lets a line that is on its way be written first, or refuses it.
 *
 * The first epoch is the server's time in microseconds: a chat that was forgotten and is begun again has none that an owner
 * before had.
 */
const raised = ({ chats, sql }: Tables, chat: string, owner: string) =>
  Effect.map(
    sql<{ readonly epoch: string; readonly lines: string; readonly bytes: string }>`
      INSERT INTO ${chats} AS mine (chat, epoch, owner, lines, bytes)
        VALUES (${chat}, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ${owner}, 0, 0)
      ON CONFLICT (chat) DO UPDATE SET epoch = mine.epoch + 1, owner = EXCLUDED.owner, claimed_at = now()
      RETURNING epoch::text, lines::text, bytes::text`,
    ([row]) => ({
      epoch: Number(row?.epoch),
      lines: { count: Number(row?.lines), bytes: Number(row?.bytes) },
    }),
  );

interface Owned {
  readonly tables: Tables;
  readonly chat: string;
  readonly epoch: number;
  readonly place: string;
  readonly patienceMs: number;
}

/** Adds lines, one behind the other. A line that is refused is the last: no later one may stand where it was to stand. */
const appender = (owned: Owned, count: number): Effect.Effect<Journal["append"]> =>
  Effect.sync(() => {
    const lock = Semaphore.makeUnsafe(1);
    let lines = count;
    let refused: LineRefused | undefined;
    const add = (entry: Entry) =>
      Effect.gen(function* () {
        if (refused !== undefined) return yield* refused;
        const taken = yield* Effect.result(written(owned, lines + 1, encode(entry)));
        if (taken._tag === "Failure") {
          refused = taken.failure;
          return yield* refused;
        }
        lines += 1;
      });
    // The agent must not act without its record: a line that is refused ends what it was to begin.
    return (entry) => Effect.orDie(Effect.uninterruptible(lock.withPermits(1)(add(entry))));
  });

/** Writes a line, or says why not. A server that is away is waited for; whether it had taken the line then is asked. */
const written = (owned: Owned, n: number, line: string): Effect.Effect<void, LineRefused> =>
  Effect.gen(function* () {
    const from = monotonicMs(realClock);
    while (true) {
      const tried = yield* Effect.result(tryWrite(owned, n, line));
      if (tried._tag === "Success") {
        if (tried.success === "written") return;
        const { epoch } = tried.success;
        const message =
          epoch === undefined
            ? `chat ${owned.chat} was forgotten: nothing more of it is done here`
            : `chat ${owned.chat} has another owner since: its epoch is ${epoch}, and this one's was ${owned.epoch}`;
        return yield* new LineRefused({ reason: "moved", message });
      }
      if (monotonicMs(realClock) - from >= owned.patienceMs) {
        const message = `${owned.place}: ${tried.failure.reason.message}; nothing more of chat ${owned.chat} is done here`;
        return yield* new LineRefused({ reason: "store", message });
      }
      yield* inRealTime(againMs);
    }
  });

const tryWrite = (
  { chat, epoch, tables: { chats, lines, sql } }: Owned,
  n: number,
  line: string,
): Effect.Effect<"written" | { readonly epoch: number | undefined }, SqlError> =>
  Effect.gen(function* () {
    const rows = yield* sql`
      WITH mine AS (
        UPDATE ${chats} SET lines = ${n}, bytes = bytes + ${Buffer.byteLength(line)}, written_at = now()
        WHERE chat = ${chat} AND epoch = ${epoch} AND lines = ${n - 1} RETURNING chat
      )
      INSERT INTO ${lines} (chat, n, line) SELECT chat, ${n}::bigint, ${line} FROM mine RETURNING n`;
    if (rows.length === 1) return "written";
    const [now] = yield* sql<{ readonly epoch: string; readonly lines: string }>`
      SELECT epoch::text, lines::text FROM ${chats} WHERE chat = ${chat}`;
    // An earlier try has written it, and its acknowledgement was lost.
    if (Number(now?.epoch) === epoch && Number(now?.lines) === n) return "written";
    return { epoch: now === undefined ? undefined : Number(now.epoch) };
  });
