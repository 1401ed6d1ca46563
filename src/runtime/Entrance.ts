/**
 * Validates the options of a run, or says what is wrong with them.
 *
 * Callers can bypass the types, but a record must be readable whatever they pass (L8). So every field is checked once, before the first
 * request, and a value that the record, the facts or a clock could not hold is refused, with the name of its field. The provider and the
 * budget are copied field by field, so that nothing else of a caller's objects is stored.
 */
import * as Effect from "effect/Effect";
import { toMs } from "../domain/Durations.ts";
import * as Json from "../domain/Json.ts";
import { label, labelCharactersMax } from "../domain/Limits.ts";
import { Budget, defaultBudget, type Provider } from "../domain/RunFacts.ts";
import { Executor, ToolEffect } from "../domain/SideEffects.ts";
import type { ClockOptions } from "./contract/Clocks.ts";
import type { RunOptions } from "./contract/RunOptions.ts";

/**
 * Validates options.
 *
 * @param options the options as a caller gave them
 * @returns the options that a run may use, or what is wrong: the field, the expected value and the given one
 */
export const admit = <P, E, R>(options: RunOptions<P, E, R>): RunOptions<P, E, R> | string => {
  if (Json.record(options) === undefined) return `options: expected an object, got ${describe(options)}`;
  const problem =
    problemOfProvider("provider", options.provider) ??
    problemOfPath("path", options.path) ??
    problemOfFinishes(options.finishFailures) ??
    problemOfTools(options.tools) ??
    problemOfFunctions(options) ??
    problemOfTexts(options) ??
    problemOfWords(options) ??
    problemOfClocks(options.clocks) ??
    problemOfBudget(options.budget) ??
    problemOfPolicy(options.policy) ??
    problemOfReplaced(options);
  if (problem !== undefined) return problem;
  const { budget } = options;
  const routes = admitStage("routes", "Routes.of([…])", options.routes);
  if (typeof routes === "string") return routes;
  const seam = admitStage("seam", "Seam.of(…)", options.seam);
  if (typeof seam === "string") return seam;
  const linger = admitStage("linger", "Linger.of(ms)", options.linger);
  if (typeof linger === "string") return linger;
  const provider = trimProvider(options.provider);
  // Nearly always the options need no change. A waiting run then keeps no copy of the options.
  const isKept = provider === options.provider && routes === undefined;
  if (isKept && budget === undefined) return options;
  return {
    ...options,
    provider,
    ...(routes === undefined ? {} : { routes }),
    ...(budget === undefined ? {} : { budget: withBudgetDefaults(budget) }),
  };
};

/** Returns what is wrong with the id of a run; undefined if nothing is. */
export const problemOfRunId = (runId: unknown): string | undefined =>
  typeof runId === "string" && runId !== "" && runId.length <= labelCharactersMax
    ? undefined
    : `runId: expected 1 to ${labelCharactersMax} characters, got ${describe(runId)}`;

/** Returns what is wrong with the transcript and cursor of a take-up; undefined if nothing is. */
export const problemOfTakeUp = (transcript: unknown, cursor: unknown): string | undefined =>
  typeof transcript !== "string"
    ? `transcript: expected a string, got ${describe(transcript)}`
    : cursor === undefined || typeof cursor === "string"
      ? undefined
      : `cursor: expected a string, got ${describe(cursor)}`;

/** Asks a stage to check its own options. */
const admitStage = <S extends { readonly admit: (stage: S) => S | string; readonly begin: unknown }>(
  name: string,
  expected: string,
  stage: S | undefined,
): S | string | undefined => {
  if (stage === undefined) return undefined;
  const it = Json.record(stage);
  return typeof it?.admit === "function" && typeof it.begin === "function"
    ? stage.admit(stage)
    : `${name}: expected ${expected} of effect-stream-recovery/stages, got ${describe(stage)}`;
};

/** Options of earlier versions, with their replacements in `effect-stream-recovery/stages`. */
const replaced = [
  ["lingerMs", "linger: Linger.of(ms)"],
  ["maxSeams", "seam: Seam.of(make, { max })"],
  ["ownRoute", "routes: Routes.of(routes, { own })"],
] as const;

/** Refuses a replaced option, because a run without it would behave differently. */
const problemOfReplaced = (options: object): Problem => {
  for (const [name, by] of replaced)
    if (name in options) return `${name}: expected ${by} of effect-stream-recovery/stages in its place`;
  return undefined;
};

type Problem = string | undefined;

/** Returns what is wrong with a provider; undefined if nothing is. */
export const problemOfProvider = (name: string, provider: unknown): Problem => {
  const it = Json.record(provider);
  if (it === undefined) return `${name}: expected an object, got ${describe(provider)}`;
  const { id, model, reasoning } = it;
  if (id === "") return `${name}.id: expected a name, got ""`;
  if (typeof id !== "string" || id.length > labelCharactersMax)
    return `${name}.id: expected a name of 1 to ${labelCharactersMax} characters, got ${describe(id)}`;
  if (model !== undefined && typeof model !== "string") return `${name}.model: expected a name, got ${describe(model)}`;
  if (reasoning !== undefined && typeof reasoning !== "boolean")
    return `${name}.reasoning: expected a boolean, got ${describe(reasoning)}`;
  return undefined;
};

