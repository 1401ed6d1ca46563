/**
 * Checks and prepares the input of a continuation: a copy of the body, the kept items, and for each complete call its result or a sentence
 * that replaces the result. All input is checked, because a runtime may have read it back from its own storage.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import * as Json from "../../domain/Json.ts";
import type { SeamPlan } from "../../seam/TextSeam.ts";
import { ReceivedAnswer, type ReceivedItem } from "./Received.ts";

/** Maximum size of a request body that is continued, as JSON, in UTF-16 code units. Anthropic accepts 32 MB, the others less. */
export const bodyCharactersMax = 32 * 1024 * 1024;

/**
 * A continuation that cannot be built; `field` names the invalid input.
 *
 * `not_json` and `too_large`: body or received state. `invalid`: a field violates its protocol. `several_choices`: no protocol can continue
 * several responses at once. `structured_output`: a response that must be one JSON document cannot continue in the middle. `not_text`:
 * content was shown that no request can hold (a picture, audio without a transcript). `server_state`: the provider keeps the conversation,
 * so its content is unknown here. `contradiction`: a result for a call that did not run, or two results for one call. `seam`: the kept
 * response does not continue the text that was shown.
 */
export class ContinuationError extends Schema.TaggedError<ContinuationError>()("ContinuationError", {
  reason: Schema.Literals([
    "not_json",
    "too_large",
    "invalid",
    "several_choices",
    "structured_output",
    "not_text",
    "server_state",
    "contradiction",
    "seam",
  ]),
  field: Schema.String,
  message: Schema.String,
}) {}

/** The outcome of a call, as in `AttemptContext.calls` of a run. No other field is read. */
export interface CallOutcome {
  readonly attempt: number;
  readonly call: string;
  readonly outcome: "settled" | "not_run" | "unknown" | "it_ran" | "it_did_not_run";
}

/** The result of a settled call, as its runtime reports it. */
export interface CallResult {
  readonly attempt: number;
  readonly call: string;
  /** A string, or the protocol's own form: a list of content blocks, Gemini's response object, or a complete output item. */
  readonly output: unknown;
  /** True if the tool reported a failure. Default false. */
  readonly failed?: boolean;
}

/** The input of a continuation. */
export interface ContinuationInput {
  /** The request body of the broken attempt, as parsed JSON. It is not changed. */
  readonly body: unknown;
  /** The kept part of the broken response, from `Continuation.collect` or from storage. */
  readonly received: unknown;
  /** The outcome of every call of the run. Calls of other responses are ignored. */
  readonly calls: ReadonlyArray<CallOutcome>;
  /** The available results of settled calls. */
  readonly results: ReadonlyArray<CallResult>;
  /**
   * The plan for continuing after shown text: `AttemptContext.seam`. If omitted, the request asks the model for the rest, without a proof
   * that the rest follows the shown text.
   */
  readonly seam?: SeamPlan | undefined;
}

/** The closing of a call: its result, or a sentence that explains why there is none. */
export interface Closing {
  readonly output: unknown;
  readonly failed: boolean;
}

/** A piece of the response. A complete call has a closing. */
export interface KeptItem {
  readonly type: ReceivedItem["type"];
  readonly whole: boolean;
  readonly json: Json.JsonRecord;
  readonly closing: Closing | undefined;
}

/** The checked input that a protocol's builder receives. */
export interface Prepared {
  readonly body: Json.JsonRecord;
  readonly items: ReadonlyArray<KeptItem>;
  readonly whole: boolean;
  readonly seam: SeamPlan | undefined;
}

/** The text that the model reads instead of a missing result. */
export const sentences: Readonly<Record<CallOutcome["outcome"], string>> = {
  settled:
    "This tool call ran to its end, but its result was lost when the connection broke. Do not run it again just to see the result; check what it did if you need to know.",
  not_run: "This tool call was not run: the connection broke before it started. Call it again if it is still needed.",
  unknown:
    "The outcome of this tool call is unknown: the connection broke before it was recorded. It may have taken effect or not. Check before you call it again.",
  it_ran:
    "This tool call was confirmed to have run; its result is not available. Do not call it again to get the result.",
  it_did_not_run: "This tool call was confirmed not to have run. Call it again if it is still needed.",
};

