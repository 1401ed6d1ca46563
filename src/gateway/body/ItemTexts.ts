/**
 * Yields the items of a large body's conversation in batches during a scan, without their long strings. An item is a message, or the whole
 * conversation if it is not a list.
 */
import { type JsonListener, sign } from "../../adapters/relay/form/JsonScan.ts";
import * as Json from "../../domain/Json.ts";
import { conversation } from "./BodyOutline.ts";
import { nameOf, type OutlineTerms, OutlineText } from "./OutlineText.ts";

/** The limits of the items, and their consumer. */
export interface ItemTerms extends Pick<OutlineTerms, "bytesMax" | "textMax"> {
  /**
   * Consumes items, each an object or a list.
   *
   * @param level the nesting level of the items; the body itself has level 0
   * @returns true to receive more items
   */
  readonly take: (items: ReadonlyArray<unknown>, level: number) => boolean;
}

/** Minimum size of a batch, in bytes. For a million empty items, one call per item would cost more than the items themselves. */
const batchBytes = 8 * 1_024;

const { CLOSE_LIST, OPEN_LIST } = sign;

/** Collects the items of a conversation during a scan. */
export class ItemTexts implements JsonListener {
  readonly #bytes: Uint8Array;
  readonly #terms: ItemTerms;
  #level = 0;
  /** The level of the items; 0 outside the conversation. */
  #itemLevel = 0;
  #isOpen = false;
  #batch: OutlineText | undefined;
  #isMissed = false;
  #isDone = false;

  constructor(bytes: Uint8Array, terms: ItemTerms) {
    this.#bytes = bytes;
    this.#terms = terms;
  }

  /** True if a batch was too long and was not delivered. */
  get isMissed(): boolean {
    return this.#isMissed;
  }

  readonly isDone = (): boolean => this.#isDone;

  readonly open = (bracket: number): void => {
    if (this.#itemLevel === 1 && this.#level === 1 && bracket === OPEN_LIST) this.#itemLevel = 2;
    else if (this.#itemLevel > 0 && this.#level === this.#itemLevel) this.#isOpen = !this.#isDone;
    this.#level += 1;
    if (this.#isOpen) this.#writer.open(bracket);
  };

  readonly close = (bracket: number): void => {
    this.#level -= 1;
    if (this.#isOpen) this.#writer.close(bracket);
    if (this.#level === this.#itemLevel) this.#isOpen = false;
    const isOver = this.#level === 1 && this.#itemLevel > 0;
    if (isOver || (!this.#isOpen && (this.#batch?.length ?? 0) >= batchBytes)) this.#flush();
    if (isOver) this.#itemLevel = 0;
  };

  readonly key = (from: number, to: number): void => {
    if (this.#level === 1) this.#itemLevel = conversation.has(nameOf(this.#bytes, from, to)) ? 1 : 0;
    if (this.#isOpen) this.#writer.key(from, to);
  };

  readonly scalar = (from: number, to: number): void => {
    if (this.#isOpen) this.#writer.scalar(from, to);
  };

  get #writer(): OutlineText {
    if (this.#batch === undefined) {
      this.#batch = new OutlineText(this.#bytes, { ...this.#terms, shouldOmit: () => false });
      this.#batch.open(OPEN_LIST);
    }
    return this.#batch;
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch === undefined || this.#isDone) return;
    batch.close(CLOSE_LIST);
    this.#isMissed = batch.isFull;
    this.#isDone = batch.isFull || !this.#terms.take(Json.list(Json.parse(batch.text)?.json), this.#itemLevel);
  }
}
