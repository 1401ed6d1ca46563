/**
 * Says what a process writes down of each operation on the store: one line before it begins, and one when it is over.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { Schema } from "effect";

/** An operation on a run. `note`, `ask`, `park` and `end` are writes of the process that drives it. */
export const Kind = Schema.Literals(["start", "note", "ask", "park", "end", "answer", "claim", "release", "read"]);
export type Kind = typeof Kind.Type;

const Begun = Schema.Struct({
  n: Schema.Natural,
  kind: Kind,
  run: Schema.String,
  /** What the store must hold if it was taken: no two operations have the same. */
  id: Schema.Natural,
  revision: Schema.optionalKey(Schema.Natural),
  choice: Schema.optionalKey(Schema.String),
  /** Microseconds of the machine's monotonic clock, which all processes share. */
  from: Schema.Natural,
});

/** `refused`: the store says that nothing of it is on record. */
const Outcome = Schema.Literals(["ok", "refused", "unknown"]);

const Over = Schema.Struct({
  n: Schema.Natural,
  to: Schema.Natural,
  outcome: Outcome,
  /** Why it was refused. */
  reason: Schema.optionalKey(Schema.String),
  /** The notes that a claim or a read has found, in their order. */
  saw: Schema.optionalKey(Schema.Array(Schema.Natural)),
  /** The questions that it has found. */
  asked: Schema.optionalKey(Schema.Array(Schema.Natural)),
});

const Line = Schema.Union([Over, Begun]);
type Line = typeof Line.Type;

/** An operation of one life of a process. A life that ends within it does not know what came of it. */
export interface Operation extends Omit<typeof Begun.Type, "n"> {
  /** A process that begins anew is another one. */
  readonly actor: string;
  /** Undefined while it is not over. */
  readonly to: number | undefined;
  readonly outcome: typeof Outcome.Type;
  readonly reason?: string | undefined;
  readonly saw?: ReadonlyArray<number> | undefined;
  readonly asked?: ReadonlyArray<number> | undefined;
}

/** The exit code of a process that has found its store away when it began: the next life of it tries again. */
export const storeAwayCode = 3;

/** How a run stands in the end, by the store's word. */
export interface Final {
  readonly run: string;
  /** Ids of its notes, in their order. */
  readonly notes: ReadonlyArray<number>;
  readonly questions: ReadonlyArray<{ readonly id: number; readonly revision: number; readonly answer?: string }>;
  readonly end?: number;
}

/** Writes the lines of one life of a process. Each is on disk when it returns. */
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

/** The operations of one life, from its file. A line that was cut by a kill does not count. */
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

/** Now, by the clock that all processes of the machine share, in microseconds. */
export const now = (): number => Number(process.hrtime.bigint() / 1_000n);
