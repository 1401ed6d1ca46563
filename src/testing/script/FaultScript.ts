/**
 * Describes what a FaultProvider answers and where it breaks: a small JSON document, checked strictly.
 *
 * Answers are given in order, one for each request; the last one repeats. A break names what happens (`kind`) and where (`at`,
 * with `n` where a place is counted). A second conversation on the same server has a script of its own under `scripts`, chosen
 * by the path prefix `/s/NAME` or the request header `x-script: NAME`.
 *
 * ```json
 * {
 *   "answers": [
 *     { "content": [{ "text": 5 }], "break": { "kind": "rst", "at": "event", "n": 3 } },
 *     { "status": 429, "headers": { "retry-after": "2" } },
 *     { "content": [{ "reasoning": 2 }, { "text": 5 }, { "tool": "bash", "input": { "cmd": "ls" } }], "delay_ms": 20 }
 *   ],
 *   "scripts": { "b": [{ "content": [{ "text": 3 }], "break": { "kind": "end", "at": "terminal" } }] }
 * }
 * ```
 */
import { Effect, Schema, SchemaIssue } from "effect";
import { Milliseconds, Status } from "../../domain/Limits.ts";
import { protocols } from "../../provider/Protocols.ts";

/** Longest script that is read, in bytes. */
export const scriptBytesMax = 16 * 1024 * 1024;

/** Most deltas of one block: a script of a few bytes must not fill the memory. */
export const deltasMax = 1_000_000;

/** An error of the provider, in the words of its protocol: as a whole response by `status`, inside a stream by `error`. */
export const ProviderErrorName = Schema.Literals([
  "rate_limited",
  "overloaded",
  "server_error",
  "context_overflow",
  "invalid_request",
]);
export type ProviderErrorName = typeof ProviderErrorName.Type;

const deltas = Schema.optionalKey(Schema.Natural.check(Schema.isLessThanOrEqualTo(deltasMax)));
const blockNames = ["reasoning", "text", "refusal", "tool", "provider_tool", "error", "ping", "bytes"] as const;

/**
 * One block of content; exactly one of its names is given. `reasoning`, `text` and `refusal` count deltas, `ping` keep-alives;
 * `words` stand behind the serial numbers of a text's deltas, delta by delta;
 * `tool` and `provider_tool` name a call whose `input` gets a serial number; `cut` ends the arguments in the middle although
 * the call and the stream end properly; `unmarked` sends the input as it is, without its serial number, to a client that
 * refuses fields that its tool does not have; `error` is an error event inside the stream and its last event; `bytes` (base64) are
 * sent unchanged at this place: bytes that no protocol writes, such as garbage, half characters or foreign events.
 */
export const Block = Schema.Struct({
  reasoning: deltas,
  text: deltas,
  words: Schema.optionalKey(Schema.Array(Schema.String)),
  refusal: deltas,
  ping: deltas,
  tool: Schema.optionalKey(Schema.NonEmptyString),
  provider_tool: Schema.optionalKey(Schema.NonEmptyString),
  input: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  cut: Schema.optionalKey(Schema.Boolean),
  unmarked: Schema.optionalKey(Schema.Boolean),
  error: Schema.optionalKey(ProviderErrorName),
  bytes: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9+/]*={0,2}$/))),
}).check(
  Schema.makeFilter((block) =>
    blockNames.filter((name) => block[name] !== undefined).length === 1
      ? undefined
      : `Expected exactly one of ${blockNames.join(", ")}`,
  ),
);
export type Block = typeof Block.Type;

/**
 * What happens at a break: a TCP reset, a FIN in the middle of the body, a proper end of the body without the protocol's
 * terminal event, silence until the client goes, or keep-alives until the client goes.
 */
export const BreakKind = Schema.Literals(["rst", "fin", "end", "stall", "keep_alive"]);
export type BreakKind = typeof BreakKind.Type;

