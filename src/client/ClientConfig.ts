/**
 * Reads the client's settings: from the caller, else from the environment, else the default.
 */
import { Config, Effect, Option, Schema } from "effect";
import { label } from "../domain/Limits.ts";

/** Longest idle time of a kept connection by default, in milliseconds: a NAT was seen to drop connections after 42 s (gitmost #179). */
export const keepAliveMsDefault = 10_000;

/** The environment variable that sets `keepAliveMs` where the caller does not. */
export const keepAliveVariable = "STREAM_RECOVERY_KEEPALIVE_MS";

/** Largest delay that a timer takes, in milliseconds (Node fires a larger one at once). */
export const timerMsMax = 2_147_483_647;

/** A setting that cannot be used. The message is one line: its name, what was expected, what was given. */
export class ClientConfigError extends Schema.TaggedError<ClientConfigError>()("ClientConfigError", {
  reason: Schema.Literals(["bad_value", "unreadable"]),
  /** The option or environment variable. */
  setting: Schema.String,
  message: Schema.String,
}) {}

/**
 * The idle time after which a kept connection is closed.
 *
 * @param given the caller's option, in milliseconds; left out: `STREAM_RECOVERY_KEEPALIVE_MS`, else `otherwise`
 * @param otherwise milliseconds, by default 10,000
 * @throws ClientConfigError `bad_value` for anything but a whole number from 1 to 2,147,483,647
 */
export const keepAliveMs = (
  given: number | undefined,
  otherwise = keepAliveMsDefault,
): Effect.Effect<number, ClientConfigError> =>
  given === undefined ? fromEnvironment(otherwise) : checked("keepAliveMs", given, String(given));

const fromEnvironment = Effect.fnUntraced(function* (otherwise: number) {
  const text = yield* Effect.mapError(Config.option(Config.String(keepAliveVariable)), () => unreadable);
  if (Option.isNone(text)) return otherwise;
  const digits = /^\s*(\d+)\s*$/.exec(text.value)?.[1];
  return yield* checked(keepAliveVariable, Number(digits), JSON.stringify(label(text.value)));
});

const unreadable = new ClientConfigError({
  reason: "unreadable",
  setting: keepAliveVariable,
  message: `${keepAliveVariable}: the configuration could not be read`,
});

const checked = (setting: string, value: number, shown: string): Effect.Effect<number, ClientConfigError> => {
  if (Number.isInteger(value) && value >= 1 && value <= timerMsMax) return Effect.succeed(value);
  const message = `${setting}: expected a whole number of milliseconds from 1 to ${timerMsMax}, got ${shown}`;
  return Effect.fail(new ClientConfigError({ reason: "bad_value", setting, message }));
};
