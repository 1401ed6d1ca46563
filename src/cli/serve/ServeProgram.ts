/**
 * Combines a gateway's options: flags override variables, which override the configuration file.
 */
import { readFileSync } from "node:fs";
import { Config, Effect, Option, Redacted, Result } from "effect";
import type { Command } from "effect/cli";
import { findReplacement, removedVariables } from "../../domain/RemovedOptions.ts";
import { problemsOfPolicy, readConfig } from "../../gateway/config/ConfigFile.ts";
import type { ConfigProblem } from "../../gateway/config/ConfigProblem.ts";
import { openConfig } from "../../gateway/config/ConfigSources.ts";
import { tokenNameDefault } from "../../gateway/config/GatewayOptions.ts";
import { type Entry, isParts, readValue, valueAt, withValue } from "../../gateway/config/Option.ts";
import { entries } from "../../gateway/config/Options.ts";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";
import { flagged, pairFlags, type serveFlags, type Typed } from "./ServeFlags.ts";

/** The values of the flags and of the environment variables that replace missing flags. */
export type Given = Command.Command.Config.Infer<typeof serveFlags>;

/** Valid options, or one line for each problem. */
export type Program =
  | {
      readonly program: ProgramOptions;
      /** One line per warning. The options are valid in spite of the warnings. */
      readonly warnings?: ReadonlyArray<string>;
    }
  | { readonly wrong: ReadonlyArray<string> };

/** Combines the options. Each call, for example after a SIGHUP, reads the file again. */
export const readProgram = Effect.fnUntraced(function* (given: Given) {
  const file = readFileOptions(Option.getOrUndefined(given.config));
  const typed = new TypedOptions();
  for (const { flag, key, variable } of pairFlags)
    typed.addPairs(flag, key, yield* parsePairs(given.pairs[key] ?? [], variable));
  for (const entry of flagged) typed.add(entry, Option.getOrUndefined(given.options[entry.name] ?? Option.none()));
  typed.addTls(given);
  for (const variable of removedVariables) typed.refuseRemoved(variable, yield* readVariable(variable));
  const { program, wrong } = typed;
  const made: Program =
    "wrong" in file || wrong.length > 0
      ? { wrong: [...("wrong" in file ? file.wrong : []), ...wrong] }
      : { program: overrideFile(program, file.program), warnings: file.warnings ?? [] };
  return made;
});

const readFileOptions = (path: string | undefined): Program => {
  if (path === undefined || path === "") return { program: {} };
  const sources = openConfig(path);
  if ("unreadable" in sources) return { wrong: [`${path}: ${sources.unreadable}`] };
  const read = readConfig(sources);
  const lineOf = ({ message, path: at }: ConfigProblem) => `${path}: ${at}: ${message}`;
  return "options" in read
    ? { program: read.options, warnings: (read.warnings ?? []).map(lineOf) }
    : { wrong: read.problems.map(lineOf) };
};

const readVariable = (variable: string) =>
  Effect.map(Effect.orElseSucceed(Config.option(Config.String(variable)), Option.none<string>), Option.getOrUndefined);

type Pairs = ReadonlyArray<readonly [name: string, value: string]>;

/** Parses the pairs of a repeatable flag, or of its variable if the flag is not given. */
const parsePairs = Effect.fnUntraced(function* (typed: ReadonlyArray<string>, variable: string) {
  const config = Config.option(Config.String(variable));
  const values = typed.length > 0 ? typed : Option.toArray(yield* Effect.orElseSucceed(config, Option.none<string>));
  return values
    .flatMap((value) => value.split(","))
    .filter((pair) => pair.trim() !== "")
    .map((pair): readonly [string, string] => {
      const at = pair.indexOf("=");
      return at === -1 ? [pair.trim(), ""] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    });
});

/** Options from flags and variables, validated by the same schemas as the options of the file. */
class TypedOptions {
  program: ProgramOptions = {};
  readonly wrong: Array<string> = [];

