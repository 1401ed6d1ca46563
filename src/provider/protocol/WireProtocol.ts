/**
 * Describes a wire protocol: everything that the rest of the package asks of one. A protocol's folder makes it, the registry
 * (`Protocols.ts`) names it.
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

/** A wire protocol. As a fold it is what `Decoder.make` takes. */
export interface WireProtocol<Id extends string = string> extends Protocol<unknown, Id> {
  /** Its name for people. */
  readonly name: string;
  readonly address: Address;
  readonly continuation: ContinuationForm;
  /** The event that its clients count and show nothing of. */
  readonly noOp: NoOp;
  readonly givenUp: GivenUpForm;
  /** All clients of the protocol take comment lines between its events. */
  readonly takesComments: boolean;
  readonly usage: UsageForm;
  /** A document of it as the events of a stream that would say the same. */
  readonly eventsOf: (document: Json.JsonRecord) => ReadonlyArray<Json.JsonRecord>;
  /** How a response is read on that `address.resumes` names. */
  readonly resume?: ResumeForm;
  /** Why a request's response could not go on behind text that was shown; undefined where nothing of the request forbids it. */
  readonly seamRefusal: (body: Json.JsonRecord) => SeamRefusal | undefined;
  /** Joins continuations to a response; a new one for each response. Left out: its text is never gone on with. */
  readonly splice?: () => Splice;
}

/** How a response is read on that outlives its connection. */
export interface ResumeForm {
  /** Follows the parts of an attempt that asks anew, and writes their cursors. */
  readonly first: () => Verifier<string>;
  /**
   * Where the response goes on behind a cursor, and what verifies it there; undefined for a cursor of another kind.
   *
   * @param url the address that the response was asked for at
   */
  readonly behind: (url: string, cursor: string) => ResumedStream | undefined;
}

/** The address of a response that goes on, asked for by GET, and what verifies what comes from it. */
export interface ResumedStream {
  readonly url: string;
  readonly verifier: Verifier<string>;
}

/** How a broken response goes on. */
export interface ContinuationForm {
  readonly build: (prepared: Prepared) => Result.Result<Json.JsonRecord, ContinuationError>;
  readonly turn: TurnForm;
}

/** Which token counts stand beside the totals of input and output instead of in them. */
export interface UsageForm {
  readonly cachedApart: boolean;
  readonly reasoningApart: boolean;
}

/** Makes a wire protocol of its fold and what else is known of it. */
export const wireProtocol = <S, Id extends string>(
  fold: Protocol<S, Id>,
  rest: Omit<WireProtocol<Id>, keyof Protocol>,
): WireProtocol<Id> => ({
  ...(fold as Protocol<unknown, Id>), // a state only ever goes back into the protocol that made it
  ...rest,
});