/** Maximum length of a path's name and of a credential's digest. An origin with its proxy fits into it. */
const pathCharactersMax = 2_048;

/** Limits the length of a name, because the process keeps up to a thousand names for its lifetime (L11). */
const problemOfName = (name: string, given: string): Problem =>
  given.length <= pathCharactersMax
    ? undefined
    : `${name}: expected at most ${pathCharactersMax} characters, got ${describe(given)}`;

/** Returns what is wrong with a path; undefined if nothing is. */
export const problemOfPath = (name: string, path: unknown): Problem => {
  if (path === undefined) return undefined;
  if (typeof path === "string") return problemOfName(name, path);
  const it = Json.record(path);
  if (it === undefined) return `${name}: expected the name of a path or a Path, got ${describe(path)}`;
  if (typeof it.id !== "string") return `${name}.id: expected a name, got ${describe(it.id)}`;
  if (it.credential !== undefined && typeof it.credential !== "string")
    return `${name}.credential: expected a digest, got ${describe(it.credential)}`;
  const tooLong = problemOfName(`${name}.id`, it.id) ?? problemOfName(`${name}.credential`, it.credential ?? "");
  if (tooLong !== undefined) return tooLong;
  const way = Json.record(it.way);
  if (it.way === undefined || (Effect.isEffect(way?.probe) && typeof way?.dropIdle === "function")) return undefined;
  return `${name}.way: expected an object with \`probe\` and \`dropIdle\`, got ${describe(it.way)}`;
};

const finishFailures = ["refused", "empty", "model_length"] as const;

