/**
 * Finds the chats of a folder that an earlier process left in the middle of a turn.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Effect, Result } from "effect";
import type { AgentError } from "./AgentError.ts";
import { ChatState } from "./ChatState.ts";
import * as Journal from "./Journal.ts";

/** Most chats that are read, the newest first. */
export const chatsMax = 100;

/** A chat whose last turn has not ended. */
export interface OpenChat {
  readonly chat: string;
  readonly model: string;
  /** When a line was last written, in milliseconds since the epoch. */
  readonly at: number;
}

/** What a folder holds. */
export interface Chats {
  /** Journals in the folder, read or not. */
  readonly all: number;
  /** The newest first. */
  readonly open: ReadonlyArray<OpenChat>;
  /** Journals that cannot be read. */
  readonly unreadable: ReadonlyArray<AgentError>;
}

/** Looks through a folder of journals, and changes nothing in it. */
export const find = Effect.fn("Chats.find")(function* (folder: string) {
  const files = namesIn(folder);
  const open: Array<OpenChat> = [];
  const unreadable: Array<AgentError> = [];
  for (const { at, chat } of files.slice(0, chatsMax)) {
    const read = yield* Effect.result(Journal.read(folder, chat));
    if (Result.isFailure(read)) {
      unreadable.push(read.failure);
      continue;
    }
    const [first, ...others] = read.success;
    if (first?._tag !== "Chat") continue;
    const state = new ChatState(first, [], () => Effect.void);
    for (const entry of others) state.apply(entry);
    if (state.isOpen) open.push({ chat, model: first.model, at });
  }
  const chats: Chats = { all: files.length, open, unreadable };
  return chats;
});

const suffix = ".jsonl";

const namesIn = (folder: string): ReadonlyArray<{ readonly chat: string; readonly at: number }> => {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(suffix))
    .flatMap((name) => {
      // Another process may have removed the file since.
      const found = statSync(join(folder, name), { throwIfNoEntry: false });
      return found === undefined ? [] : [{ chat: name.slice(0, -suffix.length), at: found.mtimeMs }];
    })
    .sort((one, other) => other.at - one.at);
};
