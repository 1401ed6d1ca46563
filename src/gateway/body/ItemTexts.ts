/**
 * Yields the items of a large body's conversation in batches as it is scanned: each message, or the value in place of a list of messages,
 * without its long strings.
 */
import { type JsonListener, sign } from "../../adapters/relay/form/JsonScan.ts";
import * as Json from "../../domain/Json.ts";
import { conversation } from "./BodyOutline.ts";
import { nameOf, type OutlineTerms, OutlineText } from "./OutlineText.ts";

/** The limits and the consumer of the items. */
export interface ItemTerms extends Pick<OutlineTerms, "bytesMax" | "textMax"> {
  /**
   * Consumes items, each an object or a list.
   *
   * @param level the level of the items; the body itself is at 0
   * @returns true if more items are wanted
   */
  readonly take: (items: ReadonlyArray<unknown>, level: number) => boolean;
}

/** Minimum size of a batch, in bytes. A call for each of a million empty items would cost more than the items. */
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

  /** True if a batch was too long to be delivered. */
  get isMissed(): boolean {
    return this.#isMissed;
  }

  readonly isDone = (): boolean => this.#isDone;

  readonly open = (bracket: number): void => {
    if (this.#itemLevel === 1 && this.#level === 1 && bracket === OPEN_LIST) this.#itemLevel = 2;
    else if (this.#itemLevel > 0 && this.#level === this.#itemLevel) this.#isOpen = !this.#isDone;
    this.#level += 1;
    if (this.#isOpen) this.#writing.open(bracket);
  };

  readonly close = (bracket: number): void => {
    this.#level -= 1;
    if (this.#isOpen) this.#writing.close(bracket);
    if (this.#level === this.#itemLevel) this.#isOpen = false;
    const isOver = this.#level === 1 && this.#itemLevel > 0;
    if (isOver || (!this.#isOpen && (this.#batch?.length ?? 0) >= batchBytes)) this.#flush();
    if (isOver) this.#itemLevel = 0;
  };

  readonly key = (from: number, to: number): void => {
    if (this.#level === 1) this.#itemLevel = conversation.has(nameOf(this.#bytes, from, to)) ? 1 : 0;
    if (this.#isOpen) this.#writing.key(from, to);
  };

  readonly scalar = (from: number, to: number): void => {
    if (this.#isOpen) this.#writing.scalar(from, to);
  };

  get #writing(): OutlineText {
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
