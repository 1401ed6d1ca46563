/**
 * Keeps a chat in a file of lines that only grows.
 *
 * A line is one write, so that a killed process leaves it whole or not at all; a last line that was cut off is dropped when the
 * file is opened again. The journal survives its process, but a power loss may cost the newest lines.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Effect, Schema, type Scope } from "effect";
import { AgentError } from "./AgentError.ts";
import { Entry } from "./Entry.ts";

/** Largest journal that is read, in bytes. */
export const journalBytesMax = 512 * 1024 * 1024;

/** Where a chat is kept: what it holds, and the way to add to it. */
export interface Journal {
  /** The file, or the name of what stands in its place. */
  readonly file: string;
  /** The entries that it held when it was opened. */
  readonly entries: ReadonlyArray<Entry>;
  /** Adds a line; it is kept when this returns. A failed write is a defect: the agent must not act without its record. */
  readonly append: (entry: Entry) => Effect.Effect<void>;
}

const EntryJson = Schema.fromJsonString(Entry);
const decode = Schema.decodeUnknownEffect(EntryJson);
const encode = Schema.encodeSync(EntryJson);

/** Names of chats: each is a file name too. */
const chatPattern = /^[A-Za-z0-9][\w-]{0,63}$/;

/**
 * Opens the journal of a chat, and makes it where there is none.
 *
 * @param folder where chats are kept; made readable for its owner alone
 * @param chat 1 to 64 letters, digits, `_` and `-`
 */
export const open = Effect.fn("Journal.open")(function* (folder: string, chat: string) {
  if (!chatPattern.test(chat)) {
    return yield* new AgentError({ reason: "refused", message: `chat: expected letters, digits and -, got ${chat}` });
  }
  const file = join(folder, `${chat}.jsonl`);
  const text = yield* Effect.try({ try: () => readWhole(folder, file), catch: unusable(file) });
  const entries = yield* parsed(file, text);
  const descriptor = yield* openFile(file);
  const journal: Journal = {
    file,
    entries,
    append: (entry) => Effect.sync(() => void writeSync(descriptor, `${encode(entry)}\n`)),
  };
  return journal;
});

/** Reads the journal of a chat as it is now, and leaves it alone: another process may be writing it. */
export const read = Effect.fn("Journal.read")(function* (folder: string, chat: string) {
  const file = join(folder, `${chat}.jsonl`);
  const text = yield* Effect.try({ try: () => wholeLines(file).toString("utf8"), catch: unusable(file) });
  return yield* parsed(file, text);
});

const parsed = (file: string, text: string): Effect.Effect<ReadonlyArray<Entry>, AgentError> =>
  Effect.forEach(text.split("\n").slice(0, -1), (line, index) =>
    Effect.mapError(decode(line), (error) => unusable(file)(`line ${index + 1}: ${error.message}`)),
  );

/** The whole lines of the file; half a line at its end is cut off. */
const readWhole = (folder: string, file: string): string => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!existsSync(file)) return "";
  const whole = wholeLines(file);
  if (whole.length < statSync(file).size) truncateSync(file, whole.length);
  return whole.toString("utf8");
};

const wholeLines = (file: string): Buffer => {
  const bytes = readFileSync(file);
  if (bytes.length > journalBytesMax) throw new Error(`expected at most ${journalBytesMax} bytes, got ${bytes.length}`);
  return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
};

const openFile = (file: string): Effect.Effect<number, AgentError, Scope.Scope> =>
  Effect.acquireRelease(Effect.try({ try: () => openSync(file, "a", 0o600), catch: unusable(file) }), (descriptor) =>
    Effect.sync(() => closeSync(descriptor)),
  );

const unusable = (file: string) => (cause: unknown) =>
  new AgentError({
    reason: "store",
    message: `${file}: ${cause instanceof Error ? cause.message : String(cause)}`.replace(/\s+/g, " "),
  });
