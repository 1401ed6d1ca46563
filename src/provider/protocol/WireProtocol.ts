/**
 * Describes a wire protocol: everything that the rest of the package asks of one. A protocol's folder makes it, the registry
 * (`Protocols.ts`) names it.
 */
import type * as Result from "effect/Result";
import type * as Json from "../../domain/Json.ts";
import type { ContinuationError, Prepared } from "../continuation/Input.ts";
import type { TurnForm } from "../continuation/Turn.ts";
import type { Protocol } from "../stream/Protocol.ts";
import type { Address } from "./Address.ts";
import type { Opening } from "./Opening.ts";
import type { GivenUpForm, NoOp } from "./StreamEvent.ts";

/** A wire protocol. As a fold it is what `Decoder.make` takes. */
export interface WireProtocol<Id extends string = string> extends Protocol<unknown, Id> {
  /** Its name for people. */
  readonly name: string;
  readonly address: Address;
  /** The request before the user's first words. */
  readonly opened: (opening: Opening) => Json.JsonRecord;
  readonly continuation: ContinuationForm;
  /** The event that its clients count and show nothing of. */
  readonly noOp: NoOp;
  readonly givenUp: GivenUpForm;
  /** All clients of the protocol take comment lines between its events. */
  readonly takesComments: boolean;
  readonly usage: UsageForm;
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
