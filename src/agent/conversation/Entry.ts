/**
 * Describes the lines of a chat's journal: what was said, what came of it, and what its tools did.
 *
 * An entry is written before anything is done with what it tells, so that a process that is killed leaves a history in
 * which nothing is missing that somebody saw.
 */
import { Schema } from "effect";
import { protocols } from "../../provider/Protocols.ts";

/** The version of the lines; another one is refused. */
export const journalVersion = 1;

const Protocol = Schema.Literals(protocols.ids);

const Outcome = Schema.Literals(["settled", "not_run", "unknown", "it_ran", "it_did_not_run"]);

/** Whether a call happened whose outcome nobody knew. */
export const Verdict = Schema.Literals(["it_ran", "it_did_not_run"]);
export type Verdict = typeof Verdict.Type;

/**
 * How an answer ended: `completed` by the provider's marker, `cut` (its process died with the rest of it), `cancelled` by the
 * user, `stopped` for any other reason.
 */
export const Ending = Schema.Literals(["completed", "cut", "cancelled", "stopped"]);
export type Ending = typeof Ending.Type;

const inRun = { run: Schema.String, attempt: Schema.Natural };
const ofCall = { ...inRun, call: Schema.String };

/** One line of a journal. */
export const Entry = Schema.TaggedUnion({
  /** The first line: what the chat's requests are made of. Never a key. */
  Chat: {
    version: Schema.Literal(journalVersion),
    chat: Schema.String,
    protocol: Protocol,
    url: Schema.String,
    model: Schema.String,
    dir: Schema.String,
    shell: Schema.Boolean,
    system: Schema.String,
  },
  /** What the user said. */
  User: { text: Schema.String },
  /** A request begins. */
  Run: { run: Schema.String },
  /** An attempt begins, with what became of the run's calls where it goes on after them. */
  Attempt: {
    ...inRun,
    request: Schema.Literals(["first", "continue", "resume"]),
    calls: Schema.Array(Schema.Struct({ attempt: Schema.Natural, call: Schema.String, outcome: Outcome })),
  },
  /** A part was handed over: its event as it came. */
  Part: {
    ...inRun,
    ordinal: Schema.Natural,
    event: Schema.String,
    data: Schema.String,
    id: Schema.optionalKey(Schema.String),
  },
  /** What came after `keep_through` no longer counts. */
  Discard: { ...inRun, keep_through: Schema.Natural },
  /** A tool begins a call; nothing of it was done before this line. `before` is what it may check afterwards. */
  Started: { ...ofCall, tool: Schema.String, input: Schema.String, before: Schema.optionalKey(Schema.String) },
  /** A call has its result; what it did was done before this line. */
  Result: { ...ofCall, output: Schema.String, failed: Schema.Boolean },
  /** A person's or a tool's own word on a call. */
  Judged: { ...ofCall, verdict: Verdict },
  /** The answer has ended; nothing of its run comes after this line. */
  End: { run: Schema.String, ending: Ending },
});
export type Entry = typeof Entry.Type;

/** The first line of a journal. */
export type Chat = Extract<Entry, { readonly _tag: "Chat" }>;
