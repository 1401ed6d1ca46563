/**
 * Puts a gateway's options together: flags over variables over the configuration file.
 */
import { readFileSync } from "node:fs";
import { Config, Effect, Option, Redacted } from "effect";
import type { Command } from "effect/cli";
import { problemsIn, readConfig } from "../../gateway/config/ConfigFile.ts";
import { defined, optionsOf } from "../../gateway/config/ConfigOptions.ts";
import type { ConfigProblem } from "../../gateway/config/ConfigProblem.ts";
import { openConfig } from "../../gateway/config/ConfigSources.ts";
import { type GatewayOptions, tokenNameDefault } from "../../gateway/config/GatewayOptions.ts";
import { type ProgramOptions, workersMax } from "../../gateway/config/ProgramOptions.ts";
import { limitFlags, type serveFlags } from "./ServeFlags.ts";

/** What was typed, or stands in a variable. */
export type Given = Command.Command.Config.Infer<typeof serveFlags>;

/** What is to be served, or each thing that is wrong in one line. */
export type Program =
  | {
      readonly program: ProgramOptions;
      /** One line each; it is served all the same. */
      readonly warnings?: ReadonlyArray<string>;
    }
  | { readonly wrong: ReadonlyArray<string> };

/** Reads the file again with every call: so does SIGHUP. */
export const programOf = Effect.fnUntraced(function* (given: Given) {
  const file = fileOf(Option.getOrUndefined(given.config));
  const typed = optionsTyped(given, {
    clock: yield* pairsOf("clock", given.clock),
    budget: [...(yield* pairsOf("budget", given.budget)), ...outageOf(given)],
    policy: yield* pairsOf("policy", given.policy),
  });
  const wrong = [...("wrong" in file ? file.wrong : []), ...("wrong" in typed ? typed.wrong : [])];
  const made: Program =
    "wrong" in file || "wrong" in typed
      ? { wrong }
      : { program: over(typed.program, file.program), warnings: file.warnings ?? [] };
  return made;
});

const fileOf = (path: string | undefined): Program => {
  if (path === undefined || path === "") return { program: {} };
  const sources = openConfig(path);
  if ("unreadable" in sources) return { wrong: [`${path}: ${sources.unreadable}`] };
  const read = readConfig(sources);
  const lineOf = ({ message, path: at }: ConfigProblem) => `${path}: ${at}: ${message}`;
  return "options" in read
    ? { program: read.options, warnings: (read.warnings ?? []).map(lineOf) }
    : { wrong: read.problems.map(lineOf) };
};

/** Names and values of a flag that may be repeated; where it is not typed, of its variable. */
const pairsOf = Effect.fnUntraced(function* (name: string, typed: ReadonlyArray<string>) {
  const variable = Config.option(Config.String(`STREAM_RECOVERY_${name.toUpperCase()}`));
  const values = typed.length > 0 ? typed : Option.toArray(yield* Effect.orElseSucceed(variable, Option.none<string>));
  return values
    .flatMap((value) => value.split(","))
    .filter((pair) => pair.trim() !== "")
    .map((pair): readonly [string, string] => {
      const at = pair.indexOf("=");
      return at === -1 ? [pair.trim(), ""] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    });
});

type Pairs = ReadonlyArray<readonly [string, string]>;

/** The flag has the same meaning as its name among the pairs of `--budget`, and wins over it. */
const outageOf = ({ maxOutageMs }: Given): Pairs =>
  Option.match(maxOutageMs, {
    onNone: () => [],
    onSome: (value) => (value === "" ? [] : [["max_outage_ms", value]]),
  });

const optionsTyped = (given: Given, pairs: { readonly [K in "clock" | "budget" | "policy"]: Pairs }): Program => {
  const numbers = (all: Pairs) => Object.fromEntries(all.map(([name, value]) => [name, numberOr(value)]));
  const config = {
    ...(pairs.clock.length === 0 ? {} : { clocks: numbers(pairs.clock) }),
    ...(pairs.budget.length === 0 ? {} : { budget: numbers(pairs.budget) }),
    ...(pairs.policy.length === 0 ? {} : { policy: Object.fromEntries(pairs.policy) }),
  };
  const checked = problemsIn(config);
  const tls = tlsOf(given);
  const named = (problem: ConfigProblem) => flagOf(problem, outageOf(given).length > 0);
  const workers = workersTyped(given);
  const wrong = [
    "problems" in checked ? checked.problems.map(named) : [],
    ...[tls, workers].map((it) => ("wrong" in it ? it.wrong : [])),
  ].flat();
  if ("problems" in checked || "wrong" in tls || "wrong" in workers) return { wrong };
  return { program: { ...optionsOf(checked.config), ...plainOf(given), ...tls.program, ...workers.program } };
};

const numberOr = (value: string): number | string => (/^\d{1,12}$/.test(value) ? Number(value) : value);

