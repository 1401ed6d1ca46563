/**
 * Reads what a decoder said about some bytes, for tests.
 */
import { assert } from "@effect/vitest";
import type { Failure, FailureKind } from "../../src/domain/Failure.ts";
import * as Json from "../../src/domain/Json.ts";
import type { CallSignal } from "../../src/domain/Observation.ts";
import * as Decoder from "../../src/provider/stream/Decoder.ts";
import type { End, Part, Protocol, Tolerance } from "../../src/provider/stream/Protocol.ts";

/** Everything that a decoder said about some bytes. */
export interface Decoded {
  readonly parts: ReadonlyArray<Part>;
  readonly end: End;
  readonly failure: Failure | undefined;
}

/** Decodes pieces of bytes to their end. */
export const decode = <S>(
  protocol: Protocol<S>,
  pieces: ReadonlyArray<Uint8Array>,
  tolerance: Tolerance = {},
): Decoded => {
  const decoder = Decoder.make(protocol, { tolerance });
  const parts: Array<Part> = [];
  for (const piece of pieces) parts.push(...decoder.push(piece));
  const last = decoder.end();
  return { parts: [...parts, ...last.parts], end: last.end, failure: decoder.failure };
};

const phases = ["input_started", "input_complete", "ready", "settled"];

/** Nothing that a part says about a call takes back what an earlier part said. */
export const checkGrowth = (parts: ReadonlyArray<Part>): void => {
  const seen = new Map<string, CallSignal>();
  const next = new Map<number, number>();
  for (const { observation } of parts) {
    if (observation.terminal && observation.failure !== undefined)
      assert.include(["invalid_tool_input", "empty"], observation.failure.kind, "a marker with a failure");
    for (const signal of observation.calls) {
      const key = `${signal.choice}.${signal.ordinal}`;
      const before = seen.get(key);
      if (before === undefined) {
        assert.strictEqual(signal.ordinal, next.get(signal.choice) ?? 0, "ordinals count from 0 without gaps");
        next.set(signal.choice, signal.ordinal + 1);
      } else {
        assert.isAtMost(phases.indexOf(before.phase), phases.indexOf(signal.phase), `phases of ${key} grow`);
        assert.strictEqual(signal.executor, before.executor, `executor of ${key}`);
        if (before.tool !== undefined && signal.tool !== undefined) assert.strictEqual(signal.tool, before.tool);
      }
      if (signal.phase === "ready") assert.isString(signal.input, "a ready call carries its input");
      seen.set(key, { ...before, ...signal });
    }
  }
};

/** Characters of the parts that show `what`. */
export const characters = (parts: ReadonlyArray<Part>, what: "text" | "reasoning"): number =>
  parts.reduce((sum, { observation }) => sum + (observation.shows === what ? observation.characters : 0), 0);

/** Tool names in the order in which their calls began. */
export const begun = (parts: ReadonlyArray<Part>): ReadonlyArray<string> => {
  const names = new Map<string, string>();
  for (const { observation } of parts)
    for (const signal of observation.calls) {
      const key = `${signal.choice}.${signal.ordinal}`;
      if (!names.get(key)) names.set(key, signal.tool ?? "");
    }
  return [...names.values()];
};

export const readyInputs = (parts: ReadonlyArray<Part>): ReadonlyArray<unknown> =>
  parts.flatMap(({ observation }) =>
    observation.calls
      .filter((call) => call.phase === "ready")
      .map(({ input }) => Json.parse(input ?? "")?.json ?? input),
  );

/** `complete`, or the kind of the failure. */
export const endOf = (end: End): "complete" | FailureKind => (end.complete ? "complete" : end.failure.kind);

/** The byte range of each part's frame. */
export const ranges = (parts: ReadonlyArray<Part>): ReadonlyArray<readonly [number, number]> => {
  let at = 0;
  return parts.map((part) => {
    const from = at;
    at += part.event.bytes;
    return [from, at] as const;
  });
};

/** Returns true if a part is not one of the protocol: a comment, or data without a character. */
export const isPing = (part: Part): boolean => part.observation.keep_alive && part.json === undefined;

export const withoutBytes = (parts: ReadonlyArray<Part>): ReadonlyArray<unknown> =>
  parts.map((part) => ({ ...part, event: { ...part.event, bytes: 0 } }));

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export const concat = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const out = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
};
