/**
 * Builds the flags of `serve`, with their environment variables, from the table of options. A flag overrides its variable, and both
 * override the configuration file. A default here would override the file too, so only the help text of a flag states its default.
 */
import { Config, type Option, type Redacted } from "effect";
import { Flag } from "effect/cli";
import type { Entry } from "../../gateway/config/Option.ts";
import { entries, groups } from "../../gateway/config/Options.ts";

/** A value as typed in a flag or an environment variable, before it is validated. */
export type Typed = string | number | boolean | Redacted.Redacted<string>;

/** Options that have a flag and an environment variable with one value. */
export const flagged: ReadonlyArray<Entry & { readonly flag: string; readonly variable: string }> = entries.flatMap(
  (entry) => {
    const { flag, form, variable } = entry;
    return flag === undefined || variable === undefined || form === "pairs" ? [] : [{ ...entry, flag, variable }];
  },
);

/** Flags that set options as `NAME=VALUE`, with the key of these options in the configuration file. */
export const pairFlags: ReadonlyArray<{ readonly key: string; readonly flag: string; readonly variable: string }> = [
  ...Object.entries(groups).flatMap(([key, { pairs }]) => (pairs === undefined ? [] : [{ key, flag: pairs }])),
  ...entries.flatMap(({ flag, form, name }) => (form === "pairs" && flag !== undefined ? [{ key: name, flag }] : [])),
].map((it) => ({ ...it, variable: `STREAM_RECOVERY_${it.flag.toUpperCase()}` }));

const describeFlag = (description: string, variable: string, otherwise?: unknown): string =>
  `${description} ($${variable}${otherwise === undefined ? "" : `; default ${otherwise}`})`;

/** Formats a default in the form in which an operator would type it. */
const formatDefault = ({ default: byDefault, form }: Entry): unknown => {
  if (form === "switch" || form === "list") return undefined;
  return form === "on_off" ? (byDefault === true ? "on" : "off") : byDefault;
};

const onOff = ["on", "off"] as const;

const makePlainFlag = ({
  flag,
  form,
  variable,
}: (typeof flagged)[number]): readonly [Flag.Flag<Typed>, Config.Config<Typed>] => {
  if (form === "integer") return [Flag.Int(flag), Config.Int(variable)];
  if (form === "switch") return [Flag.Boolean(flag), Config.Boolean(variable)];
  if (form === "secret") return [Flag.Redacted(flag), Config.Redacted(variable)];
  const choices = form === "on_off" ? onOff : form;
  if (typeof choices !== "string") return [Flag.Literals(flag, choices), Config.Literals(choices, variable)];
  return [Flag.String(flag), Config.String(variable)];
};

const flagOf = (entry: (typeof flagged)[number]): Flag.Flag<Option.Option<Typed>> => {
  const [flag, config] = makePlainFlag(entry);
  return flag.pipe(
    Flag.withDescription(describeFlag(entry.description, entry.variable, formatDefault(entry))),
    Flag.withFallbackConfig(config),
    Flag.optional,
  );
};

const fileFlag = (name: string, variable: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(describeFlag(description, variable)),
    Flag.withFallbackConfig(Config.String(variable)),
    Flag.optional,
  );

/** All flags of `serve`. */
export const serveFlags = {
  config: fileFlag(
    "config",
    "STREAM_RECOVERY_CONFIG",
    "JSON configuration file with all options: docs/gateway-config.md. SIGHUP reads it again",
  ),
  check: Flag.Boolean("check").pipe(
    Flag.withDescription("Print the resulting configuration, or everything that is wrong with it, and exit"),
    Flag.withDefault(false),
  ),
  // These two flags set one option.
  tlsCert: fileFlag(
    "tls-cert",
    "STREAM_RECOVERY_TLS_CERT",
    "File of a certificate and its chain (PEM); listens with TLS",
  ),
  tlsKey: fileFlag("tls-key", "STREAM_RECOVERY_TLS_KEY", "File of the certificate's key (PEM)"),
  options: Object.fromEntries(flagged.map((entry) => [entry.name, flagOf(entry)])),
  pairs: Object.fromEntries(
    pairFlags.map(({ flag, key, variable }) => {
      const names = entries.flatMap(({ name, path }) => (path[0] === key && path.length > 1 ? [name] : []));
      const words = groups[key]?.description ?? entries.find(({ name }) => name === key)?.description;
      const how = names.length === 0 ? "" : ` NAME=VALUE of ${names.join(", ")}`;
      const description = `${words}:${how}; repeat it, or separate several with commas`.replace(":;", ";");
      return [key, Flag.String(flag).pipe(Flag.withDescription(describeFlag(description, variable)), Flag.atLeast(0))];
    }),
  ),
};
