/**
 * Reads the standard environment variables of OpenTelemetry that configure the export of telemetry.
 *
 * A variable with an invalid value is an error that names the variable. The value is never quoted, because it may contain a credential.
 */
import { Config, Effect, Option, Result, Schema } from "effect";

/** A variable of the environment is invalid. `message` describes the expected value and never quotes the actual one. */
export class OtlpConfigError extends Schema.TaggedError<OtlpConfigError>()("OtlpConfigError", {
  reason: Schema.Literals(["bad_value", "unreadable"]),
  variable: Schema.String,
  message: Schema.String,
}) {}

/** Kinds of telemetry, as named in the variables. */
export type Signal = "TRACES" | "METRICS" | "LOGS";

/** Destination and format of one signal. If a time is undefined, the exporter's default applies. */
export interface SignalSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: "http/protobuf" | "http/json";
  readonly compression: "gzip" | "none";
  /** Interval between two exports, in milliseconds. */
  readonly intervalMs: number | undefined;
  /** Maximum duration of the last export when the layer closes, in milliseconds. */
  readonly timeoutMs: number | undefined;
}

/** The parsed variables. Signals that are undefined are not exported. */
export interface OtlpSettings {
  readonly serviceName: string | undefined;
  readonly temporality: "cumulative" | "delta";
  readonly TRACES: SignalSettings | undefined;
  readonly METRICS: SignalSettings | undefined;
  readonly LOGS: SignalSettings | undefined;
}

/** Reads all variables. If `OTEL_SDK_DISABLED` is true, all other variables are ignored. */
export const read: Effect.Effect<OtlpSettings, OtlpConfigError> = Effect.gen(function* () {
  const disabled = yield* variable("OTEL_SDK_DISABLED", oneOf(["true", "false"]));
  if (disabled === "true") return off;
  const resource = yield* variable("OTEL_RESOURCE_ATTRIBUTES", pairs);
  return {
    serviceName: (yield* variable("OTEL_SERVICE_NAME", text)) ?? resource?.["service.name"],
    temporality:
      (yield* variable("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", oneOf(["cumulative", "delta"]))) ??
      "cumulative",
    TRACES: yield* signal("TRACES", "OTEL_BSP_SCHEDULE_DELAY"),
    METRICS: yield* signal("METRICS", "OTEL_METRIC_EXPORT_INTERVAL"),
    LOGS: yield* signal("LOGS", "OTEL_BLRP_SCHEDULE_DELAY"),
  };
});

const off: OtlpSettings = {
  serviceName: undefined,
  temporality: "cumulative",
  TRACES: undefined,
  METRICS: undefined,
  LOGS: undefined,
};

const signal = (name: Signal, interval: string): Effect.Effect<SignalSettings | undefined, OtlpConfigError> =>
  Effect.gen(function* () {
    const exporters = yield* variable(`OTEL_${name}_EXPORTER`, exporterList);
    const own = yield* variable(`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`, endpoint);
    const base = yield* variable("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    const url = own ?? (base === undefined ? undefined : appendPath(base, name));
    if (url === undefined || exporters?.includes("otlp") === false) return undefined;
    const readEither = <A>(what: string, parse: Parse<A>) =>
      Effect.gen(function* () {
        const found = yield* variable(`OTEL_EXPORTER_OTLP_${name}_${what}`, parse);
        return found ?? (yield* variable(`OTEL_EXPORTER_OTLP_${what}`, parse));
      });
    return {
      url: url.toString(),
      headers: (yield* readEither("HEADERS", headers)) ?? {},
      protocol: (yield* readEither("PROTOCOL", oneOf(["http/protobuf", "http/json"]))) ?? "http/protobuf",
      compression: (yield* readEither("COMPRESSION", oneOf(["gzip", "none"]))) ?? "none",
      intervalMs: yield* variable(interval, milliseconds),
      timeoutMs: yield* readEither("TIMEOUT", milliseconds),
    };
  });

/** Parses a value. The error is a description of the expected value. */
type Parse<A> = (value: string) => Result.Result<A, string>;

/** Reads a variable. Returns undefined if it is unset or empty, which the specification treats the same. */
const variable = <A>(name: string, parse: Parse<A>): Effect.Effect<A | undefined, OtlpConfigError> =>
  Effect.gen(function* () {
    const found = yield* Config.option(Config.String(name));
    const value = Option.getOrElse(found, () => "").trim();
    if (value === "") return undefined;
    const parsed = parse(value);
    if (Result.isSuccess(parsed)) return parsed.success;
    const message = `${name}: expected ${parsed.failure}`;
    return yield* new OtlpConfigError({ reason: "bad_value", variable: name, message });
  }).pipe(
    Effect.catchTag("ConfigError", () =>
      Effect.fail(
        new OtlpConfigError({
          reason: "unreadable",
          variable: name,
          message: `${name}: expected a text`,
        }),
      ),
    ),
  );

const text: Parse<string> = Result.succeed;

const oneOf =
  <const A extends string>(words: ReadonlyArray<A>): Parse<A> =>
  (value) => {
    const word = words.find((it) => it === value.toLowerCase());
    return word === undefined ? Result.fail(`${words.join(" or ")}; others are not supported`) : Result.succeed(word);
  };

/** Exporters in the specification. All except `otlp` and `none` are for other exporters of the same program. */
const exporterWords: ReadonlySet<string> = new Set(["otlp", "none", "console", "logging", "prometheus", "zipkin"]);

const exporterList: Parse<ReadonlyArray<string>> = (value) => {
  const words = value.split(",").map((word) => word.trim().toLowerCase());
  return words.every((word) => exporterWords.has(word))
    ? Result.succeed(words)
    : Result.fail(`a list of ${[...exporterWords].join(", ")}`);
};

const milliseconds: Parse<number> = (value) =>
  /^\d{1,9}$/.test(value) && Number(value) > 0
    ? Result.succeed(Number(value))
    : Result.fail("whole milliseconds above 0");

const endpoint: Parse<URL> = (value) => {
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol))
    return Result.fail("an address that begins with http:// or https://");
  // `fetch` refuses an address with a password, and its error would quote the password.
  return url.username !== "" || url.password !== ""
    ? Result.fail("an address without a name and password; OTEL_EXPORTER_OTLP_HEADERS takes credentials")
    : Result.succeed(url);
};

/** Appends the path of a signal to the general endpoint. The endpoint of a single signal is used unchanged instead. */
const appendPath = (base: URL, name: Signal): URL => {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/${name.toLowerCase()}`;
  return url;
};

/** Parses comma-separated `name=value` pairs with percent-encoded values, in the format that the specification requires (W3C Baggage). */
const pairs: Parse<Record<string, string>> = (value) => {
  const entries: Array<readonly [string, string]> = [];
  for (const pair of value.split(",").filter((it) => it.trim() !== "")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0)).trim();
    const decoded = decodePercent(pair.slice(at + 1).trim());
    if (name === "" || decoded === undefined)
      return Result.fail("comma-separated name=value pairs with percent-encoded values");
    entries.push([name, decoded]);
  }
  return Result.succeed(Object.fromEntries(entries));
};

const headers: Parse<Record<string, string>> = (value) =>
  Result.flatMap(pairs(value), (found) =>
    Object.entries(found).every(([name, it]) => headerName.test(name) && headerValue.test(it))
      ? Result.succeed(found)
      : Result.fail("name=value pairs that are valid as HTTP headers"),
  );

/** Matches a header name (a token in RFC 9110, 5.6.2). */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Matches a header value (RFC 9110, 5.5): visible characters, spaces and tabs. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

const decodePercent = (encoded: string): string | undefined => {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
};
