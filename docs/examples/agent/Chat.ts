/**
 * A chat: a journal that only grows, and the next request, which follows from the journal alone.
 *
 * Everything is written down before it is used. The same code reads the journal live and after a crash, so the process after a
 * `kill -9` goes on with exactly what the killed one had.
 */
import { Effect, FileSystem, Path, Result, Schema, Semaphore } from "effect";
import type { AttemptContext, SettledCall } from "effect-stream-recovery";
import { Continuation, type Part } from "effect-stream-recovery/provider";
import * as Models from "./Models.ts";

const attempt = { attempt: Schema.Natural };
const call = { ...attempt, call: Schema.String };
const outcome = Schema.Literals(["settled", "not_run", "unknown", "it_ran", "it_did_not_run"]);
const Body = Schema.Record(Schema.String, Schema.Unknown);
const optionalText = Schema.optionalKey(Schema.String);

/** One line of the journal. */
export const Entry = Schema.TaggedUnion({
  /** The first line: what the chat is made of, and the folder in which its tools work. Never a key. */
  Chat: {
    protocol: Schema.Literals(Models.protocols),
    ...{ model: Schema.String, base: optionalText, dir: Schema.String },
  },
  /** A message of the user. */
  User: { text: Schema.String },
  /** A request of the loop begins. It is one run of `StreamProcessor`, under this id. */
  Run: { run: Schema.String },
  /** The run sends its first request, or another one (`body`). An attempt that `joins` continues the text before it. */
  Attempt: { ...attempt, joins: Schema.Boolean, body: Schema.optionalKey(Body) },
  /** A part of the response, as the event that came. */
  Part: { ...attempt, ordinal: Schema.Natural, event: Schema.String, data: Schema.String, id: optionalText },
  /** The attempt's parts after `keep_through` no longer count. */
  Discard: { ...attempt, keep_through: Schema.Natural },
  /** A tool begins a call. It has done nothing before this line. */
  Started: { ...call, tool: Schema.String, input: Schema.String },
  /** A tool has ended a call. */
  Result: { ...call, output: Schema.String, failed: Schema.Boolean },
  /** The run has ended, and this became of its calls. */
  End: {
    ending: Schema.Literals(["completed", "stopped"]),
    calls: Schema.Array(Schema.Struct({ ...call, outcome })),
  },
});
export type Entry = typeof Entry.Type;

type First = Extract<Entry, { readonly _tag: "Chat" }>;

/** A chat that cannot be opened. */
export class ChatRefused extends Schema.TaggedError<ChatRefused>()("ChatRefused", {
  reason: Schema.Literal("not_begun"),
  message: Schema.String,
}) {}

/** A run that has not ended: the request that it began with, and every line since. */
export interface OpenRun {
  readonly id: string;
  readonly first: Models.Body;
  readonly entries: Array<Entry>;
}

/** The name of a call in a run. */
type CallKey = Pick<SettledCall, "attempt" | "call">;

const isSame = (one: CallKey, other: CallKey): boolean => one.attempt === other.attempt && one.call === other.call;

const LineOfJson = Schema.fromJsonString(Entry);
const decodeLine = Schema.decodeEffect(LineOfJson);
const encodeLine = Schema.encodeEffect(LineOfJson);

/** A chat that is open in this process. */
export class Chat {
  readonly model: Models.Model;
  readonly dir: string;
  /** The run that has not ended. */
  run: OpenRun | undefined;
  readonly #append: (line: string) => Effect.Effect<void>;
  /** One line after the other: what is written and what is applied have the same order. */
  readonly #lock = Semaphore.makeUnsafe(1);
  #body: Models.Body = {};
  #goesOn = false;

  constructor(first: First, append: (line: string) => Effect.Effect<void>) {
    this.model = Models.speakers[first.protocol](first.model, first.base);
    this.dir = first.dir;
    this.#append = append;
  }

  /** The turn has not ended: a run is open, or the model waits for the results of its tools. */
  get isOpen(): boolean {
    return this.run !== undefined || this.#goesOn;
  }

  /** Opens the conversation with the tools that the model may call, and applies the lines of the journal. */
  replay(tools: ReadonlyArray<Models.ToolDescription>, entries: ReadonlyArray<Entry>): void {
    this.#body = this.model.opening(tools);
    for (const entry of entries) this.#apply(entry);
  }

  /** Writes a line, and only then applies it. */
  add(entry: Entry): Effect.Effect<void> {
    return this.#write(entry, () => this.#apply(entry));
  }

  /** An interruption comes before both steps or after both. */
  #write<A>(entry: Entry, apply: () => A): Effect.Effect<A> {
    return encodeLine(entry).pipe(
      Effect.orDie,
      Effect.flatMap(this.#append),
      Effect.map(apply),
      this.#lock.withPermit,
      Effect.uninterruptible,
    );
  }

  /** Begins a run. Its id is written down before its request is sent, so that a later process knows what to look for. */
  beginRun(id: string): Effect.Effect<OpenRun> {
    return this.#write({ _tag: "Run", run: id }, () => this.#open(id));
  }

