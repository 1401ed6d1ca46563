/**
 * Describes what one event says of the response that it belongs to, in the same words for every protocol.
 *
 * A decoder reads the content of an event once and gives it with the part. Facts take the lengths of its texts, a
 * continuation collects what goes back to the provider, adapters hand on its words. None of them looks into the event again, so
 * that a continuation holds exactly the text that was counted as shown.
 */
import { callKey } from "../../domain/AttemptFacts.ts";
import type { CallSignal } from "../../domain/Observation.ts";

/**
 * What an item of a response is: `call` is a call of the caller's own tools, `hosted` one that the provider runs, `result` its
 * result, `note` what the protocol says about a call beside it.
 */
export type ItemType = "text" | "reasoning" | "call" | "hosted" | "result" | "note";

/** What a host keeps beside a block and gives back with it: signatures, encrypted reasoning, ids. Only the provider reads it. */
export type OpaqueFields = Readonly<Record<string, string>>;

/** What a content adds to an item of the response, which goes back to the provider when the response goes on. */
export interface ItemPiece {
  /** Left out where the piece belongs to an item that is there, whatever that is, and says nothing alone. */
  readonly type?: ItemType;
  /** The item's key; default the content's own. */
  readonly key?: string;
  /** The field that the content's text is added to; left out where the text stands in `json`. */
  readonly field?: string;
  /** Further texts of the item that grow, by field. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Fields of the item as the provider wrote them. */
  readonly json?: object;
  /** `begins`: an item begins here, also under the key of one that has ended. `ends`: the item is whole. */
  readonly phase?: "begins" | "ends";
}

/** Something that one event says. */
export interface Content {
  /** `media` is seen and has no words: a picture, a sound. `item` is nothing that a person reads. */
  readonly kind: "text" | "reasoning" | "media" | "call" | "item";
  /** The choice (candidate) that says it. */
  readonly choice: number;
  /** Tells blocks of one kind apart; of a call its place in the response. */
  readonly key: string;
  /** What a person reads, and what facts count. */
  readonly text: string;
  /** Left out where nothing of it goes back to the provider. */
  readonly item?: ItemPiece;
  readonly keep?: OpaqueFields;
  /** The file of a `media` that comes with its bytes, in base64. */
  readonly file?: { readonly mediaType: string; readonly data: string };
}

/** An event that says nothing. */
export const nothing: ReadonlyArray<Content> = [];

/** The key of an item that comes whole with its one event. */
export const single = "single";

/** The key of a text that goes on until another item begins, where the protocol names none. */
export const running = "running";

/** The key of a call. */
export const keyOfCall = ({ choice, ordinal }: Pick<CallSignal, "choice" | "ordinal">): string =>
  `call ${callKey(choice, ordinal)}`;

/** The text that an event shows. */
export const textOf = (contents: ReadonlyArray<Content>): string => {
  const [first] = contents;
  // Most events say one thing.
  if (contents.length === 1 && first !== undefined) return first.kind === "text" ? first.text : "";
  return contents.map(({ kind, text }) => (kind === "text" ? text : "")).join("");
};

/** True if everything that an event shows is white space. An event that shows something without words is not. */
export const isWhiteSpace = (contents: ReadonlyArray<Content>): boolean => {
  let shown = 0;
  for (const { kind, text } of contents) {
    if (kind === "media") return false;
    if (kind !== "text") continue;
    // Nearly every text has a letter in front.
    if (text.charCodeAt(0) > space || /\S/.test(text)) return false;
    shown += text.length;
  }
  return shown > 0;
};

const space = 32;

/** The length of everything that an event says, in UTF-16 code units. */
export const lengthOf = (contents: ReadonlyArray<Content>): number => {
  let length = 0;
  for (const { text } of contents) length += text.length;
  return length;
};
