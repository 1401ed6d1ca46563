import { assert } from "@effect/vitest";
import type { Failure } from "../../src/domain/Failure.ts";

type Expected = { readonly [K in string]?: unknown };

/** Compares only the named fields, and shows the whole failure if they differ. */
export const expectFailure = (actual: Failure | undefined, expected: Expected): void => {
  const picked = Object.fromEntries(
    Object.keys(expected).map((key) => [key, actual === undefined ? undefined : Reflect.get(actual, key)]),
  );
  assert.deepStrictEqual(picked, expected, JSON.stringify(actual));
};
