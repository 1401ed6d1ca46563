/**
 * Describes the content of one event in terms shared by every protocol.
 *
 * A decoder reads the content of an event once and attaches it to the part. Facts count its text, a continuation collects the items to send
 * back to the provider, and adapters forward its text. All use the same content, so a continuation contains exactly the text that was
 * counted as shown.
 */
import { callKey } from "../../domain/AttemptFacts.ts";
import type { CallSignal } from "../../domain/Observation.ts";

/**
 * The type of an item of a response. `call` is a call of the caller's own tools, `hosted` a call that the provider runs, `result` its
 * result, and `note` protocol data about a call.
 */
export type ItemType = "text" | "reasoning" | "call" | "hosted" | "result" | "note";

/**
 * Fields that a program stores with a block and sends back with it: signatures, encrypted reasoning, ids. Only the provider reads them.
 */
export type OpaqueFields = Readonly<Record<string, string>>;

/** A piece of an item that is sent back to the provider when the response is continued. */
export interface ItemPiece {
  /** Type of the item. Omitted if the piece only extends an existing item, of any type. */
  readonly type?: ItemType;
  /** The item's key; default the content's own. */
  readonly key?: string;
  /** The field to which the content's text is appended; omitted if the text is in `json`. */
  readonly field?: string;
  /** Further growing texts of the item, by field. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Fields of the item as the provider wrote them. */
  readonly json?: object;
  /** `begins`: an item begins here, even under the key of an item that has ended. `ends`: the item is complete. */
  readonly phase?: "begins" | "ends";
}

/** One piece of content of an event. */
export interface Content {
  /** `media` is visible but has no text, for example a picture or a sound. `item` is invisible to a person. */
  readonly kind: "text" | "reasoning" | "media" | "call" | "item";
  readonly choice: number;
  /** Distinguishes blocks of one kind. For a call, this is its place in the response. */
  readonly key: string;
  /** The visible text or the reasoning text. Facts count it. */
  readonly text: string;
  /** Omitted if none of the content is sent back to the provider. */
  readonly item?: ItemPiece;
  readonly keep?: OpaqueFields;
  /** The file of a `media` content that arrives as base64. */
  readonly file?: { readonly mediaType: string; readonly data: string };
}

/** The content of an event without content. */
export const nothing: ReadonlyArray<Content> = [];

/** The key of an item that arrives complete in one event. */
export const single = "single";

/** The key of text that continues until another item begins, for protocols that do not identify their texts. */
export const running = "running";

/** Returns the key of a call. */
export const keyOfCall = ({ choice, ordinal }: Pick<CallSignal, "choice" | "ordinal">): string =>
  `call ${callKey(choice, ordinal)}`;

/** Returns the text that an event shows. */
export const textOf = (contents: ReadonlyArray<Content>): string => {
  const [first] = contents;
  // Nearly every event has a single content.
  if (contents.length === 1 && first !== undefined) return first.kind === "text" ? first.text : "";
  return contents.map(({ kind, text }) => (kind === "text" ? text : "")).join("");
};

/** True if the event shows only white space. False if it shows media. */
export const isWhiteSpace = (contents: ReadonlyArray<Content>): boolean => {
  let shown = 0;
  for (const { kind, text } of contents) {
    if (kind === "media") return false;
    if (kind !== "text") continue;
    // Nearly every text begins with a visible character.
    if (text.charCodeAt(0) > space || /\S/.test(text)) return false;
    shown += text.length;
  }
  return shown > 0;
};

const space = 32;

/** Returns the length of all text in an event, in UTF-16 code units. */
export const lengthOf = (contents: ReadonlyArray<Content>): number => {
  let length = 0;
  for (const { text } of contents) length += text.length;
  return length;
};
