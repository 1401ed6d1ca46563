/**
 * Reads from a request's body which stored responses and conversations it goes on with.
 *
 * Every member of a name counts, because servers differ in which of two they read, and some read names without case.
 */
import { Effect } from "effect";
import { type JsonListener, scanned, sign } from "../../adapters/relay/form/JsonScan.ts";
import * as Json from "../../domain/Json.ts";

/** What a body names. */
export interface NamedId {
  readonly what: "Previous response" | "Conversation";
  readonly id: string;
}

/** Longest name or id that is read, in bytes. */
const textBytesMax = 1_024;

/** Maximum ids that are read of one body. */
export const namedIdsMax = 16;

/**
 * Reads them.
 *
 * @param plain a body that is known to be an object, without content encoding
 * @returns undefined for a body that names more than `namedIdsMax`
 */
export const namedIds = (plain: Uint8Array): Effect.Effect<ReadonlyArray<NamedId> | undefined> =>
  Effect.suspend(() => {
    const reader = new Reader(plain);
    return Effect.map(scanned(plain, reader), () => (reader.isDone() ? undefined : reader.found));
  });

const names: Readonly<Record<string, NamedId["what"] | undefined>> = {
  previous_response_id: "Previous response",
  conversation: "Conversation",
  conversation_id: "Conversation",
};

class Reader implements JsonListener {
  readonly found: Array<NamedId> = [];
  readonly #bytes: Uint8Array;
  #level = 0;
  /** The member of the outermost object that is read, if it names something. */
  #what: NamedId["what"] | undefined;
  #isId = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  readonly isDone = (): boolean => this.found.length > namedIdsMax;

  readonly open = (): void => {
    this.#level += 1;
    this.#isId = false;
  };

  readonly close = (): void => {
    this.#level -= 1;
  };

  readonly key = (from: number, to: number): void => {
    if (this.#level === 1) this.#what = names[this.#text(from, to).toLowerCase()];
    this.#isId = this.#what !== undefined && this.#level === 2 && this.#text(from, to).toLowerCase() === "id";
  };

  readonly scalar = (from: number, to: number): void => {
    if (this.#what === undefined || (this.#level !== 1 && !this.#isId) || this.isDone()) return;
    const id = this.#bytes[from] === sign.QUOTE ? this.#text(from, to) : "";
    if (id !== "") this.found.push({ what: this.#what, id });
  };

  #text(from: number, to: number): string {
    if (to - from > textBytesMax) return "";
    return Json.string(Json.parse(new TextDecoder().decode(this.#bytes.subarray(from, to)))?.json);
  }
}
