/**
 * Finds the canonical form of a large body as it is scanned, as places of the body in another order: nothing is copied before the form is
 * read, piece by piece.
 *
 * The form is that of `CanonicalBody`, which says what it is good for. What stands in the body as it stands in the form is one span,
 * however many values it holds: so a conversation of 60 MB is a few thousand spans.
 */
import { depthMax, wordBytesMax } from "./CanonicalBody.ts";
import { type JsonListener, sign } from "./JsonScan.ts";

/** Most spans that are kept. */
export const spansMax = 250_000;

/** Most members of one object: they are sorted in one turn of the event loop. */
export const membersMax = 10_000;

/** Bytes of the form that are given at one time. */
export const pieceBytes = 64 * 1_024;

interface Span {
  readonly from: number;
  readonly to: number;
}

interface Member {
  /** The bytes between the quotes, a code unit each. */
  readonly key: string;
  readonly name: Span;
  readonly value: Part;
}

type Part = Span | { readonly items: ReadonlyArray<Part> } | { readonly members: ReadonlyArray<Member> };

/** An object or a list that is open. */
interface Open {
  readonly from: number;
  readonly items: Array<Part>;
  readonly members: Array<Member> | undefined;
  /** The name of the member whose value comes. */
  name: Span;
  key: string;
  /** Where the last token within it has ended. */
  end: number;
  /** Up to here it stands as it stands in the form. */
  same: boolean;
}

const { BACKSLASH, CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } = sign;

/** Finds one form. */
export class CanonicalSpans implements JsonListener {
  readonly #bytes: Uint8Array;
  readonly #open: Array<Open> = [];
  #spans = 0;
  #whole: ReadonlyArray<Member> | undefined;
  #unclear: boolean;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    // A byte order mark is no JSON to everybody.
    this.#unclear = bytes[0] === 0xef;
  }

  readonly isDone = (): boolean => this.#unclear;

  readonly open = (bracket: number, at: number): void => {
    if (this.#unclear) return;
    this.#begins(at);
    const members = bracket === OPEN_OBJECT ? [] : undefined;
    this.#open.push({ from: at, items: [], members, name: none, key: "", end: at + 1, same: true });
    if (this.#open.length > depthMax) this.#unclear = true;
  };

  readonly close = (_bracket: number, to: number): void => {
    const it = this.#unclear ? undefined : this.#open.pop();
    if (it === undefined) return;
    const same = it.same && it.end === to - 1;
    if (this.#open.length === 0) this.#whole = it.members && this.#sorted(it.members);
    else if (same) {
      this.#spans -= it.items.length + 2 * (it.members?.length ?? 0);
      this.#ended({ from: it.from, to }, to, true);
    } else this.#ended(it.members ? { members: this.#sorted(it.members) } : { items: it.items }, to, false);
  };

  readonly key = (from: number, to: number): void => {
    const it = this.#open.at(-1);
    if (this.#unclear || it === undefined) return;
    this.#begins(from);
    const letters = this.#bytes.subarray(from + 1, to - 1);
    if (letters.length > wordBytesMax || letters.includes(BACKSLASH)) this.#unclear = true;
    else {
      const key = String.fromCharCode(...letters);
      it.same &&= it.members?.length === 0 || it.key < key;
      it.key = key;
    }
    it.name = { from, to };
    it.end = to;
  };

  readonly scalar = (from: number, to: number): void => {
    if (this.#unclear) return;
    this.#begins(from);
    if (this.#bytes[from] !== QUOTE && to - from > wordBytesMax) this.#unclear = true;
    this.#ended({ from, to }, to, true);
  };

  /**
   * The form, piece by piece; a piece is good until the next one is asked for.
   *
   * @param leftOut members of the outermost object that make no other request
   * @returns undefined for a body that has none
   */
  pieces(leftOut: ReadonlySet<string>): Iterable<Uint8Array> | undefined {
    if (this.#unclear || this.#whole === undefined) return undefined;
    return new Pieces(this.#bytes).of({ members: this.#whole.filter(({ key }) => !leftOut.has(key)) });
  }

  /** A token begins: behind the one before, and a comma or a colon, or behind blanks too. */
  #begins(at: number): void {
    const it = this.#open.at(-1);
    if (it === undefined) return;
    const isFirst = it.end === it.from + 1;
    if (at !== it.end + (isFirst ? 0 : 1)) it.same = false;
  }

  #ended(part: Part, to: number, same: boolean): void {
    const it = this.#open.at(-1);
    if (it === undefined) return;
    it.end = to;
    it.same &&= same;
    if (it.members === undefined) it.items.push(part);
    else it.members.push({ key: it.key, name: it.name, value: part });
    this.#spans += it.members === undefined ? 1 : 2;
    if (this.#spans > spansMax || (it.members?.length ?? 0) > membersMax) this.#unclear = true;
  }

  #sorted(members: ReadonlyArray<Member>): ReadonlyArray<Member> {
    const inOrder = members.toSorted((a, b) => (a.key < b.key ? -1 : 1));
    // Which of two members of one name counts is the provider's to say.
    if (inOrder.some(({ key }, index) => inOrder[index + 1]?.key === key)) this.#unclear = true;
    return inOrder;
  }
}

const none: Span = { from: 0, to: 0 };

/** Room for brackets that close behind each other before a piece is given. */
const slack = 2 * depthMax + 16;

/** Writes a form into one place again and again. */
class Pieces {
  readonly #bytes: Uint8Array;
  readonly #out = new Uint8Array(pieceBytes + slack);
  #length = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  *of(part: Part): Generator<Uint8Array> {
    yield* this.#part(part);
    yield this.#piece();
  }

  *#part(part: Part): Generator<Uint8Array> {
    if (this.#length >= pieceBytes) yield this.#piece();
    if ("items" in part) {
      this.#byte(OPEN_LIST);
      for (const [index, item] of part.items.entries()) {
        if (index > 0) this.#byte(COMMA);
        yield* this.#part(item);
      }
      this.#byte(CLOSE_LIST);
    } else if ("members" in part) {
      this.#byte(OPEN_OBJECT);
      for (const [index, { name, value }] of part.members.entries()) {
        if (index > 0) this.#byte(COMMA);
        yield* this.#part(name);
        this.#byte(COLON);
        yield* this.#part(value);
      }
      this.#byte(CLOSE_OBJECT);
    } else
      for (let at = part.from; at < part.to; ) {
        if (this.#length >= pieceBytes) yield this.#piece();
        const count = Math.min(part.to - at, pieceBytes - this.#length);
        this.#out.set(this.#bytes.subarray(at, at + count), this.#length);
        this.#length += count;
        at += count;
      }
  }

  #byte(byte: number): void {
    this.#out[this.#length] = byte;
    this.#length += 1;
  }

  #piece(): Uint8Array {
    const piece = this.#out.subarray(0, this.#length);
    this.#length = 0;
    return piece;
  }
}
