/** Defines the properties of a protocol that a fault provider needs. It does not use the decoders that are tested against it. */
import type * as Json from "../../domain/Json.ts";
import type { AnswerEvent, NumberedAnswer } from "./Items.ts";

/** A wire protocol that a fault provider can speak. */
export interface AnswerProtocol {
  readonly id: string;
  /** Name in the column headings of a conformance table. */
  readonly shortName: string;
  /** Path of a streaming request, with its query. */
  readonly path: string;
  /** Part of the path that belongs to the base URL of the provider's own SDK. */
  readonly basePath: string;
  /** True if a request path, without its query, belongs to this protocol. */
  readonly isServed: (path: string) => boolean;
  /** False if a response of this protocol has no tool calls. Default true. */
  readonly hasCalls?: boolean;
  readonly write: (answer: NumberedAnswer) => ReadonlyArray<AnswerEvent>;
  readonly errorBody: (status: number) => object;
  /** Headers of a response with an error status, besides its type and length. */
  readonly errorHeaders?: (status: number) => Readonly<Record<string, string>>;
  /** Content type of a stream. Default: that of server-sent events. A protocol with another type has no comments, so it needs a `ping`. */
  readonly contentType?: string;
  /** The protocol's own keep-alive event. Omitted if the protocol uses an SSE comment. */
  readonly ping?: AnswerEvent;
  /** End of a complete answer: a terminal event, or the clean end of the body if the protocol has no such event. */
  readonly endsWith: "event" | "clean_end";
  /** True if a stream may end with this event. */
  readonly mayEnd: (data: Json.JsonRecord) => boolean;
}
