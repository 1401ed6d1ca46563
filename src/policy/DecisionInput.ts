/**
 * Defines the input of a decision and reads it from JSON.
 *
 * The same five values are stored with an incident, so that it can be decided again (law L9). JSON may omit everything except
 * `failure.kind`. Facts default to those of a fresh attempt, run and budget to their defaults, and jitter to 0.5.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import * as SchemaIssue from "effect/SchemaIssue";
import { AttemptFacts, fresh as freshFacts } from "../domain/AttemptFacts.ts";
import * as Failure from "../domain/Failure.ts";
import { label } from "../domain/Limits.ts";
import { Budget, defaultBudget, fresh as freshRun, RunFacts } from "../domain/RunFacts.ts";
import type { RunIncident } from "../domain/RunIncident.ts";

/** Everything on which a decision depends. */
export interface DecisionInput {
  readonly facts: AttemptFacts;
  readonly failure: Failure.Failure;
  readonly run: RunFacts;
  readonly budget: Budget;
  /** Number from 0 to 1 that spreads the delay of a retry. */
  readonly jitter: number;
}

/** Jitter of an input that omits it. */
export const defaultJitter = 0.5;

/**
 * Reports JSON that is not a decision input. `field` is a path, for example `facts.tools[0].phase`; the message begins with it.
 */
export class DecisionInputError extends Schema.TaggedError<DecisionInputError>()("DecisionInputError", {
  reason: Schema.Literals(["unknown_field", "missing_field", "bad_value"]),
  field: Schema.String,
  message: Schema.String,
}) {}

/**
 * Reads a decision input from parsed JSON.
 *
 * @param json an untrusted value
 * @returns the input with defaults filled in, or the first error
 */
export const parse = (json: unknown): Result.Result<DecisionInput, DecisionInputError> => {
  const filled = withKindDefaults(json);
  const kind = kindOf(filled);
  if (kind === undefined && isObject(filled) && "failure" in filled && isObject(filled.failure)) {
    return Result.fail(unknownKindError(filled.failure));
  }
  const decoded = decoders[kind ?? "unknown"](filled);
  return Result.mapError(decoded, (error) => toInputError(error.issue, filled));
};

/**
 * Returns the input of a stored incident, adapted so that the current rules give its decision again (law L9).
 *
 * Version 1 had no codes, so it retried a failure with omitted flags by its kind alone. It also asked about every refused continuation,
 * even if credentials could be refreshed.
 *
 * @param incident an incident as stored
 */
export const ofIncident = (incident: RunIncident): DecisionInput => {
  const { decision, facts, failure, jitter, run } = incident;
  const version = decision.policy_version;
  const budget = version === "1" || version === "2" ? budgetOfVersion2(incident) : incident.budget;
  if (version !== "1") return { facts, failure, run, budget, jitter };
  const asked = run.mode === "continue" ? { ...run, can_refresh_credentials: false } : run;
  return { facts, failure: failureOfVersion1(failure), run: asked, budget, jitter };
};

/**
 * Versions 1 and 2 treated an exhausted `max_not_processed` differently. A request that was not sent was not retried, and a failure whose
 * `not_processed` was overruled by progress counted as an ordinary retry.
 */
const budgetOfVersion2 = ({ budget, facts, run }: RunIncident): Budget => {
  if (run.not_processed_retries < budget.max_not_processed) return budget;
  if (facts.delivery === "not_sent") return { ...budget, max_auto_retries: 0 };
  const isOverruled = facts.progress === "reasoning" || facts.progress === "output";
  return isOverruled ? { ...budget, max_not_processed: run.not_processed_retries + 1 } : budget;
};

const failureOfVersion1 = (failure: Failure.Failure): Failure.Failure => {
  if (failure.kind === "transport")
    return { retryable: true, not_processed: failure.http2_code === "REFUSED_STREAM", ...failure };
  if (failure.kind === "server_error")
    return { retryable: failure.status !== 501 && failure.status !== 505, ...failure };
  return failure;
};

const documentSchema = <const K extends Failure.FailureKind>(kind: K) =>
  Schema.Struct({
    facts: AttemptFacts.pipe(Schema.withDecodingDefaultKey(Effect.succeed(freshFacts))),
    failure: Failure.kinds[kind],
    run: RunFacts.pipe(Schema.withDecodingDefaultKey(Effect.succeed(freshRun))),
    budget: Budget.pipe(Schema.withDecodingDefaultKey(Effect.succeed(defaultBudget))),
    jitter: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed(defaultJitter)),
    ),
  });