const problemOfFinishes = (finishes: unknown): Problem => {
  if (finishes === undefined) return undefined;
  if (!Array.isArray(finishes)) return `finishFailures: expected a list, got ${describe(finishes)}`;
  for (const [at, it] of finishes.entries()) {
    const problem = problemOfLiteral(`finishFailures[${at}]`, it, finishFailures);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** Copies only the fields that are stored. A long model name is shortened instead of refused, because clients may choose the name. */
export const trimProvider = (provider: Provider): Provider => {
  const { id, model, reasoning } = provider;
  const wanted = 1 + (model === undefined ? 0 : 1) + (reasoning === undefined ? 0 : 1);
  if (Object.keys(provider).length === wanted && (model?.length ?? 0) <= labelCharactersMax) return provider;
  return {
    id,
    ...(model === undefined ? {} : { model: label(model) }),
    ...(reasoning === undefined ? {} : { reasoning }),
  };
};

const problemOfTools = (tools: unknown): Problem => {
  if (!Array.isArray(tools)) return `tools: expected a list, got ${describe(tools)}`;
  for (const [at, tool] of tools.entries()) {
    // A tool may be a function whose properties state its boundary.
    const it: Json.JsonRecord | undefined = typeof tool === "function" ? tool : Json.record(tool);
    if (it === undefined) return `tools[${at}]: expected a tool, got ${describe(tool)}`;
    if (typeof it.name !== "string") return `tools[${at}].name: expected a name, got ${describe(it.name)}`;
    const wrong =
      problemOfLiteral(`tools[${at}].executor`, it.executor, Executor.literals) ??
      problemOfLiteral(`tools[${at}].effect`, it.effect, ToolEffect.literals);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
};

const problemOfFunctions = <P, E, R>(options: RunOptions<P, E, R>): Problem => {
  for (const name of ["attempt", "observe"] as const) {
    if (typeof options[name] !== "function") return `${name}: expected a function, got ${describe(options[name])}`;
  }
  for (const name of ["canContinue", "classify", "cursor", "sizeOf"] as const) {
    const it: unknown = options[name];
    if (it !== undefined && typeof it !== "function") return `${name}: expected a function, got ${describe(it)}`;
  }
  const { refreshCredentials, signal } = options;
  if (refreshCredentials !== undefined && !Effect.isEffect(refreshCredentials))
    return `refreshCredentials: expected an Effect, got ${describe(refreshCredentials)}`;
  if (signal !== undefined && typeof Json.record(signal)?.addEventListener !== "function")
    return `signal: expected an AbortSignal, got ${describe(signal)}`;
  return undefined;
};

const problemOfTexts = <P, E, R>(options: RunOptions<P, E, R>): Problem => {
  if (options.runId !== undefined) {
    const problem = problemOfRunId(options.runId);
    if (problem !== undefined) return problem;
  }
  for (const name of ["transcript", "retryOf"] as const) {
    const it: unknown = options[name];
    if (it !== undefined && typeof it !== "string") return `${name}: expected a string, got ${describe(it)}`;
  }
  const group: unknown = options.group;
  return group === undefined || (typeof group === "string" && group !== "" && group.length <= labelCharactersMax)
    ? undefined
    : `group: expected 1 to ${labelCharactersMax} characters, got ${describe(group)}`;
};

const problemOfWords = <P, E, R>(options: RunOptions<P, E, R>): Problem => {
  for (const name of ["discardable", "emptyIsFailure", "streaming"] as const) {
    const it: unknown = options[name];
    if (it !== undefined && typeof it !== "boolean") return `${name}: expected a boolean, got ${describe(it)}`;
  }
  const { asks, continueText, holdMaxMs, requestTokens, reveal } = options;
  if (requestTokens !== undefined && !(Number.isSafeInteger(requestTokens) && requestTokens >= 0))
    return `requestTokens: expected a whole number, not below 0, got ${describe(requestTokens)}`;
  if (holdMaxMs !== undefined && !(toMs(holdMaxMs) >= 0))
    return `holdMaxMs: expected milliseconds or a duration, not below 0, got ${describe(holdMaxMs)}`;
  return (
    (asks === undefined ? undefined : problemOfLiteral("asks", asks, ["always", "if_it_matters"])) ??
    (reveal === undefined ? undefined : problemOfLiteral("reveal", reveal, ["live", "on_complete"])) ??
    (continueText === undefined ? undefined : problemOfLiteral("continueText", continueText, ["ask", "auto"]))
  );
};

const clockNames: ReadonlyArray<string> = ["first_progress", "idle", "silence", "attempt", "run"];

const problemOfClocks = (clocks: ClockOptions | undefined): Problem => {
  if (clocks === undefined) return undefined;
  if (Json.record(clocks) === undefined) return `clocks: expected an object, got ${describe(clocks)}`;
  for (const [name, ms] of Object.entries(clocks ?? {})) {
    if (!clockNames.includes(name)) return `clocks.${label(name)}: expected one of ${clockNames.join(", ")}`;
    if (ms === undefined || ms === false || toMs(ms) > 0) continue;
    return `clocks.${name}: expected milliseconds or a duration above 0, or false, got ${describe(ms)}`;
  }
  return undefined;
};

const problemOfBudget = (budget: unknown): Problem => {
  if (budget === undefined) return undefined;
  if (Json.record(budget) === undefined) return `budget: expected an object, got ${describe(budget)}`;
  for (const [name, value] of Object.entries(budget ?? {})) {
    if (!isLimit(name)) return `budget.${label(name)}: expected one of ${limitNames.join(", ")}`;
    if (value === undefined || (name === "max_outage_ms" && value === "forever")) continue;
    const limit = typeof value === "number" ? value : Number.NaN;
    const whole = name.endsWith("_ms") ? Number.isFinite(limit) : Number.isSafeInteger(limit);
    if (whole && limit >= 0) continue;
    const expected = name.endsWith("_ms") ? "a finite number of milliseconds" : "a whole number";
    return `budget.${name}: expected ${expected}, not below 0, got ${describe(value)}`;
  }
  return undefined;
};

// `Object.keys` does not keep the literal types of the schema's fields.
const limitNames = Object.keys(Budget.fields) as ReadonlyArray<keyof Budget>;
const isLimit = (name: string): name is keyof Budget => limitNames.some((limit) => limit === name);

/** Returns the budget with its defaults. A limit that is `undefined` is ignored, because plain JavaScript may spread one. */
const withBudgetDefaults = (given: Partial<Budget>): Budget => {
  const budget: Record<string, unknown> = { ...defaultBudget };
  for (const name of limitNames) {
    const limit = given[name];
    // JSON has no -0. The stored limit must equal the limit that decisions use, so -0 becomes 0.
    if (limit !== undefined) budget[name] = typeof limit === "number" ? limit + 0 : limit;
  }
  // Each limit was checked above and is stored under its own name.
  return budget as typeof defaultBudget;
};

const problemOfPolicy = (policy: unknown): Problem => {
  if (policy === undefined) return undefined;
  const it = Json.record(policy);
  if (it === undefined || typeof it.decide !== "function")
    return `policy: expected a RecoveryPolicy, got ${describe(policy)}`;
  return typeof it.name === "string" && it.name !== "" && it.name.length <= labelCharactersMax
    ? undefined
    : `policy.name: expected a name of 1 to ${labelCharactersMax} characters, got ${describe(it.name)}`;
};

const problemOfLiteral = (field: string, given: unknown, words: ReadonlyArray<string>): Problem =>
  words.some((word) => word === given)
    ? undefined
    : `${field}: expected ${words.map((word) => `"${word}"`).join(" or ")}, got ${describe(given)}`;

/** Describes a value for a message: its type and size, or a number as it is. The content of a string is never shown. */
export const describe = (given: unknown): string => {
  if (given === undefined) return "nothing";
  if (typeof given === "number" || typeof given === "boolean" || given === null) return String(given);
  if (typeof given === "string") return given === "" ? `""` : `${given.length} characters`;
  return Array.isArray(given) ? "a list" : `a value of type ${typeof given}`;
};