  /** Adds an option. An empty variable counts as unset. */
  add(entry: Entry & { readonly flag: string }, typed: Typed | undefined): void {
    const value = Redacted.isRedacted(typed) ? Redacted.value(typed) : typed;
    if (value === undefined || value === "") return;
    this.#read(entry, toFileForm(entry, value), `--${entry.flag}`, value);
  }

  addPairs(flag: string, key: string, pairs: Pairs): void {
    const policy = entries.find(({ form, name }) => form === "pairs" && name === key);
    for (const [name, value] of pairs) {
      const entry = entries.find((it) => it.key?.[0] === key && it.key[1] === name);
      if (policy !== undefined)
        this.#read(policy, { ...this.program.policy, [name]: value }, `--${flag} ${name}`, value);
      else if (entry === undefined) this.wrong.push(`--${flag} ${name}: expected a known key`);
      else this.#read(entry, parseNumber(value), `--${flag} ${name}`, value);
    }
    if (policy !== undefined)
      for (const { message, path } of problemsOfPolicy(this.program.policy))
        this.wrong.push(`--${flag} ${path.replace(/^\$\.\w+\.?/, "")}: ${message}`);
  }

  addTls({ tlsCert, tlsKey }: Given): void {
    const [cert, key] = [Option.getOrUndefined(tlsCert), Option.getOrUndefined(tlsKey)];
    if (cert === undefined && key === undefined) return;
    if (cert === undefined || key === undefined) {
      this.wrong.push("--tls-cert and --tls-key: expected both or none");
      return;
    }
    const [certText, keyText] = [readText(cert), readText(key)];
    if (certText !== undefined && keyText !== undefined)
      this.program = { ...this.program, tls: { cert: certText, key: Redacted.make(keyText) } };
    else this.wrong.push(`--tls-${certText === undefined ? "cert" : "key"}: expected a readable file`);
  }

  /** Refuses a variable of a removed option. An empty variable counts as unset. */
  refuseRemoved(variable: string, value: string | undefined): void {
    if (value !== undefined && value !== "")
      this.wrong.push(`$${variable}: expected this variable to be unset: ${findReplacement(variable)}`);
  }

  #read(entry: Entry, value: unknown, as: string, typed: string | number | boolean): void {
    const read = readValue(entry, value);
    if (Result.isSuccess(read)) {
      this.program = withValue(this.program, entry.path, read.success);
      return;
    }
    const got = entry.form === "secret" ? "" : `, got ${JSON.stringify(String(typed).slice(0, shownMax))}`;
    for (const { message } of read.failure)
      this.wrong.push(`${as}: ${message}${message.includes(", got ") ? "" : got}`);
  }
}

/** Maximum number of characters quoted from an invalid value. */
const shownMax = 32;

const parseNumber = (value: string): number | string => (/^\d{1,12}$/.test(value) ? Number(value) : value);

/** Converts a typed value to its form in the file. */
const toFileForm = ({ form }: Entry, value: string | number | boolean): unknown => {
  if (form === "on_off") return value === "on";
  if (form === "integer_or_word") return parseNumber(String(value));
  if (form !== "list") return value;
  return String(value)
    .split(",")
    .map((it) => it.trim())
    .filter((it) => it !== "");
};

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** Overrides the options of the file by those from flags and variables. Options that consist of parts are overridden part by part. */
const overrideFile = (typed: ProgramOptions, file: ProgramOptions): ProgramOptions => {
  const whole: ProgramOptions = { ...file, ...typed };
  const joined = Object.entries(typed).reduce<ProgramOptions>((options, [name, value]) => {
    const parts = valueAt(file, [name]);
    return isParts(value) && isParts(parts) ? withValue(options, [name], { ...parts, ...value }) : options;
  }, whole);
  const { named, tokens } = file;
  return {
    ...joined,
    ...(named && { named: named.map((it) => ({ ...it, url: findTypedUrl(it.name, typed) ?? it.url })) }),
    ...(tokens && typed.token !== undefined && { tokens: tokens.filter(({ name }) => name !== tokenNameDefault) }),
  };
};

const findTypedUrl = (name: string, { upstreams = {} }: ProgramOptions): string | undefined =>
  Object.entries(upstreams).find(([it]) => it === name)?.[1];