/**
 * Where a break happens.
 *
 * `accept`: the connection is taken and nothing read (a reused connection: at the request's first byte; `answers` only) ·
 * `request`: `n` bytes of the request have come · `before_head` · `after_head` · `byte`: `n` bytes of the body are sent ·
 * `event`: `n` events are sent · `utf8`: inside the first multi-byte character at or after event `n` · `tool_arguments`:
 * in the middle of the first call's arguments · `terminal`: before the terminal event · `next_request`: this answer is
 * complete, the next request on the same connection meets a dead socket.
 */
export const BreakPlace = Schema.Literals([
  "accept",
  "request",
  "before_head",
  "after_head",
  "byte",
  "event",
  "utf8",
  "tool_arguments",
  "terminal",
  "next_request",
]);
export type BreakPlace = typeof BreakPlace.Type;

const headless: ReadonlyArray<BreakPlace> = ["accept", "request", "before_head", "next_request"];

/** The kind of a break, its place, and a count of the place's units; a break before the head cannot end or keep alive. */
export const Break = Schema.Struct({
  kind: BreakKind,
  at: BreakPlace,
  n: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
}).check(
  Schema.makeFilter(({ at, kind }) =>
    headless.includes(at) && (kind === "end" || kind === "keep_alive")
      ? `Expected rst, fin or stall at ${at}: ${kind} needs a head`
      : undefined,
  ),
);
export type Break = typeof Break.Type;

/** Keep-alives while an answer waits, one every `every_ms`: an SSE comment, or the protocol's ping event where it has one. */
export const KeepAlive = Schema.Struct({
  every_ms: Milliseconds.check(Schema.isGreaterThanOrEqualTo(1)),
  style: Schema.Literals(["comment", "event"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("comment" as const))),
});
export type KeepAlive = typeof KeepAlive.Type;

/**
 * Answers a request that resumes: sends the events behind its cursor, out of the answer that its response (or its conversation)
 * was given first. `skip` leaves out the first of these events, `repeat` sends as many events before the cursor once more.
 */
export const ResumeFault = Schema.Struct({
  skip: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  repeat: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
});
export type ResumeFault = typeof ResumeFault.Type;

/**
 * Answers a request that goes on with a text that was cut, as a model that does what it is asked: it begins with the text that the
 * request quotes between its marks, or stands behind the one that the request ends with, and goes on to the end of the answer that
 * its conversation was given first. `preface` stands in front of that: a model that does not do what it is asked. A request that
 * goes on with nothing gets the answer's own content.
 */
export const GoesOn = Schema.Struct({ preface: Schema.optionalKey(Schema.String) });
export type GoesOn = typeof GoesOn.Type;

