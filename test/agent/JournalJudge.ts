/**
 * Judges a chat by its journal: no call dangles or has two results, nothing that was withdrawn is in a request, and no tool
 * began a call twice. It reads the file as any program could.
 */
import { existsSync, readFileSync } from "node:fs";
import { Effect, Schema } from "effect";
import { ChatState } from "../../src/agent/conversation/ChatState.ts";
import { Entry } from "../../src/agent/index.ts";
import { checks } from "../provider/continuation/Rules.ts";

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Entry));

/** The whole lines of a journal. */
export const read = (file: string): ReadonlyArray<Entry> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => decode(line))
    : [];

/** Calls by what became of them. */
export interface Tally {
  readonly started: number;
  readonly settled: number;
  /** Judged to have run, by their tool or a person. */
  readonly ran: number;
  readonly judged: number;
}

/** Rules that hold for one answer that is gone on with, and not for a history of several. */
const ofOneAnswer = ["prose behind results"];

/** The next request of a chat, as its journal says it. */
export const history = (entries: ReadonlyArray<Entry>): string => {
  const [chat] = entries;
  if (chat?._tag !== "Chat") return "";
  const transcript = new ChatState(chat, [], () => Effect.void);
  for (const entry of entries) transcript.apply(entry);
  return JSON.stringify(transcript.body);
};

const serials = /r\d+\.\d+·/g;

/** What is wrong with a journal; empty when nothing is. */
export const problems = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> => {
  const found: Array<string> = [];
  const [chat] = entries;
  if (chat === undefined) return found;
  if (chat._tag !== "Chat") return ["the journal does not begin with its chat"];
  const transcript = new ChatState(chat, [], () => Effect.void);
  const calls = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    transcript.apply(entry);
    if (entry._tag === "Started" || entry._tag === "Result") {
      const key = `${entry._tag} ${entry.run} ${entry.attempt}/${entry.call}`;
      if (calls.has(key)) found.push(`twice: ${key}`);
      calls.add(key);
    }
    if (entry._tag !== "End") continue;
    const broken = checks[chat.protocol](transcript.body).filter((problem) => !ofOneAnswer.includes(problem));
    found.push(...broken.map((problem) => `line ${index + 1}: ${problem}`));
    const sent = JSON.stringify(transcript.body);
    for (const serial of withdrawn(entries.slice(0, index), entry.run)) {
      if (sent.includes(serial)) found.push(`line ${index + 1}: ${serial} was withdrawn, and is in the history`);
    }
  }
  return found;
};

/** Serials of a run's parts that were discarded, and were not said again by a part that was kept. */
const withdrawn = (entries: ReadonlyArray<Entry>, run: string): ReadonlySet<string> => {
  const parts = entries.filter((entry) => entry._tag === "Part").filter((part) => part.run === run);
  const gone = new Set<string>();
  const kept = new Set<string>();
  for (const part of parts) {
    const discarded = entries.some(
      (entry) =>
        entry._tag === "Discard" &&
        entry.run === run &&
        entry.attempt === part.attempt &&
        part.ordinal > entry.keep_through,
    );
    for (const serial of part.data.match(serials) ?? []) (discarded ? gone : kept).add(serial);
  }
  return new Set([...gone].filter((serial) => !kept.has(serial)));
};

interface Called {
  readonly run: string;
  readonly attempt: number;
  readonly call: string;
}

/**
 * Counts the calls of a tool. A process that is killed between a person's answer and its line leaves the verdict to the
 * attempt that goes on behind it: that line says it as well.
 */
export const tally = (entries: ReadonlyArray<Entry>, tool: string): Tally => {
  const started = entries.filter((entry) => entry._tag === "Started").filter((entry) => entry.tool === tool);
  const same = (one: Called, other: Called) =>
    one.run === other.run && one.attempt === other.attempt && one.call === other.call;
  const results = entries
    .filter((entry) => entry._tag === "Result")
    .filter((entry) => started.some((call) => same(call, entry)));
  const unsettled = (entry: Called) =>
    started.some((call) => same(call, entry)) && !results.some((result) => same(result, entry));
  const judged = entries.filter((entry) => entry._tag === "Judged").filter(unsettled);
  for (const { calls, run } of entries.filter((entry) => entry._tag === "Attempt")) {
    for (const { attempt, call, outcome } of calls) {
      if (outcome !== "it_ran" && outcome !== "it_did_not_run") continue;
      const entry = { _tag: "Judged" as const, run, attempt, call, verdict: outcome };
      if (unsettled(entry) && !judged.some((known) => same(known, entry))) judged.push(entry);
    }
  }
  return {
    started: started.length,
    settled: results.length,
    judged: judged.length,
    ran: judged.filter((entry) => entry.verdict === "it_ran").length,
  };
};
