/**
 * Forgets conversations of a store: the journal of each and its claim go in one transaction. An owner that lives has its next line
 * refused, as behind a claim, and a conversation of that name begins anew.
 */
import { Effect, Option } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { AgentError } from "../conversation/AgentError.ts";
import { ChatState } from "../conversation/ChatState.ts";
import { entryOf, failedAt, journalBytesMax, linesOf, type Tables, tablesOf } from "./PostgresChats.ts";

/** Which conversations are meant. */
export interface Meant {
  /** The one of this name, or all of which no line was written and no owner claimed them for so long, in milliseconds. */
  readonly which: { readonly chat: string } | { readonly idleMs: number };
  /** Also those whose newest turn is open, and those whose journal cannot be read. */
  readonly force: boolean;
}

/** What became of them. */
export interface Forgotten {
  /** Conversations that are forgotten. */
  readonly chats: number;
  /** Lines of their journals. */
  readonly lines: number;
  /** Conversations that stay, because their newest turn is open or cannot be told: how many, and the first of them. */
  readonly stay: number;
  readonly staying: ReadonlyArray<string>;
}

/** Most conversations that stay which are named. */
export const namedMax = 10;

/** Conversations that are looked at together. */
const pageSize = 100;

/**
 * Forgets conversations.
 *
 * @param prefix what the tables' names begin with
 * @param place the database, as a person knows it
 */
export const forget = (
  client: SqlClient,
  prefix: string,
  place: string,
  { force, which }: Meant,
): Effect.Effect<Forgotten, AgentError> =>
  Effect.gen(function* () {
    const tables = tablesOf(client, prefix);
    const failed = failedAt(place);
    const idleMs = "idleMs" in which ? which.idleMs : 0;
    const told = { chats: 0, lines: 0, stay: 0 };
    const staying: Array<string> = [];
    const take = Effect.fnUntraced(function* (chat: string) {
      const gone = yield* Effect.mapError(one(tables, chat, { force, idleMs }), failed);
      if (gone === "open") {
        told.stay += 1;
        if (staying.length < namedMax) staying.push(chat);
      } else if (gone !== undefined) {
        told.chats += 1;
        told.lines += gone;
      }
    });
    if ("chat" in which) yield* take(which.chat);
    let after: string | undefined = "chat" in which ? undefined : "";
    while (after !== undefined) {
      const names: ReadonlyArray<string> = yield* Effect.mapError(page(tables, after, idleMs), failed);
      yield* Effect.forEach(names, take, { discard: true });
      after = names.length < pageSize ? undefined : names.at(-1);
    }
    return { ...told, staying };
  });

const page = ({ chats, sql }: Tables, after: string, idleMs: number): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<{ readonly chat: string }>`SELECT chat FROM ${chats} WHERE chat > ${after} AND ${isIdle(sql, idleMs)}
      ORDER BY chat LIMIT ${pageSize}`,
    (rows) => rows.map(({ chat }) => chat),
  );

/** By the server's clock. A claim of 0 ms ago is idle too. */
const isIdle = (sql: SqlClient, idleMs: number) =>
  sql`greatest(claimed_at, written_at) <= clock_timestamp() - ${idleMs} * interval '1 millisecond'`;

/**
 * Forgets a conversation. Its row is locked first: a line that is on its way is written before that and is seen, or refused behind it.
 *
 * @returns how many lines it had; undefined where there is none, or none that is idle any more
 */
const one = (tables: Tables, chat: string, { force, idleMs }: { readonly force: boolean; readonly idleMs: number }) => {
  const { chats, lines, sql } = tables;
  return Effect.gen(function* () {
    const [row] = yield* sql<{ readonly lines: string; readonly bytes: string }>`
      SELECT lines::text, bytes::text FROM ${chats} WHERE chat = ${chat} AND ${isIdle(sql, idleMs)} FOR UPDATE`;
    if (row === undefined) return undefined;
    if (!force && (yield* isOpen(tables, chat, Number(row.bytes)))) return "open" as const;
    yield* sql`DELETE FROM ${lines} WHERE chat = ${chat}`;
    yield* sql`DELETE FROM ${chats} WHERE chat = ${chat}`;
    return Number(row.lines);
  }).pipe(sql.withTransaction);
};

/** Whether the newest turn is open. Of a journal that cannot be read that is not known, and it may be. */
const isOpen = (tables: Tables, chat: string, bytes: number): Effect.Effect<boolean, SqlError> =>
  Effect.gen(function* () {
    if (bytes > journalBytesMax) return true;
    const read = Effect.forEach(yield* linesOf(tables, chat), (line) => entryOf(line));
    const entries = Option.getOrUndefined(yield* Effect.option(read));
    if (entries?.length === 0) return false;
    const [first, ...others] = entries ?? [];
    if (first?._tag !== "Chat") return true;
    const state = new ChatState(first, [], () => Effect.void);
    for (const entry of others) state.apply(entry);
    return state.isOpen;
  });
