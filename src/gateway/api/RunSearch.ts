/**
 * Parses searches from the page's form and from the API, and finds their runs at a bounded cost.
 */
import { Effect, Result } from "effect";
import { Rule } from "../../domain/Decision.ts";
import { labelCharactersMax } from "../../domain/Limits.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { isListed, type RunQuery } from "../../recorder/RunFilter.ts";
import { RunRecord } from "../../recorder/RunRecord.ts";
import type { RunRecorder } from "../../recorder/RunRecorder.ts";
import { ApiInvalid } from "./Api.ts";

/**
 * Maximum number of records that one search reads if it filters by rule or by the run's end. The store has a column for neither, so the
 * records are read one by one.
 * The next page continues after the last record that was read.
 */
export const scannedRunsMax = 2_000;

const scanPage = 200;

/** Names of the search parameters in an address. */
export const searchFields = [
  "q",
  "model",
  "provider",
  "since",
  "until",
  "state",
  "broken",
  "rule",
  "end",
  "before",
  "limit",
] as const;
/** Name of a search parameter. */
export type SearchField = (typeof searchFields)[number];

/** Unparsed parameters. A missing or empty parameter does not restrict the search. */
export type SearchSent = { readonly [F in SearchField]?: string | undefined };

/** A parsed search. */
export interface Search extends RunQuery {
  readonly rule?: Rule;
  /** State or reason of the run's end: `completed`, `stopped`, or for example `client_gone`. */
  readonly end?: string;
  readonly limit: number;
}

/** One page of a search. */
export interface Found {
  readonly runs: ReadonlyArray<RunRecord>;
  /** Id of the run after which the next page begins; undefined on the last page. */
  readonly next: string | undefined;
  /** True if `scannedRunsMax` ended the page before it was full. */
  readonly cut: boolean;
}

/**
 * Parses the parameters of a search.
 *
 * @param limits default and maximum number of runs per page
 * @param now wall clock, in milliseconds since the epoch; ages like `since=1h` are subtracted from it
 * @returns the search, or an error that names the first invalid field
 */
export const parse = (
  sent: SearchSent,
  limits: { readonly byDefault: number; readonly max: number },
  now: number,
): Result.Result<Search, ApiInvalid> =>
  Result.gen(function* () {
    const state = yield* parseChoice(sent, "state", RunRecord.fields.state.literals);
    const broken = yield* parseChoice(sent, "broken", ["true", "false"]);
    const rule = yield* parseChoice(sent, "rule", Rule.literals);
    const startedFrom = yield* parseMoment(sent, "since", now);
    const startedBefore = yield* parseMoment(sent, "until", now);
    const limit = yield* limitOf(sent, limits);
    const texts = { text: "q", model: "model", provider: "provider", end: "end", before: "before" } as const;
    let search: Search = { limit };
    for (const [name, field] of Object.entries(texts)) {
      const text = yield* parseText(sent, field);
      if (text !== undefined) search = { ...search, [name]: text };
    }
    return {
      ...search,
      ...(state === undefined ? {} : { state }),
      ...(broken === "true" ? { broken: true } : {}),
      ...(rule === undefined ? {} : { rule }),
      ...(startedFrom === undefined ? {} : { startedFrom }),
      ...(startedBefore === undefined ? {} : { startedBefore }),
    };
  });

const invalidField = (field: SearchField, message: string): ApiInvalid =>
  new ApiInvalid({ reason: "invalid_request", field, message: `${field}: ${message}` });

const fieldValue = (sent: SearchSent, field: SearchField): string | undefined => {
  const value = sent[field]?.trim();
  return value === "" ? undefined : value;
};

const parseText = (sent: SearchSent, field: SearchField): Result.Result<string | undefined, ApiInvalid> => {
  const value = fieldValue(sent, field);
  return value !== undefined && value.length > labelCharactersMax
    ? Result.fail(invalidField(field, `at most ${labelCharactersMax} characters`))
    : Result.succeed(value);
};