/** `$.clocks.idle` is typed as `--clock idle`. */
const flagOf = ({ message, path }: ConfigProblem, hasOutage: boolean): string => {
  const [, key = "", name = ""] = /^\$\.(\w+)\.?(.*)$/.exec(path) ?? [];
  if (hasOutage && name === "max_outage_ms") return `--max-outage-ms: ${message}`;
  return `--${key.replace(/^clocks$/, "clock")} ${name}: ${message}`;
};

const tlsOf = ({ tlsCert, tlsKey }: Given): Program => {
  const [cert, key] = [Option.getOrUndefined(tlsCert), Option.getOrUndefined(tlsKey)];
  if (cert === undefined && key === undefined) return { program: {} };
  if (cert === undefined || key === undefined) return { wrong: ["--tls-cert and --tls-key: expected both or none"] };
  const [certText, keyText] = [textOf(cert), textOf(key)];
  if (certText !== undefined && keyText !== undefined)
    return { program: { tls: { cert: certText, key: Redacted.make(keyText) } } };
  return { wrong: [`--tls-${certText === undefined ? "cert" : "key"}: expected a file that can be read`] };
};

const workersTyped = (given: Given): Program => {
  const typed = Option.getOrElse(given.workers, () => "");
  if (typed === "") return { program: {} };
  if (typed === "auto") return { program: { workers: typed } };
  const isCount = /^\d{1,3}$/.test(typed) && Number(typed) >= 1 && Number(typed) <= workersMax;
  return isCount
    ? { program: { workers: Number(typed) } }
    : { wrong: [`--workers: expected 1 to ${workersMax}, or auto, got ${JSON.stringify(typed.slice(0, 32))}`] };
};

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

/** What each flag says by itself. An empty variable says nothing. */
const plainOf = (given: Given): ProgramOptions => {
  const get = <A>(value: Option.Option<A>): A | undefined =>
    Option.getOrUndefined(Option.filter(value, (it) => it !== ""));
  const { allowHost, doneCompletes, token } = given;
  const secret = Option.getOrUndefined(Option.map(token, Redacted.value));
  const hosts = get(allowHost)
    ?.split(",")
    .map((name) => name.trim());
  const upstreams = defined({ openai: get(given.openai), anthropic: get(given.anthropic), gemini: get(given.gemini) });
  // Each name of a limit has its flag.
  const names = Object.keys(limitFlags) as ReadonlyArray<keyof typeof limitFlags>;
  const limits = defined(Object.fromEntries(names.map((name) => [name, get(given[name])])));
  return defined({
    port: get(given.port),
    host: get(given.host),
    db: get(given.db),
    reveal: get(given.reveal),
    onBreak: get(given.onBreak),
    continueText: get(given.continueText),
    onQuestion: get(given.onQuestion),
    holdMs: get(given.holdMs),
    holdMaxMs: get(given.holdMaxMs),
    keepAliveMs: get(given.keepAliveMs),
    lingerMs: get(given.lingerMs),
    lingerMaxMs: get(given.lingerMaxMs),
    keepRuns: get(given.keepRuns),
    keepRunsMax: get(given.keepRunsMax),
    leaseMs: get(given.leaseMs),
    logFormat: get(given.logFormat),
    accessLog: Option.getOrUndefined(Option.map(given.accessLog, (it) => it === "on")),
    requireStore: get(given.requireStore),
    deliveryLog: get(given.deliveryLog),
    retryEmpty: Option.getOrUndefined(Option.map(given.retryEmpty, (it) => it === "on")),
    tolerance: get(doneCompletes) === true ? { doneWithoutFinish: true } : undefined,
    token: secret === "" ? undefined : secret,
    allowedHosts: hosts?.filter((name) => name !== ""),
    upstreams: Object.keys(upstreams).length === 0 ? undefined : upstreams,
    limits: Object.keys(limits).length === 0 ? undefined : limits,
  });
};

/** What was typed wins over the file, one by one also within what has parts. */
const over = (typed: ProgramOptions, file: ProgramOptions): ProgramOptions => ({
  ...file,
  ...typed,
  ...defined({
    clocks: joined(file.clocks, typed.clocks),
    budget: joined(file.budget, typed.budget),
    policy: joined(file.policy, typed.policy),
    limits: joined(file.limits, typed.limits),
    named: file.named?.map((upstream) => ({ ...upstream, url: urlTyped(upstream.name, typed) ?? upstream.url })),
    tokens: typed.token === undefined ? file.tokens : file.tokens?.filter(({ name }) => name !== tokenNameDefault),
  }),
});

const joined = <A extends object>(file: A | undefined, typed: A | undefined): A | undefined =>
  file === undefined || typed === undefined ? (typed ?? file) : { ...file, ...typed };

const urlTyped = (name: string, { upstreams }: GatewayOptions): string | undefined =>
  name === "openai" || name === "anthropic" || name === "gemini" ? upstreams?.[name] : undefined;