/** Fails with the error of a field. */
export const refusal = (
  reason: ContinuationError["reason"],
  field: string,
  message: string,
): Result.Result<never, ContinuationError> =>
  Result.fail(new ContinuationError({ reason, field, message: `${field}: ${message}` }));

/**
 * Checks the input. Returns a prepared copy, or the error of the first invalid field.
 *
 * @param protocol the protocol of the body
 */
export const prepare = (protocol: string, input: ContinuationInput): Result.Result<Prepared, ContinuationError> =>
  Result.gen(function* () {
    const body = yield* copyOf(input.body);
    const received = yield* readReceived(protocol, input.received);
    const results = yield* resultsOf(received, input);
    const whole = received.whole === true;
    // An item that is marked `untold` was shown but cannot be sent back. The model would not know it, and could begin by repeating it.
    if (!whole && received.items.some(isUntold))
      return yield* refusal("not_text", "received", "a shown part cannot be sent back");
    const items = received.items
      .filter((item) => !isUntold(item))
      .map((item): KeptItem => {
        const key = keyOf(item);
        return {
          type: item.type,
          whole: item.whole,
          json: item.json,
          closing: item.type === "call" && item.whole ? closingOf(results.get(key), outcomeOf(input, key)) : undefined,
        };
      });
    return { body, items, whole, seam: input.seam };
  });

const isUntold = ({ json, type }: ReceivedItem): boolean => type === "text" && json.untold === true;

const copyOf = (body: unknown): Result.Result<Json.JsonRecord, ContinuationError> => {
  const text = jsonOf(body);
  const copy = text === undefined ? undefined : Json.record(Json.parse(text)?.json);
  if (text === undefined || copy === undefined) return refusal("not_json", "body", "expected a JSON object");
  if (text.length > bodyCharactersMax)
    return refusal("too_large", "body", `expected at most ${bodyCharactersMax} characters of JSON, got ${text.length}`);
  return Result.succeed(copy);
};

/** Undefined for values that JSON cannot represent (a cycle, a BigInt). */
const jsonOf = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value);
  } catch {
    // The caller converts undefined to a typed error that names the field.
    return undefined;
  }
};

const decodeReceived = Schema.decodeUnknownResult(ReceivedAnswer);

const readReceived = (protocol: string, value: unknown): Result.Result<ReceivedAnswer, ContinuationError> => {
  const decoded = decodeReceived(value);
  if (Result.isFailure(decoded)) return refusal("invalid", "received", String(decoded.failure.message));
  const received = decoded.success;
  if (received.protocol !== protocol)
    return refusal("invalid", "received.protocol", `expected ${protocol}, got ${received.protocol}`);
  if (received.overflow) return refusal("too_large", "received", "the response exceeded the limit of what is kept");
  if (received.choices > 1)
    return refusal("several_choices", "received.choices", `expected one choice, got ${received.choices}`);
  return Result.succeed(received);
};

type Results = ReadonlyMap<string, CallResult>;

const resultsOf = (received: ReceivedAnswer, input: ContinuationInput): Result.Result<Results, ContinuationError> => {
  const known = new Set(received.items.flatMap((item) => (item.type === "call" && item.whole ? [keyOf(item)] : [])));
  const results = new Map<string, CallResult>();
  for (const [at, result] of input.results.entries()) {
    const key = keyOf(result);
    if (!known.has(key)) continue;
    const outcome = outcomeOf(input, key);
    if (results.has(key)) return refusal("contradiction", `results[${at}]`, `a second result for the call ${key}`);
    if (outcome === "not_run" || outcome === "it_did_not_run")
      return refusal("contradiction", `results[${at}]`, `a result for the call ${key}, whose outcome is ${outcome}`);
    results.set(key, result);
  }
  return Result.succeed(results);
};

const keyOf = ({ attempt, call }: { readonly attempt: number; readonly call?: string }): string =>
  `${attempt}/${call ?? ""}`;

/** Returns the outcome of a call. A call that the run does not list may have run. */
const outcomeOf = ({ calls }: ContinuationInput, key: string): CallOutcome["outcome"] =>
  calls.find((call) => keyOf(call) === key)?.outcome ?? "unknown";

const closingOf = (result: CallResult | undefined, outcome: CallOutcome["outcome"]): Closing =>
  result === undefined
    ? { output: sentences[outcome], failed: outcome !== "settled" && outcome !== "it_ran" }
    : { output: result.output, failed: result.failed === true };
