import { assert } from "@effect/vitest";
import type { Failure } from "../../src/domain/Failure.ts";

type Expected = { readonly [K in string]?: unknown };

/** Compares the named fields only, and says the whole failure when they differ. */
export const expectFailure = (actual: Failure | undefined, expected: Expected): void => {
  const picked = Object.fromEntries(
    Object.keys(expected).map((key) => [key, actual === undefined ? undefined : Reflect.get(actual, key)]),
  );
  assert.deepStrictEqual(picked, expected, JSON.stringify(actual));
};
