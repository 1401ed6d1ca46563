/** Reads the variables of a store through the program's `ConfigProvider`: by default the environment of the process. */
import * as Config from "effect/Config";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { RecorderError } from "../RecorderError.ts";

/** Reads variables. One that is not set is missing in the result. */
export const readVariables = <const Name extends string>(
  names: ReadonlyArray<Name>,
): Effect.Effect<Partial<Record<Name, string>>, RecorderError> =>
  Effect.gen(function* () {
    const found: Partial<Record<Name, string>> = {};
    for (const name of names) {
      const value = yield* Effect.mapError(Config.option(Config.String(name)), () => unreadable(name));
      if (Option.isSome(value)) found[name] = value.value;
    }
    return found;
  });

const unreadable = (name: string): RecorderError =>
  new RecorderError({ reason: "bad_option", run_id: "", message: `$${name}: expected a text` });
