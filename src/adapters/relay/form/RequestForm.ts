/**
 * Says what a request is known by, to make a digest of: words about it, and its body in its canonical form where it has one, behind each
 * other.
 */
import * as Effect from "effect/Effect";
import { canonical } from "./CanonicalBody.ts";
import { CanonicalSpans, pieceBytes } from "./CanonicalSpans.ts";
import { scanned } from "./JsonScan.ts";

/** What is made a digest of. */
export interface RequestForm {
  /** JSON, which ends where it ends: no words and body are those of another request. */
  readonly words: ReadonlyArray<unknown>;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** Members of the body that make no other request. */
  readonly leftOut: ReadonlySet<string>;
}

/** Makes a digest of a form, as hexadecimal digits. A promise of it costs a request two more turns. */
export type FormDigest = (form: RequestForm) => string | Promise<string>;

/** The form as parts that stand behind each other, at once. The body is good until the next form is made. */
export const partsOf = ({
  body: given,
  leftOut,
  words,
}: RequestForm): [words: string, body: Uint8Array<ArrayBuffer>] => {
  const body = typeof given === "string" ? new TextEncoder().encode(given) : (given ?? new Uint8Array(0));
  const form = canonical(body, leftOut);
  return [headOf(words, form !== undefined), form ?? body];
};

/**
 * Gives the same of a large body part by part, and lets others have their turn behind every one.
 *
 * A body that has no canonical form for being too much work in one turn may have one here: a request is large or it is not, so that its
 * repeat is told by the same.
 *
 * @param take called with every part; a part of the body is good until it returns
 */
export const takeParts = (
  { leftOut, words }: RequestForm,
  body: Uint8Array,
  take: (part: string | Uint8Array) => void,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const spans = new CanonicalSpans(body);
    const end = yield* scanned(body, spans);
    const form = end === "json" ? spans.pieces(leftOut) : undefined;
    take(headOf(words, form !== undefined));
    for (const piece of form ?? slices(body)) {
      take(piece);
      yield* Effect.yieldNow;
    }
  });

/** A body that has no canonical form is another one than that of the same bytes which is its own. */
const headOf = (words: ReadonlyArray<unknown>, hasForm: boolean): string => JSON.stringify([!hasForm, ...words]);

function* slices(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}
