/** Reads the client's settings from its options. A setting that is not given comes from the environment, or else has its default. */
import { Config, type Duration, Effect, Option, Redacted, Schema } from "effect";
import { toMs } from "../domain/Durations.ts";
import { label } from "../domain/Limits.ts";
import * as EgressProxy from "./connection/EgressProxy.ts";

/**
 * Default maximum idle time of a kept connection, in milliseconds. A NAT has been observed to drop connections after 42 s (gitmost #179).
 */
export const keepAliveMsDefault = 10_000;

/** The environment variable for `keepAliveMs`, used if the caller sets none. */
export const keepAliveVariable = "STREAM_RECOVERY_KEEPALIVE_MS";

/** Maximum delay of a timer, in milliseconds. Node fires a timer with a longer delay at once. */
export const timerMsMax = 2_147_483_647;

/** A setting cannot be used. The message is one line with the setting's name, the expected value and the given one. */
export class ClientConfigError extends Schema.TaggedError<ClientConfigError>()("ClientConfigError", {
  reason: Schema.Literals(["bad_value", "unreadable"]),
  /** The option or environment variable. */
  setting: Schema.String,
  message: Schema.String,
}) {}

/**
 * Returns the idle time after which a kept connection is closed.
 *
 * @param given the caller's option; if omitted, `STREAM_RECOVERY_KEEPALIVE_MS`, or else `otherwise`
 * @param otherwise milliseconds, 10,000 by default
 * @throws ClientConfigError `bad_value` for anything but a whole number from 1 to 2,147,483,647
 */
export const keepAliveMs = (
  given: Duration.Input | undefined,
  otherwise = keepAliveMsDefault,
): Effect.Effect<number, ClientConfigError> =>
  given === undefined ? fromEnvironment(otherwise) : checkMilliseconds("keepAliveMs", toMs(given), String(given));

const fromEnvironment = Effect.fnUntraced(function* (otherwise: number) {
  const text = yield* readVariable(keepAliveVariable);
  if (text === undefined) return otherwise;
  const digits = /^\s*(\d+)\s*$/.exec(text)?.[1];
  return yield* checkMilliseconds(keepAliveVariable, Number(digits), JSON.stringify(label(text)));
});

const readVariable = (name: string): Effect.Effect<string | undefined, ClientConfigError> =>
  Config.option(Config.String(name)).pipe(
    Effect.map(Option.getOrUndefined),
    Effect.mapError(() => {
      const message = `${name}: cannot read the configuration`;
      return new ClientConfigError({ reason: "unreadable", setting: name, message });
    }),
  );

const checkMilliseconds = (setting: string, value: number, shown: string): Effect.Effect<number, ClientConfigError> => {
  if (Number.isInteger(value) && value >= 1 && value <= timerMsMax) return Effect.succeed(value);
  const message = `${setting}: expected a whole number of milliseconds from 1 to ${timerMsMax}, got ${shown}`;
  return Effect.fail(new ClientConfigError({ reason: "bad_value", setting, message }));
};

/** Disables the egress proxy, regardless of the environment. */
export const directProxy = "direct";

/**
 * Chooses the egress proxy of each connection.
 *
 * @param given an address for every target, or `direct`; if omitted, the environment's variables apply, the lower-case form first, and an
 *   empty variable counts as unset
 * @throws ClientConfigError `bad_value` for an invalid address; its message repeats no part of the address
 */
export const proxyChoice = (
  given: string | Redacted.Redacted<string> | undefined,
): Effect.Effect<EgressProxy.ProxyChoice, ClientConfigError> => {
  if (given === undefined) return proxiesOfEnvironment;
  const address = Redacted.isRedacted(given) ? Redacted.value(given) : given;
  return address === directProxy
    ? Effect.succeed(EgressProxy.useOne(undefined))
    : Effect.map(parseProxy("proxy", address), EgressProxy.useOne);
};

const proxiesOfEnvironment = Effect.gen(function* () {
  return EgressProxy.fromEnvironment({
    http: yield* readProxyVariable("HTTP_PROXY"),
    https: yield* readProxyVariable("HTTPS_PROXY"),
    none: (yield* readEitherCase("NO_PROXY"))?.text ?? "",
  });
});

const readProxyVariable = Effect.fnUntraced(function* (name: string) {
  const found = yield* readEitherCase(name);
  return found === undefined ? undefined : yield* parseProxy(found.name, found.text);
});

const readEitherCase = Effect.fnUntraced(function* (upper: string) {
  for (const name of [upper.toLowerCase(), upper]) {
    const text = (yield* readVariable(name))?.trim() ?? "";
    if (text !== "") return { name, text };
  }
  return undefined;
});

const parseProxy = (setting: string, address: string): Effect.Effect<EgressProxy.EgressProxy, ClientConfigError> => {
  const proxy = EgressProxy.read(address);
  if (proxy !== undefined) return Effect.succeed(proxy);
  const message = `${setting}: expected a proxy as ${EgressProxy.proxyForm}`;
  return Effect.fail(new ClientConfigError({ reason: "bad_value", setting, message }));
};