const parseChoice = <const L extends string>(
  sent: SearchSent,
  field: SearchField,
  literals: ReadonlyArray<L>,
): Result.Result<L | undefined, ApiInvalid> => {
  const value = fieldValue(sent, field);
  const found = literals.find((it) => it === value);
  return value === undefined || found !== undefined
    ? Result.succeed(found)
    : Result.fail(invalidField(field, `one of ${literals.join(", ")}`));
};

const limitOf = (
  sent: SearchSent,
  { byDefault, max }: { readonly byDefault: number; readonly max: number },
): Result.Result<number, ApiInvalid> => {
  const value = fieldValue(sent, "limit");
  if (value === undefined) return Result.succeed(byDefault);
  const limit = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  return limit >= 1 && limit <= max
    ? Result.succeed(limit)
    : Result.fail(invalidField("limit", `a whole number from 1 to ${max}`));
};

const units = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const momentForms = "a time in UTC, for example 2026-11-22T09:30, milliseconds since the epoch, or an age: 30m, 1h, 7d";

/** Parses a moment: an age, milliseconds since the epoch, or an ISO 8601 date and time, in UTC by default. */
const parseMoment = (
  sent: SearchSent,
  field: SearchField,
  now: number,
): Result.Result<number | undefined, ApiInvalid> => {
  const value = fieldValue(sent, field);
  if (value === undefined) return Result.succeed(undefined);
  const [, amount, unit] = /^(\d{1,6})([mhd])$/.exec(value) ?? [];
  if (unit === "m" || unit === "h" || unit === "d") return Result.succeed(now - Number(amount) * units[unit]);
  if (/^\d{9,15}$/.test(value)) return Result.succeed(Number(value));
  const [, date, time = "T00:00", zone = "Z"] =
    /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?(Z|[+-]\d\d:\d\d)?$/i.exec(value) ?? [];
  const at = date === undefined ? Number.NaN : Date.parse(`${date}${time.replace(" ", "T")}${zone}`.toUpperCase());
  return Number.isNaN(at) ? Result.fail(invalidField(field, `expected ${momentForms}`)) : Result.succeed(at);
};

/**
 * Finds a page of runs.
 *
 * The recorder filters by columns. For a rule or an end, this function reads the records, at most `scannedRunsMax` per page. It checks
 * every run against the query again, because a third-party recorder may not know newer fields.
 */
export const find = (recorder: RunRecorder["Service"], search: Search): Effect.Effect<Found, RecorderError> =>
  Effect.gen(function* () {
    const { before, end, limit, rule, ...asked } = search;
    const reads = end !== undefined || rule !== undefined;
    const query: RunQuery = {
      ...asked,
      ...(rule === undefined ? {} : { broken: true }),
      ...endQuery(end, asked.state),
    };
    const found: Array<RunRecord> = [];
    let [scanned, last] = [0, before];
    while (true) {
      const size = reads ? scanPage : limit + 1 - found.length;
      const page = yield* recorder.runs({ ...query, limit: size, ...(last === undefined ? {} : { before: last }) });
      for (const record of page) {
        if (found.length === limit) return { runs: found, next: last, cut: false };
        last = record.run_id;
        if (isWanted(record, search)) found.push(record);
      }
      scanned += page.length;
      if (page.length < size) return { runs: found, next: undefined, cut: false };
      if (scanned >= scannedRunsMax) return { runs: found, next: last, cut: true };
    }
  });

/** Restricts a search by end to ended runs, unless the search names a state. */
const endQuery = (end: string | undefined, state: RunQuery["state"]): RunQuery =>
  end === undefined || state !== undefined ? {} : { state: "ended" };

const isWanted = (record: RunRecord, search: Search): boolean =>
  isListed(record, search) &&
  (search.rule === undefined || record.incidents.some(({ decision }) => decision.rule === search.rule)) &&
  (search.end === undefined || record.end?.state === search.end || record.end?.reason === search.end);
