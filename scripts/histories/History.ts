/**
 * The log of a process in a history: one line before each operation on the store, and one after it.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { Schema } from "effect";

/** An operation on a run. `note`, `ask`, `park` and `end` are writes of the run's owner. */
export const Kind = Schema.Literals(["start", "note", "ask", "park", "end", "answer", "claim", "release", "read"]);
export type Kind = typeof Kind.Type;

const Begun = Schema.Struct({
  n: Schema.Natural,
  kind: Kind,
  run: Schema.String,
  /** The value that the store holds if the operation was accepted. It is unique to the operation. */
  id: Schema.Natural,
  revision: Schema.optionalKey(Schema.Natural),
  choice: Schema.optionalKey(Schema.String),
  /** Microseconds of the machine's monotonic clock, which all processes share. */
  from: Schema.Natural,
});

/** `refused`: the store guarantees that nothing of the operation is on record. */
const Outcome = Schema.Literals(["ok", "refused", "unknown"]);

const Over = Schema.Struct({
  n: Schema.Natural,
  to: Schema.Natural,
  outcome: Outcome,
  reason: Schema.optionalKey(Schema.String),
  /** The notes that a claim or a read returned, in order. */
  saw: Schema.optionalKey(Schema.Array(Schema.Natural)),
  /** The questions that a claim or a read returned. */
  asked: Schema.optionalKey(Schema.Array(Schema.Natural)),
});

const Line = Schema.Union([Over, Begun]);
type Line = typeof Line.Type;

/** An operation of one life of a process. Its outcome is `unknown` if the life ended during it. */
export interface Operation extends Omit<typeof Begun.Type, "n"> {
  /** The life that ran it. A restarted process has a new name. */
  readonly actor: string;
  /** Undefined if the life ended during the operation. */
  readonly to: number | undefined;
  readonly outcome: typeof Outcome.Type;
  readonly reason?: string | undefined;
  readonly saw?: ReadonlyArray<number> | undefined;
  readonly asked?: ReadonlyArray<number> | undefined;
}

/** Exit code of a process that could not reach its store at startup. Its next life tries again. */
export const storeAwayCode = 3;

/** The final state of a run, as the store reports it. */
export interface Final {
  readonly run: string;
  /** Ids of its notes, in order. */
  readonly notes: ReadonlyArray<number>;
  readonly questions: ReadonlyArray<{ readonly id: number; readonly revision: number; readonly answer?: string }>;
  readonly end?: number;
}

/** Writes the log of one life. Each line is synced to disk before `write` returns. */
export class HistoryLog {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
    fsyncSync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Line));

/** Reads the operations of one life from its log. An incomplete last line, cut by a kill, is ignored. */
export const operations = (path: string, actor: string): ReadonlyArray<Operation> => {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const lines = text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => decode(line));
  const over = new Map(lines.flatMap((line) => ("outcome" in line ? [[line.n, line] as const] : [])));
  return lines.flatMap((line): ReadonlyArray<Operation> => {
    if ("outcome" in line) return [];
    const { n, ...begun } = line;
    const end = over.get(n);
    const { asked, outcome = "unknown", reason, saw, to } = end ?? {};
    return [{ actor, ...begun, to, outcome, reason, saw, asked }];
  });
};

/** The current time of the monotonic clock that all processes of the machine share, in microseconds. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000n);
