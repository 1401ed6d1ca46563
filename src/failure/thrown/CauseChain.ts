/**
 * Walks the cause chain of an unknown value without ever throwing: causes, aggregates, Effect causes, SDK wrappers.
 */
import { causeDepthMax } from "../../domain/Limits.ts";

/** Maximum objects of one error that are inspected. A Proxy can answer every key with a new object. */
export const nodesMax = 64;

/** Maximum elements of one list inside an error (`errors`, `reasons`) that are inspected. */
export const listElementsMax = 16;

/** Maximum length of a message that is searched, in UTF-16 code units. */
export const messageCharactersMax = 4_096;

/** One object or string of a chain. `via` is the field that led to it, `depth` counts from 0. */
export interface Link {
  readonly value: object | string;
  readonly depth: number;
  readonly via: string;
}

/**
 * Fields that lead to inner errors, most specific first. `suppressed` is the original error of a SuppressedError. `lastError` is the last
 * failure of the AI SDK's RetryError, which is the one that counts. `reason`, `reasons`, `failure` and `defect` are Effect's, `left` and
 * `right` those of Effect 3; `http` is AiError's context.
 */
const leads = [
  "suppressed",
  "lastError",
  "reason",
  "cause",
  "error",
  "reasons",
  "defect",
  "failure",
  "left",
  "right",
  "originalError",
  "errors",
  "response",
  "http",
  "data",
  "responseBody",
  "body",
  "$response",
] as const;

/** Key under which Effect 3 keeps the cause of a FiberFailure. */
const fiberFailureCause = Symbol.for("effect/Runtime/FiberFailure/Cause");

/**
 * Lists the parts of an error. The error itself comes first, and each cause comes before its siblings.
 *
 * @param error any thrown value
 * @returns at most `nodesMax` links, none deeper than `causeDepthMax`, every object once
 */
export const listLinks = (error: unknown): ReadonlyArray<Link> => {
  const links: Array<Link> = [];
  const seen = new Set<object>();
  const visit = (value: unknown, depth: number, via: string): void => {
    if (links.length >= nodesMax || depth > causeDepthMax) return;
    if (typeof value === "string") {
      if (value !== "") links.push({ value, depth, via });
      return;
    }
    if (!isObject(value) || seen.has(value)) return;
    seen.add(value);
    if (isList(value)) {
      for (const element of elements(value)) visit(element, depth, via);
      return;
    }
    links.push({ value, depth, via });
    for (const lead of leads) visitLead(value, lead, depth);
    visit(get(value, fiberFailureCause), depth + 1, "cause");
  };
  const visitLead = (value: object, lead: string, depth: number): void => {
    const next = get(value, lead);
    if (lead === "errors" && isObject(get(value, "lastError"))) return;
    visit(lead === "reasons" ? orderReasons(next) : next, depth + 1, lead);
  };
  visit(error, 0, "");
  return links;
};

/**
 * Orders the reasons: failures first, then defects, and interruptions only if nothing failed. So a finalizer's defect cannot hide a
 * failure.
 */
const orderReasons = (reasons: unknown): unknown => {
  const withTag = (tag: string) => elements(reasons).filter((reason) => text(reason, "_tag") === tag);
  const failed = [...withTag("Fail"), ...withTag("Die")];
  return withTag("Fail").length > 0 ? failed : [...failed, ...withTag("Interrupt")];
};

/** Reads a field of any value. A field whose getter or proxy throws counts as missing. */
export const get = (value: unknown, key: PropertyKey): unknown => {
  if (!isObject(value) && typeof value !== "function") return undefined;
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
};

/** Reads a field that holds a string, truncated to `messageCharactersMax`. */
export const text = (value: unknown, key: PropertyKey): string | undefined => {
  const found = get(value, key);
  return typeof found === "string" && found !== "" ? found.slice(0, messageCharactersMax) : undefined;
};

/** Reads a field that holds a finite number. */
export const number = (value: unknown, key: PropertyKey): number | undefined => {
  const found = get(value, key);
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
};

/** Returns the first `listElementsMax` elements of a list of unknown origin; none for any other value. */
export const elements = (value: unknown): Array<unknown> => {
  if (!isList(value)) return [];
  const length = number(value, "length") ?? 0;
  return Array.from({ length: Math.max(0, Math.min(length, listElementsMax)) }, (_, index) => get(value, index));
};

/** Returns the name of the class of a value, because `Error` subclasses of SDKs often set no `name`. */
export const className = (value: object): string | undefined => {
  try {
    const made = get(Reflect.getPrototypeOf(value), "constructor");
    return typeof made === "function" ? text(made, "name") : undefined;
  } catch {
    return undefined; // a proxy that hides its prototype
  }
};

/** Returns true for an instance of a class (an error, a tagged value), false for a plain object as in parsed JSON. */
export const isInstance = (value: object): boolean => {
  const name = className(value);
  return name !== undefined && name !== "Object";
};

/** Returns true for an object. Functions are excluded: they have fields too, but no thrown error contains another one in a function. */
export const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** Returns true for a list; false for a revoked proxy. */
export const isList = (value: unknown): value is ReadonlyArray<unknown> => {
  try {
    return Array.isArray(value);
  } catch {
    return false; // a revoked proxy
  }
};
