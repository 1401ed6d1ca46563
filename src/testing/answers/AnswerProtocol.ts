/**
 * Describes what a fault provider knows of a protocol. It knows it by itself: what plays a provider shares no code with the
 * decoders that are tested against it.
 */
import type * as Json from "../../domain/Json.ts";
import type { AnswerEvent, NumberedAnswer } from "./Items.ts";

/** A protocol that a fault provider speaks. */
export interface AnswerProtocol {
  readonly id: string;
  /** The column of a table that stands for it. */
  readonly shortName: string;
  /** The path of a request that streams, with its query. */
  readonly path: string;
  /** What of that path the provider's own SDK calls its base address. */
  readonly basePath: string;
  /** Whether a request to a path, without its query, is one of the protocol. */
  readonly serves: (path: string) => boolean;
  /** The events of an answer. */
  readonly write: (answer: NumberedAnswer) => ReadonlyArray<AnswerEvent>;
  /** The body of an error answer with a status. */
  readonly errorBody: (status: number) => object;
  /** The protocol's own keep-alive event; left out where a comment is one. */
  readonly ping?: AnswerEvent;
  /** What ends a whole answer: an event, or nothing less than the clean end of the body. */
  readonly endsWith: "event" | "clean_end";
  /** Whether a stream may end with an event. */
  readonly mayEnd: (data: Json.JsonRecord) => boolean;
}