type Decoder = (json: unknown) => Result.Result<DecisionInput, Schema.SchemaError>;

const decoder = (kind: Failure.FailureKind): Decoder => {
  // Restores the union over kinds, which the type of `document` loses. Every document decodes to one member of `Failure`.
  const schema: Schema.Decoder<DecisionInput> = documentSchema(kind) as unknown as Schema.Decoder<DecisionInput>;
  return Schema.decodeUnknownResult(schema, { onExcessProperty: "error" });
};

/** One decoder per kind, so that errors describe the intended kind. */
const decoders = Object.fromEntries(
  Object.keys(Failure.kinds).map((kind) => [kind, decoder(kind as Failure.FailureKind)]),
  // `Object.keys` and `fromEntries` lose the literal keys of the record.
) as Record<Failure.FailureKind, Decoder>;

/** Defaults for the fields of a kind. For cancels and rejections these values are never retried. */
const kindDefaults: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  stalled: { clock: "idle" },
  rejected: { reason: "invalid_request" },
  protocol: { reason: "damaged_frame" },
  cancelled: { by: "caller" },
};

const withKindDefaults = (json: unknown): unknown => {
  const kind = kindOf(json);
  const defaults = kind === undefined ? undefined : kindDefaults[kind];
  if (defaults === undefined || !isObject(json) || !isObject(json.failure)) return json;
  return { ...json, failure: { ...defaults, ...json.failure } };
};

const kindOf = (json: unknown): Failure.FailureKind | undefined => {
  if (!isObject(json) || !isObject(json.failure)) return undefined;
  const kind = json.failure.kind;
  return typeof kind === "string" && Object.hasOwn(Failure.kinds, kind)
    ? // `hasOwn` proves that it is a key of the record.
      (kind as Failure.FailureKind)
    : undefined;
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const unknownKindError = (failure: Readonly<Record<string, unknown>>): DecisionInputError => {
  const kinds = Object.keys(Failure.kinds)
    .map((kind) => `"${kind}"`)
    .join(" | ");
  return new DecisionInputError({
    reason: "kind" in failure ? "bad_value" : "missing_field",
    field: "failure.kind",
    message: `failure.kind: expected ${kinds}, got ${describe(failure.kind)}`,
  });
};

const format = SchemaIssue.makeFormatterStandardSchemaV1();

const toInputError = (issue: SchemaIssue.Issue, json: unknown): DecisionInputError => {
  const first = format(issue).issues[0];
  const path = (first?.path ?? []).map((step) => (typeof step === "object" ? step.key : step));
  const field = path.length === 0 ? "input" : path.reduce<string>(pathStep, "");
  const message = first?.message ?? "Expected a decision input";
  if (message === "Expected no excess property") {
    return new DecisionInputError({ reason: "unknown_field", field, message: `${field}: unknown field` });
  }
  if (message === "Missing key") {
    return new DecisionInputError({ reason: "missing_field", field, message: `${field}: missing` });
  }
  const expected = message.charAt(0).toLowerCase() + message.slice(1);
  const got = describe(path.reduce(member, json));
  return new DecisionInputError({ reason: "bad_value", field, message: `${field}: ${expected}, got ${got}` });
};

/** Quotes a member name unless it is a plain word, because the name is untrusted and may contain a line break. */
const pathStep = (path: string, step: PropertyKey): string => {
  if (typeof step === "number") return `${path}[${step}]`;
  const name = label(String(step));
  const plain = /^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? name : JSON.stringify(name);
  return path === "" ? plain : `${path}.${plain}`;
};

const member = (value: unknown, step: PropertyKey): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, step)
    ? // `hasOwn` proves that the member exists.
      (value as Readonly<Record<PropertyKey, unknown>>)[step]
    : undefined;

/** Maximum length of a wrong value that an error quotes, in UTF-16 code units. */
const shownCharactersMax = 64;

const describe = (value: unknown): string => {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value);
  return text.length <= shownCharactersMax ? text : `${text.slice(0, shownCharactersMax)}…`;
};
