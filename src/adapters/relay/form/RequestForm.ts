/**
 * Defines the digest input that identifies a request: a list of values about the request (`words`), followed by its body. The body is in
 * canonical form if it has one.
 */
import * as Effect from "effect/Effect";
import { byteOrderMark, canonical, canonicalBytesMax, canonicalValue } from "./CanonicalBody.ts";
import { type JsonMember, membersInTurns } from "./JsonMembers.ts";

/** The input of a digest. */
export interface RequestForm {
  /**
   * Values that distinguish requests besides their bodies. They are written as JSON, whose end is unambiguous, so no body can be taken for
   * a part of them.
   */
  readonly words: ReadonlyArray<unknown>;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** Members of the body that do not distinguish requests. */
  readonly leftOut: ReadonlySet<string>;
}

/** Computes the digest of a form, as hexadecimal digits. A promise costs a request two more turns of the event loop. */
export type FormDigest = (form: RequestForm) => string | Promise<string>;

/** A part of a form. Bytes are valid until the next part is created. */
export type FormPart = string | Uint8Array<ArrayBuffer>;

/**
 * Maximum size of a member of a large body that is written in canonical form, in bytes. A longer member stays as it is, in pieces of this
 * size.
 */
export const pieceBytes = 64 * 1_024;

/** Splits a form into its parts, synchronously. The body is valid until the next form is computed. */
export const partsOf = (form: RequestForm): [words: string, body: Uint8Array<ArrayBuffer>] => {
  const body = bytesOf(form);
  const spelt = canonical(body, form.leftOut);
  return [headOf(form, spelt !== undefined), spelt ?? body];
};

/**
 * Passes each part of a form to `take`. For a body above `canonicalBytesMax`, it yields to other fibers between two parts.
 *
 * In such a body, only the outermost members are put in order, and members above `pieceBytes` are used byte for byte. Only the size of a
 * request decides this, and both forms are JSON of the body's value, so they never confuse two requests.
 *
 * @param take called with each part
 */
export const forEachPart = (form: RequestForm, take: (part: FormPart) => void): Effect.Effect<void> =>
  Effect.gen(function* () {
    const body = bytesOf(form);
    yield* Effect.yieldNow;
    if (body.length <= canonicalBytesMax) {
      for (const part of partsOf(form)) take(part);
      return;
    }
    // Not every JSON reader accepts a byte order mark.
    const members = body[0] === byteOrderMark ? undefined : sortMembers((yield* membersInTurns(body))?.members);
    const kept = members?.filter(({ key }) => !form.leftOut.has(key));
    take(headOf(form, kept !== undefined));
    for (const part of kept === undefined ? slices(body) : piecesOf(body, kept)) {
      take(part);
      yield* Effect.yieldNow;
    }
  });

const bytesOf = ({ body }: RequestForm): Uint8Array<ArrayBuffer> =>
  typeof body === "string" ? new TextEncoder().encode(body) : (body ?? new Uint8Array(0));

/** Marks a body without a canonical form, so that it differs from a body whose form has the same bytes. */
const headOf = ({ words }: RequestForm, hasForm: boolean): string => JSON.stringify([!hasForm, ...words]);

type Named = JsonMember & { readonly key: string };

/** Members in the order of their names; undefined if a name cannot be read, or if two are the same. */
const sortMembers = (members: ReadonlyArray<JsonMember> | undefined): ReadonlyArray<Named> | undefined => {
  const named = members?.filter((member): member is Named => member.key !== undefined);
  if (named === undefined || named.length !== members?.length) return undefined;
  const inOrder = named.toSorted((one, other) => (one.key < other.key ? -1 : 1));
  // Only the provider decides which of two members of one name counts.
  return inOrder.some(({ key }, index) => inOrder[index + 1]?.key === key) ? undefined : inOrder;
};

function* piecesOf(body: Uint8Array<ArrayBuffer>, members: ReadonlyArray<Named>): Generator<FormPart> {
  for (const [index, { from, key, to }] of members.entries()) {
    yield `${index === 0 ? "{" : ","}${JSON.stringify(key)}:`;
    const value = body.subarray(from, to);
    const spelt = value.length > pieceBytes ? undefined : canonicalValue(value);
    if (spelt === undefined) yield* slices(value);
    else yield spelt;
  }
  yield members.length === 0 ? "{}" : "}";
}

function* slices(body: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}
