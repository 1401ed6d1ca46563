/**
 * Describes a wire protocol: everything that the rest of the package needs to know about it. The folder of each protocol creates one, and
 * the registry (`Protocols.ts`) lists it.
 */
import type * as Result from "effect/Result";
import type * as Json from "../../domain/Json.ts";
import type { SeamRefusal } from "../../domain/SeamWords.ts";
import type { ContinuationError, Prepared } from "../continuation/Input.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import type { Splice } from "../seam/Splice.ts";
import type { Protocol } from "../stream/Protocol.ts";
import type { Verifier } from "../stream/Resume.ts";
import type { Address } from "./Address.ts";
import type { GivenUpForm, NoOp } from "./StreamEvent.ts";

/** A wire protocol. `Decoder.make` takes it as a fold. */
export interface WireProtocol<Id extends string = string> extends Protocol<unknown, Id> {
  /** The display name. */
  readonly name: string;
  readonly address: Address;
  readonly continuation: ContinuationForm;
  /** Creates an event that clients accept and do not show. */
  readonly noOp: NoOp;
  readonly givenUp: GivenUpForm;
  /** True if all clients of the protocol accept comment lines between events. */
  readonly takesComments: boolean;
  readonly usage: UsageForm;
  /** Converts a JSON document to the events of an equivalent stream. */
  readonly eventsOf: (document: Json.JsonRecord) => ReadonlyArray<Json.JsonRecord>;
  /** Resumes responses to requests for which `address.isResumable` returns true. */
  readonly resume?: ResumeForm;
  /** Returns the reason why the response to a request cannot be continued after text was shown; undefined if the request allows it. */
  readonly seamRefusal: (body: Json.JsonRecord) => SeamRefusal | undefined;
  /** Joins continuations to a response; called once per response. Omitted if the protocol's text is never continued. */
  readonly splice?: () => Splice;
}

/** Resumes a response that outlives its connection. */
export interface ResumeForm {
  /** Verifies an attempt that starts a new response, and writes its cursors. */
  readonly first: () => Verifier<string>;
  /**
   * Returns the address of the rest of a stream after a cursor, and the verifier of its parts; undefined for a cursor of another kind.
   *
   * @param url the address of the original request
   */
  readonly behind: (url: string, cursor: string) => ResumedStream | undefined;
}

/** The GET address of a resumed response, and the verifier of its parts. */
export interface ResumedStream {
  readonly url: string;
  readonly verifier: Verifier<string>;
}

/** Continues a broken response with a new request. */
export interface ContinuationForm {
  readonly build: (prepared: Prepared) => Result.Result<Json.JsonRecord, ContinuationError>;
  readonly turn: TurnForm;
}

/**
 * The token counts of a protocol. A flag is true if a count is reported in addition to the totals of input and output instead of as part of
 * them.
 */
export interface UsageForm {
  readonly cachedApart: boolean;
  readonly reasoningApart: boolean;
}

/** Creates a wire protocol from its fold and its other properties. */
export const wireProtocol = <S, Id extends string>(
  fold: Protocol<S, Id>,
  rest: Omit<WireProtocol<Id>, keyof Protocol>,
): WireProtocol<Id> => ({
  ...(fold as Protocol<unknown, Id>), // A state is only ever passed to the protocol that made it.
  ...rest,
});
