/**
 * One suite for every protocol: a stream is decoded whole, byte by byte, in random pieces, cut at every byte, with other
 * line ends, with trailing bytes and with damage. A new provider is one fixture folder and a table of what is in it.
 */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import type { FailureKind } from "../../src/domain/Failure.ts";
import type { Part, Protocol, Tolerance } from "../../src/provider/stream/Protocol.ts";
import * as Sse from "../../src/provider/stream/Sse.ts";
import { seeded } from "../Seeded.ts";
import {
  begun,
  characters,
  checkGrowth,
  concat,
  type Decoded,
  decode,
  encode,
  endOf,
  isPing,
  ranges,
  readyInputs,
  withoutBytes,
} from "./Decoded.ts";

export { checkGrowth };

/** The expected content of a stream. Omitted fields are not compared. */
export interface Expected {
  /** `complete`, or the kind of failure that a clean end after the last byte gives. */
  readonly end: "complete" | FailureKind;
  /** Visible characters of parts that show text. */
  readonly text?: number;
  /** Characters of parts that show reasoning. */
  readonly reasoning?: number;
  /** Tool names in the order in which their calls began. */
  readonly calls?: ReadonlyArray<string>;
  /** Arguments of the calls that became ready, in that order, parsed. */
  readonly inputs?: ReadonlyArray<unknown>;
  /** The provider's word on the terminal part. */
  readonly finish?: string;
  readonly tolerance?: Tolerance;
}

export interface Fixtures {
  /** The folder of the fixtures, as a URL that ends with a slash. */
  readonly folder: URL;
  /** One row a file. */
  readonly files: Readonly<Record<string, Expected>>;
  /** A frame that carries an error in this protocol's own schema, with its blank line. */
  readonly error: string;
}

/** Runs every check over every fixture of a protocol. */
export const suite = <S>(protocol: Protocol<S>, fixtures: Fixtures): void => {
  describe(`${protocol.id}: the shared suite`, () => {
    for (const [file, expected] of Object.entries(fixtures.files)) {
      const bytes = new Uint8Array(readFileSync(new URL(file, fixtures.folder)));
      describe(file, () => checks(protocol, bytes, expected, fixtures.error));
    }
    it("a response that is no stream is said to be none", () => {
      // A document on one line is a stream in a protocol of lines.
      const document = protocol.framing === undefined ? ['{"error":{"message":"no"}}'] : [];
      for (const body of [...document, "<html><body>502</body></html>", '\n\n[{"candidates":[]}]']) {
        const decoded = decode(protocol, [encode(body)]);
        assert.deepStrictEqual(endOf(decoded.end), "protocol", body);
        assert.deepStrictEqual(decoded.failure, { kind: "protocol", reason: "not_a_stream" }, body);
      }
    });
    it("random bytes never throw and are never complete", () => {
      const random = seeded(0x5eed);
      for (let round = 0; round < 200; round++) {
        const bytes = Uint8Array.from({ length: 200 }, () => Math.floor(random() * 256));
        assert.notStrictEqual(endOf(decode(protocol, [bytes]).end), "complete");
      }
    });
    it("no bytes at all are a truncated stream", () => {
      assert.strictEqual(endOf(decode(protocol, []).end), "truncated");
    });
  });
};

const checks = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected, error: string): void => {
  it("whole, it says what is in it", () => checkWhole(protocol, bytes, expected));
  it("byte by byte and in random pieces, it gives the same parts", () => checkPieces(protocol, bytes, expected));
  it("cut at every byte, it is never complete before the marker, and facts only grow", () =>
    checkCuts(protocol, bytes, expected));
  it("with CRLF, CR and a byte order mark, it gives the same parts", () => checkLineEnds(protocol, bytes, expected));
  it("unknown events between its frames change nothing", () => checkUnknown(protocol, bytes, expected));
  it("with one frame damaged before the marker, it fails as damaged", () => checkDamage(protocol, bytes, expected));
  if (expected.end !== "complete") return;
  it("trailing bytes after the marker change nothing", () => checkTrailing(protocol, bytes, expected, error));
  it("after an error event no marker counts", () => checkErrorFirst(protocol, bytes, expected, error));
};

/** The stream decoded whole must say what the table says. */
export const checkWhole = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected): void => {
  const decoded = decode(protocol, [bytes], expected.tolerance);
  const { parts } = decoded;
  assert.strictEqual(endOf(decoded.end), expected.end, JSON.stringify(decoded.end));
  checkGrowth(parts);
  if (expected.text !== undefined) assert.strictEqual(characters(parts, "text"), expected.text, "text characters");
  if (expected.reasoning !== undefined)
    assert.strictEqual(characters(parts, "reasoning"), expected.reasoning, "reasoning characters");
  if (expected.calls !== undefined) assert.deepStrictEqual(begun(parts), expected.calls, "calls");
  if (expected.inputs !== undefined) assert.deepStrictEqual(readyInputs(parts), expected.inputs, "inputs");
  const terminals = parts.filter((part) => part.observation.terminal);
  assert.isAtMost(terminals.length, 1, "one marker");
  if (expected.finish !== undefined) assert.strictEqual(terminals[0]?.observation.finish, expected.finish, "finish");
  for (const part of parts) assert.strictEqual(protocol.observe(part), part.observation);
};

