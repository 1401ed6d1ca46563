/**
 * Describes the answers of a FaultProvider and their breaks, as a small JSON document that is checked strictly.
 *
 * Answers are given in order, one for each request, and the last one repeats. A break has a `kind` and a place (`at`, with a count `n` for
 * places that are counted). Further conversations on the same server have their own scripts under `scripts`, chosen by the path prefix
 * `/s/NAME` or the request header `x-script: NAME`.
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

/** Maximum size of a script, in bytes. */
export const scriptBytesMax = 16 * 1024 * 1024;

/** Maximum deltas of one block. Prevents a short script from filling the memory. */
export const deltasMax = 1_000_000;

/** An error event of the provider, written in the format of the script's protocol. For a whole error response, use `status`. */
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
 * One block of content. Exactly one name is given: `reasoning`, `text` and `refusal` count deltas, `ping` counts keep-alives, `tool` and
 * `provider_tool` name a call, `error` is an error event and ends the stream, and `bytes` (base64) are sent unchanged, for example garbage,
 * half characters or foreign events.
 *
 * `words` follow the serial numbers of a text's deltas, one for each delta. A call's `input` gets a serial number; `unmarked` sends the
 * input without one, for a client that refuses fields unknown to its tool. `cut` ends the arguments in the middle although the call and the
 * stream end properly.
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
 * The kinds of break: a TCP reset, a FIN in the middle of the body, a proper end of the body without the protocol's terminal
 * event, silence until the client leaves, or keep-alives until the client leaves.
 */
export const BreakKind = Schema.Literals(["rst", "fin", "end", "stall", "keep_alive"]);
export type BreakKind = typeof BreakKind.Type;

/**
 * The places of a break.
 *
 * `accept`: the connection is accepted and nothing is read (on a reused connection: at the first byte of the request; only in the main
 * script, `answers`) · `request`: after `n` bytes of the request · `before_head` · `after_head` · `byte`: after `n` bytes of the body ·
 * `event`: after `n` events · `utf8`: inside the first multi-byte character at or after event `n` · `tool_arguments`: in the middle of the
 * first call's arguments · `terminal`: before the terminal event · `next_request`: this answer is complete, and the next request on the
 * same connection meets a dead socket.
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

/**
 * The kind and place of a break, with a count in units of the place. A break before the response head cannot have the kind `end` or
 * `keep_alive`.
 */
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

/** Keep-alives while an answer waits, one every `every_ms`: an SSE comment, or the protocol's ping event if it has one. */
export const KeepAlive = Schema.Struct({
  every_ms: Milliseconds.check(Schema.isGreaterThanOrEqualTo(1)),
  style: Schema.Literals(["comment", "event"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("comment" as const))),
});
export type KeepAlive = typeof KeepAlive.Type;

/**
 * Answers a resuming request with the events after its cursor, taken from the original answer of its response or conversation. `skip` is
 * the number of events after the cursor that are omitted, and `repeat` is the number of events before the cursor that are sent again.
 */
export const ResumeFault = Schema.Struct({
  skip: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  repeat: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
});
export type ResumeFault = typeof ResumeFault.Type;

/**
 * Answers a continuation request like a model that follows its instructions. The answer begins with the text that the request quotes, or
 * after the text with which the request ends. It continues to the end of the conversation's original answer. `preface` comes first, as from
 * a model that ignores its instructions. A request that continues nothing gets the answer's own content.
 */
export const GoesOn = Schema.Struct({ preface: Schema.optionalKey(Schema.String) });
export type GoesOn = typeof GoesOn.Type;

