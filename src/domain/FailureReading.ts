/**
 * Reads a failure of unknown origin, for example the value of a caller's `classify`.
 *
 * Nothing is rejected, because every broken attempt needs a decision. An unknown literal becomes the one that permits the fewest retries,
 * an invalid wait becomes longer than any budget, and an invalid descriptive field is dropped.
 */

import {
  CancelledBy,
  ClockName,
  type Failure,
  type FailureKind,
  Fingerprint,
  kinds,
  RejectedReason,
  TransportOperation,
} from "./Failure.ts";
import * as Json from "./Json.ts";
import { label, labelCharactersMax } from "./Limits.ts";

/** Wait that replaces an invalid Retry-After. It exceeds any budget, and JSON can hold it. */
const endlessMs = Number.MAX_SAFE_INTEGER;

/**
 * Reads a value as a failure.
 *
 * @returns the value itself if it is a failure, else the most restrictive reading; `unknown` if it has no kind
 */
export const read = (value: unknown): Failure => {
  if (isFailure(value)) return value;
  const given = Json.record(value);
  const kind = given?.kind;
  if (given === undefined || !isKind(kind)) return { kind: "unknown" };
  const common = readCommon(given);
  switch (kind) {
    case "transport":
      return { kind, ...common, ...readTransport(given) };
    case "stalled":
      return { kind, ...common, clock: isClock(given.clock) ? given.clock : "run" };
    case "rejected":
      return { kind, ...common, reason: isReason(given.reason) ? given.reason : "invalid_request" };
    case "protocol":
      return { kind, ...common, reason: isProtocolReason(given.reason) ? given.reason : "oversize" };
    case "cancelled":
      return { kind, ...common, by: isBy(given.by) ? given.by : "caller" };
    default:
      return { kind, ...common };
  }
};

const readCommon = (given: Json.JsonRecord) => {
  const { code, fingerprint, status } = given;
  const wait = given.retry_after_ms;
  return {
    ...readFlag("retryable", given),
    ...readFlag("not_processed", given),
    ...readFlag("in_band", given),
    ...(wait === undefined ? {} : { retry_after_ms: isTime(wait) ? wait + 0 : endlessMs }),
    ...(isStatus(status) ? { status } : {}),
    ...labelOf("code", code),
    ...(isFingerprint(fingerprint) ? { fingerprint } : {}),
  };
};

const readTransport = (given: Json.JsonRecord) => ({
  ...(isOperation(given.operation) ? { operation: given.operation } : {}),
  ...labelOf("http2_code", given.http2_code),
  ...readFlag("reached_host_before", given),
});

/** Reads a flag. A value that is not a boolean counts as false. */
const readFlag = <const K extends string>(name: K, given: Json.JsonRecord): { readonly [_ in K]?: boolean } => {
  const value = given[name];
  // A computed key widens the type of the record, which has only this key.
  return value === undefined ? {} : ({ [name]: value === true } as { readonly [_ in K]: boolean });
};

/** Reads a label. Numbers are accepted, because gRPC codes and Node's errno are numbers. */
const labelOf = <const K extends string>(name: K, value: unknown): { readonly [_ in K]?: string } => {
  const text = typeof value === "number" ? String(value) : Json.string(value);
  // A computed key widens the type of the record, which has only this key.
  return text === "" ? {} : ({ [name]: label(text) } as { readonly [_ in K]: string });
};

const isTime = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value >= 0;
/** True for a valid wait. -0 is invalid, because JSON does not keep it and the stored value must be the one that was decided on. */
const isWait = (value: unknown): value is number => isTime(value) && !Object.is(value, -0);
const isStatus = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599;
const isFlag = (value: unknown): boolean => value === undefined || typeof value === "boolean";
const isLabel = (value: unknown): boolean =>
  value === undefined || (typeof value === "string" && value.length <= labelCharactersMax);

const isKind = (value: unknown): value is FailureKind => typeof value === "string" && Object.hasOwn(kinds, value);

const makeGuard = <A extends string>({ literals }: { readonly literals: ReadonlyArray<A> }) => {
  const words: ReadonlySet<unknown> = new Set(literals);
  return (value: unknown): value is A => words.has(value);
};
const isClock = makeGuard(ClockName);
const isReason = makeGuard(RejectedReason);
const isProtocolReason = makeGuard(kinds.protocol.fields.reason);
const isBy = makeGuard(CancelledBy);
const isOperation = makeGuard(TransportOperation);

const isFingerprint = (value: unknown): value is Fingerprint => {
  const print = Json.record(value);
  return (
    print !== undefined &&
    hasOnly(printFields, print) &&
    typeof print.name === "string" &&
    isLabel(print.name) &&
    isLabel(print.code) &&
    Json.natural(print.depth) !== undefined
  );
};

/**
 * Returns true if a value is a valid failure. Checked by hand, because every decision runs this check and a schema would take longer than
 * the decision itself.
 */
const isFailure = (value: unknown): value is Failure => {
  const given = Json.record(value);
  return (
    given !== undefined &&
    isKind(given.kind) &&
    hasOnly(fieldNames.get(given.kind) ?? printFields, given) &&
    hasCommon(given) &&
    hasOwn(given.kind, given)
  );
};

/**
 * Returns false for a key that holds `undefined`, which JSON cannot store, and for a key unknown to the schema, which may hold a secret.
 */
const hasOnly = (names: ReadonlySet<string>, given: Json.JsonRecord): boolean => {
  for (const key in given) if (given[key] === undefined || !names.has(key)) return false;
  return true;
};

const fieldNames: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(kinds).map(([kind, { fields }]) => [kind, new Set(Object.keys(fields))]),
);
const printFields: ReadonlySet<string> = new Set(Object.keys(Fingerprint.fields));

const hasCommon = (given: Json.JsonRecord): boolean =>
  isFlag(given.retryable) &&
  isFlag(given.not_processed) &&
  isFlag(given.in_band) &&
  (given.retry_after_ms === undefined || isWait(given.retry_after_ms)) &&
  (given.status === undefined || isStatus(given.status)) &&
  isLabel(given.code) &&
  (given.fingerprint === undefined || isFingerprint(given.fingerprint));

const hasOwn = (kind: FailureKind, given: Json.JsonRecord): boolean => {
  switch (kind) {
    case "transport":
      return (
        (given.operation === undefined || isOperation(given.operation)) &&
        isLabel(given.http2_code) &&
        isFlag(given.reached_host_before)
      );
    case "stalled":
      return isClock(given.clock);
    case "rejected":
      return isReason(given.reason);
    case "protocol":
      return isProtocolReason(given.reason);
    case "cancelled":
      return isBy(given.by);
    default:
      return true;
  }
};