/** Chunk borders must not matter. */
export const checkPieces = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected): void => {
  const whole = decode(protocol, [bytes], expected.tolerance);
  const single = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
  assert.deepStrictEqual(decode(protocol, single, expected.tolerance), whole);
  for (const seed of [1, 2, 3]) {
    const random = seeded(seed);
    const pieces: Array<Uint8Array> = [];
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + Math.floor(random() * 90);
      pieces.push(bytes.slice(at, at + size));
      at += size;
    }
    assert.deepStrictEqual(decode(protocol, pieces, expected.tolerance), whole, `seed ${seed}`);
  }
};

/**
 * Every cut of the stream. A cut within a frame is decoded from the state before that frame (states are immutable), which
 * makes all cuts affordable; a seeded sample is decoded from the first byte to prove that this gives the same.
 */
export const checkCuts = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected, cutsMax = 50_000): void => {
  const whole = decode(protocol, [bytes], expected.tolerance);
  const isComplete = completeAt(bytes, whole.parts);
  const seed = bytes.length;
  const random = seeded(seed);
  let state = protocol.initial(expected.tolerance);
  let anchor = { at: 0, index: 0, marked: false };
  for (const [index, [start, stop]] of ranges(whole.parts).entries()) {
    const part = whole.parts[index];
    if (part === undefined) return;
    // After the marker the decoder itself remembers it: those cuts are decoded from the marker's frame on.
    if (!anchor.marked) anchor = { at: start, index, marked: part.observation.terminal };
    const from = anchor;
    const anchored: Protocol<S> = { ...protocol, initial: () => state };
    for (let cut = start; cut < stop; cut++) {
      if (random() > (anchor.marked ? cutsMax / 10 : cutsMax) / bytes.length) continue;
      const decoded = decode(anchored, [bytes.subarray(from.at, cut)], expected.tolerance);
      checkCut(decoded, cut, isComplete, whole.parts.slice(from.index), `seed ${seed}`);
    }
    if (!anchor.marked && !isPing(part)) state = protocol.step(state, part.event)[0];
  }
  for (let round = 0; round < 25; round++) {
    const cut = Math.floor(random() * bytes.length);
    const decoded = decode(protocol, [bytes.subarray(0, cut)], expected.tolerance);
    checkCut(decoded, cut, isComplete, whole.parts, `seed ${seed}`);
  }
};

const checkCut = (
  decoded: Decoded,
  cut: number,
  isComplete: (cut: number) => boolean,
  parts: ReadonlyArray<Part>,
  note = "",
): void => {
  assert.strictEqual(endOf(decoded.end) === "complete", isComplete(cut), `complete at byte ${cut}? ${note}`);
  assert.isAtMost(decoded.parts.length, parts.length);
  for (const [index, part] of decoded.parts.entries()) {
    // The last frame of a cut may be unterminated, so its size is its own.
    assert.deepStrictEqual(part.observation, parts[index]?.observation, `cut ${cut} ${note}`);
    assert.strictEqual(part.event.data, parts[index]?.event.data, `cut ${cut} ${note}`);
  }
};

const checkLineEnds = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected): void => {
  const text = new TextDecoder().decode(bytes).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  const plain = decode(protocol, [encode(text)], expected.tolerance);
  const onlyCr = protocol.framing === undefined ? [text.replaceAll("\n", "\r")] : [];
  for (const other of [text.replaceAll("\n", "\r\n"), ...onlyCr, `\uFEFF${text}`]) {
    const decoded = decode(protocol, [encode(other)], expected.tolerance);
    assert.deepStrictEqual(withoutBytes(decoded.parts), withoutBytes(plain.parts));
    assert.deepStrictEqual(decoded.end, plain.end);
  }
};

const checkUnknown = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected): void => {
  const whole = decode(protocol, [bytes], expected.tolerance);
  const data = '{"type":"x_new.kind","note":"hello"}';
  const unknown = encode(`\n\n${(protocol.framing ?? Sse.framing).encode({ event: "x_new.kind", data })}`);
  const isKnown = (part: Part) => part.event.data !== data;
  const pieces = [unknown];
  for (const [from, to] of ranges(whole.parts)) pieces.push(bytes.subarray(from, to), unknown);
  const decoded = decode(protocol, [concat(pieces)], expected.tolerance);
  const known = decoded.parts.filter(isKnown);
  assert.deepStrictEqual(
    known.map((part) => part.observation),
    whole.parts.slice(0, known.length).map((part) => part.observation),
  );
  assert.strictEqual(endOf(decoded.end), expected.end);
  for (const part of decoded.parts)
    if (!isKnown(part)) {
      assert.deepStrictEqual(part.json, { type: "x_new.kind", note: "hello" });
      assert.strictEqual(part.observation.shows, "nothing");
      assert.isFalse(part.observation.terminal);
    }
};