  /** Begins an attempt of the open run, and gives the request that it sends. */
  begin({ attempt, calls, request, seam }: AttemptContext) {
    return Effect.gen({ self: this }, function* () {
      const run = this.run;
      if (run === undefined || request === "first") {
        yield* this.add({ _tag: "Attempt", attempt, joins: false });
        return run?.first ?? this.#body;
      }
      const { body: before, received } = this.response(run);
      const results = resultsOf(run);
      // A call with a result is settled, even if its process died before its run knew.
      const settled = calls.map((it) =>
        results.some((result) => isSame(result, it)) ? { ...it, outcome: "settled" as const } : it,
      );
      const next = { body: before, received, calls: settled, results, seam };
      const body = yield* Effect.fromResult(Continuation.build(this.model.protocol, next));
      const joins = seam !== undefined;
      yield* this.add({ _tag: "Attempt", attempt, joins, ...(joins ? {} : { body }) });
      return body;
    });
  }

  /** The newest response of a run, as far as it was not withdrawn, and the request that it answers. */
  response({ entries, first }: OpenRun) {
    const { protocol, reader } = this.model;
    let body = first;
    let collector = Continuation.collector(protocol);
    let read = reader();
    let parts: Array<{ readonly attempt: number; readonly ordinal: number; readonly part: Part }> = [];
    for (const entry of entries) {
      if (entry._tag === "Attempt" && !entry.joins) {
        body = entry.body ?? first;
        collector = Continuation.collector(protocol);
        read = reader();
        parts = [];
      } else if (entry._tag === "Part") {
        const { attempt, data, event, id, ordinal } = entry;
        const part = read({ event, data, bytes: data.length, ...(id === undefined ? {} : { id }) });
        collector.take(attempt, ordinal, part);
        parts.push({ attempt, ordinal, part });
      } else if (entry._tag === "Discard") {
        const { attempt, keep_through } = entry;
        collector.discard(attempt, keep_through);
        parts = parts.filter((it) => it.attempt !== attempt || it.ordinal <= keep_through);
      }
    }
    return { body, received: collector.received(), parts };
  }

  #open(id: string): OpenRun {
    this.run = { id, first: this.#body, entries: [] };
    return this.run;
  }

  #apply(entry: Entry): void {
    switch (entry._tag) {
      case "Chat":
        return;
      case "User":
        this.#body = Continuation.userTurn(this.model.protocol, this.#body, entry.text);
        this.#goesOn = true;
        return;
      case "Run":
        this.#open(entry.run);
        return;
      case "End": {
        if (this.run === undefined) return;
        const { body, received } = this.response(this.run);
        const next = { body, received, calls: entry.calls, results: resultsOf(this.run) };
        this.#body = Result.getOrElse(Continuation.build(this.model.protocol, next), () => body);
        // The model is asked again with the results of its calls, or for the rest of a response that a crash cut off.
        const isWhole = received.whole === true && !received.items.some(({ type, whole }) => type === "call" && whole);
        this.#goesOn = entry.ending === "completed" && !isWhole;
        this.run = undefined;
        return;
      }
      default:
        this.run?.entries.push(entry);
    }
  }
}

const resultsOf = ({ entries }: OpenRun) => entries.filter((entry) => entry._tag === "Result");

/** The result of a call; undefined if it has none. */
export const resultOf = (run: OpenRun, key: CallKey) => resultsOf(run).find((it) => isSame(it, key));

/** The call as its tool has begun it; undefined if no tool has. */
export const startOf = ({ entries }: OpenRun, key: CallKey) =>
  entries.filter((entry) => entry._tag === "Started").find((it) => isSame(it, key));

/** Opens the journal of a chat, and gives its lines. `first` begins a new chat; one that exists stays what it is. */
export const open = Effect.fn("Chat.open")(function* (file: string, first: First | undefined) {
  const fs = yield* FileSystem.FileSystem;
  const path = yield* Path.Path;
  yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 });
  const text = (yield* fs.exists(file)) ? yield* fs.readFileString(file) : "";
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  // A killed process may have left half a line. Nothing that it says was used.
  if (whole.length < text.length) yield* fs.truncate(file, Buffer.byteLength(whole));
  const entries = yield* Effect.forEach(whole.split("\n").slice(0, -1), (line) => decodeLine(line));
  const journal = yield* fs.open(file, { flag: "a", mode: 0o600 });
  // An agent must not act without its record, so a line that cannot be written is a defect.
  const append = (line: string) => Effect.orDie(journal.writeAll(Buffer.from(`${line}\n`)));
  const [begun = first] = entries;
  if (begun?._tag !== "Chat")
    return yield* new ChatRefused({ reason: "not_begun", message: `${file} holds no chat; --model begins one` });
  const chat = new Chat(begun, append);
  if (entries.length === 0) yield* chat.add(begun);
  return { chat, entries };
});
