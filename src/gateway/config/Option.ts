/**
 * Creates the entries of the option table (Options.ts). An entry describes one option completely: its type, default, flag, variable, key in
 * the configuration file, checks, description and docs derive from the entry.
 */
import { Result, Schema } from "effect";
import { type ConfigProblem, problemsOf } from "./ConfigProblem.ts";

declare const valueType: unique symbol;

/**
 * The form of an option as a flag or a variable. An array lists the allowed words, `list` is split at commas, and `pairs` is `NAME=VALUE`,
 * repeated.
 */
export type Form =
  | "integer"
  | "integer_or_word"
  | "text"
  | "list"
  | "on_off"
  | "switch"
  | "secret"
  | "pairs"
  | "none"
  | ReadonlyArray<string>;

/** The fields of an entry that may be omitted. */
export interface About<D = unknown> {
  readonly default?: D;
  readonly unit?: "bytes" | "ms";
  /** Key in the configuration file. Default: derived from the name; `false` for none. */
  readonly key?: string | false;
  /** Flag, without `--`. Default: derived from the name; `false` for none. */
  readonly flag?: string | false;
  /** True if a change of the option needs a restart. `on_or_off` if only adding or removing the option does. */
  readonly restart?: true | "on_or_off";
  /** The reason for the default, as the docs print it. */
  readonly from?: string;
}

/** An option. `A` is its type, `D` the type of its default. */
export interface Option<A = unknown, D = unknown> extends Omit<About, "default"> {
  readonly [valueType]?: A;
  readonly description: string;
  readonly default: D;
  readonly form: Form;
  /** Validates a value from a file or a flag. */
  readonly schema: Schema.Codec<unknown, unknown>;
  /** Converts a validated value to the option's type. Default: no conversion. */
  readonly read?: (value: unknown) => A;
}

/** An option that is built separately, because it names files, variables or other options, or because its setting has another form. */
export interface ApartOption<A> extends Option<A, undefined> {
  readonly apart: true;
}

/** The type of an option's value. */
export type ValueOf<O> = O extends { readonly [valueType]?: infer A } ? Exclude<A, undefined> : never;

/** The options of a table as a caller passes them, all optional. */
export type Given<T> = { readonly [K in keyof T]?: ValueOf<T[K]> };

/** The options of a table with their defaults. */
export type Filled<T> = {
  readonly [K in keyof T as T[K] extends { readonly apart: true } ? never : K]: T[K] extends {
    readonly default: infer D;
  }
    ? undefined extends D
      ? ValueOf<T[K]> | undefined
      : ValueOf<T[K]>
    : never;
};

/** Maximum delay of a timer, in milliseconds. It is also the maximum of every limit in bytes. */
export const numberMax = 2_147_483_647;

const restarts: Readonly<Record<string, string>> = {
  true: "Read at startup only",
  on_or_off: "Switching it on or off needs a restart",
};

const makeOption = <A, D>(form: Form, description: string, schema: Schema.Codec<unknown, unknown>, about: About<D>) => {
  const unit = about.unit === undefined ? "" : `, in ${about.unit}`;
  const restart = about.restart === undefined ? "" : `. ${restarts[String(about.restart)]}`;
  const entry: Option<A, D> = {
    ...about,
    description: `${description}${unit}`,
    // An entry without a default has the type undefined for `D`, so the cast is safe.
    default: about.default as D,
    form,
    schema: schema.annotate({
      description: `${description}${unit}${restart}`,
      ...(about.default === undefined ? {} : { default: about.default }),
    }),
  };
  return entry;
};

/** Schema of a whole number. */
export const wholeNumber = (minimum: number, maximum: number, message?: string) =>
  Schema.Finite.check(
    Schema.makeFilter(
      (value: number) =>
        (Number.isInteger(value) && value >= minimum && value <= maximum) ||
        (message ?? `expected ${minimum} to ${maximum}, got ${value}`),
      { toJsonSchema: () => ({ type: "integer", minimum, maximum }) },
    ),
  );

/** Schema of a whole number or one word. */
const orWholeNumber = (word: string, minimum: number, maximum: number, message: string) =>
  Schema.Union([Schema.Literal(word), wholeNumber(minimum, maximum, message)]).annotate({ message });

/** Creates a whole-number option. */
export const integer = <const D extends number | undefined = undefined>(
  description: string,
  about: About<D> & { readonly min?: number; readonly max?: number } = {},
): Option<number, D> => {
  const { max = numberMax, min = 1, ...rest } = about;
  return makeOption<number, D>("integer", description, wholeNumber(min, max), rest);
};

/** Creates a limit of the gateway. A limit requires a default and the reason for it. */
export const limit = (
  description: string,
  byDefault: number,
  about: About<number> & { readonly from: string },
): Option<number, number> => integer(description, { ...about, default: byDefault });

/** Creates an option that is a whole number or one word. */
export const integerOr = <W extends string, const D extends number | W | undefined = undefined>(
  word: W,
  description: string,
  expected: string,
  about: About<D> & { readonly min: number; readonly max?: number },
): Option<number | W, D> => {
  const { max = numberMax, min, ...rest } = about;
  return makeOption("integer_or_word", description, orWholeNumber(word, min, max, expected), rest);
};