const checkDamage = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected): void => {
  const whole = decode(protocol, [bytes], expected.tolerance);
  const all = ranges(whole.parts);
  const markers = whole.parts.findIndex((part) => part.observation.terminal || part.observation.failure !== undefined);
  for (let index = 0; index <= (markers === -1 ? all.length - 1 : markers); index++) {
    const [from, to] = all[index] ?? [0, 0];
    const part = whole.parts[index];
    if (part === undefined || isPing(part) || !part.event.data.startsWith("{")) continue;
    const { encode: write } = protocol.framing ?? Sse.framing;
    const written = write({ data: part.event.data.slice(0, -1) });
    const damaged = typeof written === "string" ? encode(written) : written;
    const decoded = decode(
      protocol,
      [concat([bytes.subarray(0, from), damaged, bytes.subarray(to)])],
      expected.tolerance,
    );
    assert.strictEqual(endOf(decoded.end), "protocol", `frame ${index}`);
    // A first line that is no JSON proves that the body is none of lines.
    const reason = protocol.framing !== undefined && index === 0 ? "not_a_stream" : "damaged_frame";
    assert.deepInclude(decoded.failure, { kind: "protocol", reason });
  }
};

const checkTrailing = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected, error: string): void => {
  const whole = decode(protocol, [bytes], expected.tolerance);
  // If only a clean end after the last finish counts, damage and errors before that end do count.
  const atEnd = !whole.parts.some((part) => part.observation.terminal);
  const harmless = [": bye\n\n", "garbage\u0000\n\n", 'data: {"x":1}'];
  const trailers = atEnd ? harmless : [...harmless, 'data: {"cut":\n\n', 'data: {"cut":', "{}\n", "<html>", error];
  for (const trailer of trailers) {
    const decoded = decode(protocol, [bytes, encode(`\n\n${trailer}`)], expected.tolerance);
    assert.strictEqual(endOf(decoded.end), "complete", trailer);
    assert.deepStrictEqual(withoutBytes(decoded.parts.slice(0, whole.parts.length)), withoutBytes(whole.parts));
    for (const part of decoded.parts.slice(whole.parts.length)) assert.isFalse(part.observation.terminal);
  }
  if (!atEnd) return;
  for (const trailer of ['data: {"cut":\n\n', 'data: {"cut":', "{}\n", error])
    assert.notStrictEqual(
      endOf(decode(protocol, [bytes, encode(`\n\n${trailer}`)], expected.tolerance).end),
      "complete",
      trailer,
    );
};

const checkErrorFirst = <S>(protocol: Protocol<S>, bytes: Uint8Array, expected: Expected, error: string): void => {
  const whole = decode(protocol, [bytes], expected.tolerance);
  const marker = whole.parts.findIndex((part) => part.observation.terminal);
  for (const [index, [from]] of ranges(whole.parts).entries()) {
    if (marker !== -1 && index > marker) break;
    const pieces = [bytes.subarray(0, from), encode(error), bytes.subarray(from)];
    const decoded = decode(protocol, [concat(pieces)], expected.tolerance);
    assert.notStrictEqual(endOf(decoded.end), "complete", `an error before frame ${index}`);
    assert.isTrue(decoded.failure?.in_band, "an error event is in band");
    // The fold itself holds it too: a caller that drives `step` past the error meets no marker.
    let state = protocol.initial(expected.tolerance);
    const failed = decoded.parts.find((part) => part.observation.failure !== undefined);
    if (failed === undefined) assert.fail("the error event is a part");
    for (const part of [...whole.parts.slice(0, index), failed, ...whole.parts.slice(index)]) {
      if (isPing(part)) continue;
      const [next, seen] = protocol.step(state, part.event);
      state = next;
      assert.isFalse(seen.observation.terminal);
    }
    assert.isFalse(protocol.halt(state).complete);
  }
};

/**
 * Returns true if a cut leaves a complete stream: with a terminal event, from the last byte of its data on; without one, if the
 * last frame before the cut says that the stream may end after it, and no byte of another frame has come.
 */
const completeAt = (bytes: Uint8Array, parts: ReadonlyArray<Part>): ((cut: number) => boolean) => {
  const ends = ranges(parts).map(([, to]) => {
    let end = to;
    while (end > 0 && (bytes[end - 1] === 10 || bytes[end - 1] === 13)) end--;
    return end;
  });
  const marker = ends[parts.findIndex((part) => part.observation.terminal && part.observation.failure === undefined)];
  return (cut) => {
    if (marker !== undefined && cut >= marker) return true;
    const last = ends.findLastIndex((end) => end <= cut);
    const blank = bytes.subarray(ends[last] ?? 0, cut).every((byte) => byte === 10 || byte === 13);
    return blank && parts[last]?.observation.terminal_at_end === true;
  };
};
