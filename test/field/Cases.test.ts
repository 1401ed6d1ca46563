/**
 * Plays the faults that users reported, in every protocol that has them.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ProtocolId } from "../../src/provider/Protocols.ts";
import { layer } from "../adapters/relay/RelayCases.ts";
import { type Attempt, type Case, cases } from "./Cases.ts";
import { played } from "./Wires.ts";

/** The bytes of an attempt: its event stream or document. */
const bytesOf = (attempt: Attempt | undefined): string =>
  (attempt ?? []).filter((step) => typeof step === "string" && step !== "end" && step !== "silence").join("");

const check = (it: Case, protocol: ProtocolId) =>
  Effect.gen(function* () {
    const attempts = it.attempts(protocol);
    const got = yield* played(protocol, attempts, { reveal: it.reveal, ...it.options });
    assert.deepStrictEqual(
      { requests: got.requests, end: got.end },
      { requests: it.requests, end: it.end },
      got.text.slice(-300),
    );
    const last = bytesOf(attempts[Math.min(it.requests, attempts.length) - 1]);
    switch (it.outcome) {
      case "whole":
      case "as_sent":
        assert.strictEqual(got.text, last);
        break;
      case "withheld":
        assert.notInclude(got.text, "rm");
        assert.notInclude(got.text, "Once");
        break;
      case "kept":
        assert.include(got.text, "So.");
        assert.notInclude(got.text, "rm");
        break;
      case "refused":
        assert.strictEqual(got.text, "");
    }
  }).pipe(Effect.scoped, Effect.provide(layer));

describe("The cases of the field", () => {
  for (const row of cases)
    for (const protocol of row.protocols)
      it.effect(`${protocol}, ${row.reveal}: ${row.name} (${row.reports})`, () => check(row, protocol));

  it("are at least 35, and no two share a name", () => {
    const names = cases.map(({ name, reveal }) => `${name}, ${reveal}`);
    assert.isAtLeast(names.length, 35);
    assert.strictEqual(new Set(names).size, names.length);
  });
});