/** Creates a timeout in milliseconds. Files and flags disable it with `off`, programs with `false`. */
export const clock = (description: string): Option<number | false, undefined> => ({
  ...makeOption<number | false, undefined>(
    "integer_or_word",
    description,
    orWholeNumber("off", 1, numberMax, `expected whole milliseconds from 1 to ${numberMax}, or "off"`),
    { unit: "ms", flag: false },
  ),
  read: (value) => (typeof value === "number" ? value : false),
});

/** Creates an option that is one of several words. */
export const words = <const W extends string, const D extends W | undefined = undefined>(
  description: string,
  choices: ReadonlyArray<W>,
  about: About<D> = {},
): Option<W, D> => makeOption<W, D>(choices, description, Schema.Literals(choices), about);

/** Creates an option with non-empty text. */
export const text = <const D extends string | undefined = undefined>(
  description: string,
  about: About<D> & { readonly schema?: Schema.Codec<string> } = {},
): Option<string, D> => {
  const { schema = Schema.String.check(Schema.isMinLength(1)), ...rest } = about;
  return makeOption<string, D>("text", description, schema, rest);
};

/** Creates a boolean option. Its flag takes `on` or `off`, or no value. */
export const yesOrNo = (
  description: string,
  form: "on_off" | "switch",
  about: About<boolean> & { readonly default: boolean },
): Option<boolean, boolean> => makeOption<boolean, boolean>(form, description, Schema.Boolean, about);

/** Creates an option of any other type. */
export const custom = <A, const D extends A | undefined = undefined>(
  form: Form,
  description: string,
  schema: Schema.Codec<A, unknown>,
  about: About<D> = {},
): Option<A, D> => makeOption<A, D>(form, description, schema, about);

/** Creates an option that its schema alone cannot build (see `ApartOption`). */
export const makeApart =
  <A>() =>
  (
    form: Form,
    description: string,
    schema: Schema.Codec<unknown, unknown>,
    about: About<undefined>,
  ): ApartOption<A> => ({
    ...makeOption<A, undefined>(form, description, schema, about),
    apart: true,
  });

/** An option with its names in programs, in the configuration file, as a flag and as a variable. */
export interface Entry extends Omit<Option, "flag" | "key"> {
  /** Name of the option in errors and logs. */
  readonly name: string;
  /** Path of the option in the options object. */
  readonly path: readonly [name: string, inner?: string];
  /** Path of the option in the configuration file. */
  readonly key: readonly [name: string, inner?: string] | undefined;
  /** Flag of the option, without `--`. */
  readonly flag: string | undefined;
  readonly variable: string | undefined;
  /** True if the option is built separately (see `ApartOption`). */
  readonly apart: boolean;
}

/**
 * Creates the entries of a table with their names.
 *
 * @param group the key that contains the table's options, in programs and in the file
 */
export const entriesOf = (
  table: Readonly<Record<string, Option & { readonly apart?: true }>>,
  group?: string,
): ReadonlyArray<Entry> =>
  Object.entries(table).map(([name, option]) => {
    const word = name.replace(/[A-Z]/g, (it) => `_${it.toLowerCase()}`);
    const flag = option.form === "none" ? false : (option.flag ?? word.replaceAll("_", "-"));
    const [outer = word, inner] = group === undefined ? (option.key || word).split(".") : [group, word];
    return {
      ...option,
      name,
      path: group === undefined ? [name] : [group, name],
      key: option.key === false ? undefined : inner === undefined ? [outer] : [outer, inner],
      flag: flag === false ? undefined : flag,
      variable: flag === false ? undefined : `STREAM_RECOVERY_${flag.toUpperCase().replaceAll("-", "_")}`,
      apart: option.apart === true,
    };
  });

type Parts = Readonly<Record<string, unknown>>;

/** True if a value is a group of options, that is, a plain object. Secrets and lists are not. */
export const isParts = (value: unknown): value is Parts =>
  typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** Reads the value at a path. */
export const valueAt = (within: object, [name, inner]: Entry["path"]): unknown => {
  const value: unknown = Reflect.get(within, name);
  if (inner === undefined) return value;
  return isParts(value) ? value[inner] : undefined;
};

/** Returns a copy of the options with one value replaced; undefined removes the value. */
export const withValue = <T extends object>(options: T, [name, inner]: Entry["path"], value: unknown): T => {
  if (inner !== undefined) {
    const group = valueAt(options, [name]);
    const parts = withValue(isParts(group) ? group : {}, [inner], value);
    return withValue(options, [name], Object.keys(parts).length === 0 ? undefined : parts);
  }
  const { [name]: _, ...others }: Parts = Object.fromEntries(Object.entries(options));
  const made: unknown = value === undefined ? others : { ...others, [name]: value };
  // The option's schema has validated the value, so the copy has the same type.
  return made as T;
};

/** Options for parsing: report every problem, and reject unknown keys. */
export const parsing = { errors: "all", onExcessProperty: "error" } as const;

/** Validates and converts an option's value from a file or a flag. On failure, returns all problems. */
export const readValue = (
  { read = (value) => value, schema }: Pick<Entry, "read" | "schema">,
  said: unknown,
): Result.Result<unknown, ReadonlyArray<ConfigProblem>> =>
  Result.mapBoth(Schema.decodeUnknownResult(schema, parsing)(said), {
    onSuccess: read,
    onFailure: (error) => problemsOf(error),
  });
