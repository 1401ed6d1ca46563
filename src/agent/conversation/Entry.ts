/**
 * Describes the lines of a chat's journal: what was said, what came of it, and what its tools did.
 *
 * An entry is written before its content is used, so that a killed process leaves a history that holds everything that the user
 * saw.
 */
import { Schema } from "effect";
import { PrefillForm, SeamProof } from "../../domain/SeamWords.ts";
import { protocols } from "../../provider/Protocols.ts";

/** The version of the lines; another one is refused. */
export const journalVersion = 1;

const Protocol = Schema.Literals(protocols.ids);

const Outcome = Schema.Literals(["settled", "not_run", "unknown", "it_ran", "it_did_not_run"]);

/** Whether a call of unknown outcome happened. */
export const CallVerdict = Schema.Literals(["it_ran", "it_did_not_run"]);
export type CallVerdict = typeof CallVerdict.Type;

/**
 * How a response ended: `completed` by the provider's marker, `cut` (its process died before the rest came), `cancelled` by the
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
  /**
   * An attempt begins, with the outcomes of the run's calls where it continues after them, and with its seam where it goes on behind
   * text that was shown: its parts then belong to the response before.
   */
  Attempt: {
    ...inRun,
    request: Schema.Literals(["first", "continue", "resume"]),
    calls: Schema.Array(Schema.Struct({ attempt: Schema.Natural, call: Schema.String, outcome: Outcome })),
    seam: Schema.optionalKey(
      Schema.Struct({
        proof: SeamProof,
        at: Schema.Natural,
        quote: Schema.String,
        form: Schema.optionalKey(PrefillForm),
      }),
    ),
  },
  /** A part was handed over: its event as it came. */
  Part: {
    ...inRun,
    ordinal: Schema.Natural,
    event: Schema.String,
    data: Schema.String,
    id: Schema.optionalKey(Schema.String),
  },
  /** The attempt's parts after `keep_through` no longer count. */
  Discard: { ...inRun, keep_through: Schema.Natural },
  /** A tool begins a call; it did nothing of it before this line. `before` is what the tool may check afterwards. */
  Started: { ...ofCall, tool: Schema.String, input: Schema.String, before: Schema.optionalKey(Schema.String) },
  /** A call has its result; the tool had done its work before this line. */
  Result: { ...ofCall, output: Schema.String, failed: Schema.Boolean },
  /** A person, or the tool itself, has said whether a call happened. */
  Judged: { ...ofCall, verdict: CallVerdict },
  /** The response has ended; no line of its run comes after this one. */
  End: { run: Schema.String, ending: Ending },
});
export type Entry = typeof Entry.Type;

/** The first line of a journal. */
export type Chat = Extract<Entry, { readonly _tag: "Chat" }>;