/** One answer. Left-out `content` is a healthy short one; `raw` and `raw_file` are sent as they are instead of `content`. */
export const Answer = Schema.Struct({
  /** Left out: taken from the request's path. */
  protocol: Schema.optionalKey(Schema.Literals(protocols.ids)),
  status: Status.pipe(Schema.withDecodingDefaultKey(Effect.succeed(200))),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** Sent instead of a stream: a text as it is, anything else as JSON. An answer that is not 2xx has a body by default. */
  body: Schema.optionalKey(Schema.Json),
  content: Schema.optionalKey(Schema.Array(Block)),
  raw: Schema.optionalKey(Schema.String),
  /** Path of a file with recorded bytes; the reader of the script resolves it. */
  raw_file: Schema.optionalKey(Schema.String),
  /** Why the stream finishes; left out: `tool` after a call, else `stop`. `none` leaves the terminal event out. */
  finish: Schema.optionalKey(Schema.Literals(["stop", "tool", "length", "content_filter", "none"])),
  /** Responses: the response says that it runs in the background, so that it can be resumed by `starting_after`. */
  background: Schema.optionalKey(Schema.Boolean),
  /** Every event has an id, counted from 0, so that the stream can be resumed by `Last-Event-ID`. */
  ids: Schema.optionalKey(Schema.Boolean),
  /** Goes on behind the cursor of the request. Its `content` is that of the answer that is resumed. */
  resume: Schema.optionalKey(ResumeFault),
  /** Goes on with the text of the request: its `content` is that of the answer that was cut. */
  goes_on: Schema.optionalKey(GoesOn),
  usage: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  /** Wait before the response head, before the first event, and between events, in milliseconds. */
  head_delay_ms: Schema.optionalKey(Milliseconds),
  first_delay_ms: Schema.optionalKey(Milliseconds),
  delay_ms: Schema.optionalKey(Milliseconds),
  /** Bytes of one write; left out: an event a write. */
  write_bytes: Schema.optionalKey(Schema.Natural.check(Schema.isGreaterThanOrEqualTo(1))),
  /** Everything in one write, so that events meet the client in one piece; delays and keep-alives between them do not apply. */
  one_write: Schema.optionalKey(Schema.Boolean),
  /** `eof` sends no length: the connection's end is the body's end. */
  framing: Schema.Literals(["chunked", "eof"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("chunked" as const))),
  keep_alive: Schema.optionalKey(KeepAlive),
  break: Schema.optionalKey(Break),
});
export type Answer = typeof Answer.Type;

const answers = Schema.Array(Answer).check(Schema.isMinLength(1));

/** The answers of a fault server, conversation by conversation. */
export const FaultScript = Schema.Struct({
  answers: Schema.optionalKey(answers),
  /** Scripts of further conversations, by name. */
  scripts: Schema.optionalKey(Schema.Record(Schema.String, answers)),
  /** What comes behind a conversation's last answer: that answer again, or a 500 that the log marks `unscripted`. */
  after: Schema.Literals(["repeat", "error"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("repeat" as const))),
});
export type FaultScript = typeof FaultScript.Type;

/** A script as JSON, before its defaults are filled in. */
export type FaultScriptInput = typeof FaultScript.Encoded;

/** A script that cannot be played; the message is one line that names the field. */
export class FaultScriptError extends Schema.TaggedError<FaultScriptError>()("FaultScriptError", {
  reason: Schema.Literals(["not_json", "invalid", "unreadable"]),
  message: Schema.String,
}) {}

const decodeScript = Schema.decodeUnknownEffect(FaultScript, { onExcessProperty: "error" });

/**
 * Checks a script and fills in its defaults.
 *
 * @param input a parsed JSON document
 * @throws FaultScriptError `invalid` in one line: `answers[0].break.kind: Expected "rst" | …`
 */
export const decode = (input: unknown): Effect.Effect<FaultScript, FaultScriptError> =>
  decodeScript(input).pipe(
    Effect.mapError((error) => new FaultScriptError({ reason: "invalid", message: oneLine(error) })),
  );

/**
 * Reads a script from its JSON text.
 *
 * @throws FaultScriptError `not_json` or `invalid`
 */
export const parse = (text: string): Effect.Effect<FaultScript, FaultScriptError> =>
  Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: (cause) =>
      new FaultScriptError({ reason: "not_json", message: `script: ${String(cause).replace(/\s+/g, " ")}` }),
  }).pipe(Effect.flatMap(decode));

const issues = SchemaIssue.makeFormatterStandardSchemaV1();

/** The first issue, in one line that a person can act on: `answers[0].break.kind: Expected …`. */
const oneLine = (error: Schema.SchemaError): string => {
  const issue = issues(error.issue).issues[0];
  const field = (issue?.path ?? [])
    .map((step) => (typeof step === "object" ? step.key : step))
    .reduce<string>((path, key) => (typeof key === "number" ? `${path}[${key}]` : `${path}.${String(key)}`), "");
  const problem = (issue?.message ?? error.message).replace(/\s*\n\s*/g, " ");
  return `${field === "" ? "script" : field.slice(1)}: ${problem}`;
};