/** One answer. The default `content` is short and healthy. `raw` and `raw_file` are sent unchanged instead of `content`. */
export const Answer = Schema.Struct({
  /** Default: the protocol of the request's path. */
  protocol: Schema.optionalKey(Schema.Literals(protocols.ids)),
  status: Status.pipe(Schema.withDecodingDefaultKey(Effect.succeed(200))),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** Sent instead of a stream: a string as it is, any other value as JSON. A status outside 2xx has a body by default. */
  body: Schema.optionalKey(Schema.Json),
  content: Schema.optionalKey(Schema.Array(Block)),
  raw: Schema.optionalKey(Schema.String),
  /** Path of a file with recorded bytes. `FaultProviderOptions.directory` is the base of a relative path. */
  raw_file: Schema.optionalKey(Schema.String),
  /** Finish reason. Default: `tool` after a call, otherwise `stop`. `none` omits the terminal event. */
  finish: Schema.optionalKey(Schema.Literals(["stop", "tool", "length", "content_filter", "none"])),
  /** Responses protocol: marks the response as running in the background, so a client can resume it by `starting_after`. */
  background: Schema.optionalKey(Schema.Boolean),
  /** Gives every event an id, counted from 0, so a client can resume the stream by `Last-Event-ID`. */
  ids: Schema.optionalKey(Schema.Boolean),
  /** Continues after the cursor of the request, with the content of the resumed answer. */
  resume: Schema.optionalKey(ResumeFault),
  /** Continues the text of the request, with the content of the interrupted answer. */
  goes_on: Schema.optionalKey(GoesOn),
  usage: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  /** Delay before the response head, before the first event, and between events, in milliseconds. */
  head_delay_ms: Schema.optionalKey(Milliseconds),
  first_delay_ms: Schema.optionalKey(Milliseconds),
  delay_ms: Schema.optionalKey(Milliseconds),
  /** Bytes per write. Default: one event per write. */
  write_bytes: Schema.optionalKey(Schema.Natural.check(Schema.isGreaterThanOrEqualTo(1))),
  /** Sends everything in one write, so that the client receives all events together. Delays and keep-alives between events do not apply. */
  one_write: Schema.optionalKey(Schema.Boolean),
  /** `eof` sends no length, so the body ends with the connection. */
  framing: Schema.Literals(["chunked", "eof"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("chunked" as const))),
  keep_alive: Schema.optionalKey(KeepAlive),
  break: Schema.optionalKey(Break),
});
export type Answer = typeof Answer.Type;

const answers = Schema.Array(Answer).check(Schema.isMinLength(1));

/** The answers of a fault server, by conversation. */
export const FaultScript = Schema.Struct({
  answers: Schema.optionalKey(answers),
  /** Scripts of further conversations, by name. */
  scripts: Schema.optionalKey(Schema.Record(Schema.String, answers)),
  /** The answer to requests after the last answer of a conversation: that answer again, or a 500 that the log marks as `unscripted`. */
  after: Schema.Literals(["repeat", "error"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("repeat" as const))),
});
export type FaultScript = typeof FaultScript.Type;

/** A script as JSON, without its defaults. */
export type FaultScriptInput = typeof FaultScript.Encoded;

/** The script cannot be played. The message is one line that names the field. */
export class FaultScriptError extends Schema.TaggedError<FaultScriptError>()("FaultScriptError", {
  reason: Schema.Literals(["not_json", "invalid", "unreadable"]),
  message: Schema.String,
}) {}

const decodeScript = Schema.decodeUnknownEffect(FaultScript, { onExcessProperty: "error" });

/**
 * Checks a script and fills in its defaults.
 *
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

/** Formats the first issue as one line that a person can act on: `answers[0].break.kind: Expected …`. */
const oneLine = (error: Schema.SchemaError): string => {
  const issue = issues(error.issue).issues[0];
  const field = (issue?.path ?? [])
    .map((step) => (typeof step === "object" ? step.key : step))
    .reduce<string>((path, key) => (typeof key === "number" ? `${path}[${key}]` : `${path}.${String(key)}`), "");
  const problem = (issue?.message ?? error.message).replace(/\s*\n\s*/g, " ");
  return `${field === "" ? "script" : field.slice(1)}: ${problem}`;
};
