import { inspect } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import * as ProgramWire from "../../../src/cli/serve/ProgramWire.ts";
import type { ProgramOptions } from "../../../src/gateway/config/ProgramOptions.ts";

const secret = (redacted: unknown): unknown => (Redacted.isRedacted(redacted) ? Redacted.value(redacted) : undefined);

const program: ProgramOptions = {
  port: 0,
  token: "t",
  allowedHosts: ["one", "two"],
  tls: { cert: "cert", key: Redacted.make("key of tls") },
  limits: { drainMs: 5 },
  clocks: { idle: false },
  retryEmpty: false,
};

describe("the options of a gateway sent to a worker", () => {
  it("arrive as they were, through a structured clone", () => {
    const arrived = ProgramWire.decode(structuredClone(ProgramWire.encode(program)));
    assert.deepStrictEqual({ ...arrived, tls: undefined }, { ...program, tls: undefined });
    assert.strictEqual(arrived.tls?.cert, "cert");
    assert.strictEqual(secret(arrived.tls?.key), "key of tls");
    assert.notInclude(inspect(arrived, { depth: 9 }), "key of tls", "a secret is one again");
  });

  it("keep nested secrets, empty values, and values that JSON cannot express", () => {
    const odd = {
      list: [Redacted.make("a"), { deep: [Redacted.make("")] }],
      ...{ none: undefined, nil: null, endless: Number.POSITIVE_INFINITY, text: "~secret", empty: {} },
    };
    // The encoding is the same for any value; these are no options.
    const arrived = ProgramWire.decode(
      structuredClone(ProgramWire.encode(odd as ProgramOptions)),
    ) as unknown as typeof odd;
    const [first, second] = arrived.list;
    assert.strictEqual(secret(first), "a");
    assert.strictEqual(secret((second as { readonly deep: ReadonlyArray<unknown> }).deep[0]), "");
    assert.deepStrictEqual({ ...arrived, list: [] }, { ...odd, list: [] });
  });
});
