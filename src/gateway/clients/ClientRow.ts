/**
 * Describes a row of the client table: how the client is recognised, and its treatment in each protocol.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** The way in which the gateway treats one client. */
export interface Treatment {
  /** `live` sends the response as it arrives. `on_complete` withholds it until it is complete. */
  readonly reveal: "live" | "on_complete";
  /**
   * Ending of a shown response that broke and cannot be recovered. `tell`: the protocol's error event. `abort`: a broken body.
   * `as_provider`: the provider's own ending.
   */
  readonly onBreak: "tell" | "abort" | "as_provider";
  /** Maximum time that the head is withheld while the outcome is unknown, in milliseconds. */
  readonly patienceMs: number;
  /** Maximum time that a response is withheld, in milliseconds. A longer response is then sent live. Undefined for no maximum. */
  readonly holdMaxMs: number | undefined;
  /**
   * Breaks after which the client retries and discards the partial response that it has shown. `cuts`: a broken connection. `errors`: also
   * a provider's error event. `nothing`: the client stops, or shows the text twice.
   */
  readonly mends: "nothing" | "cuts" | "errors";
  /**
   * True if certain words in an error's message make the client retry, regardless of the status. A provider's message is then quoted
   * without those words.
   */
  readonly asksByWords: boolean;
  /** Status of the response if a run fails before its head and cannot be recovered. */
  readonly status: 400 | 424;
  /** End of the body after the error event of `tell`: clean, or broken inside an open chunk. */
  readonly ending: "clean" | "broken";
  /**
   * The form in which the gateway keeps the connection alive before the first event of the response: the protocol's no-op event, or a
   * comment line.
   */
  readonly firstNoOp: "event" | "comment";
}

/** The fields in which a client differs from the default treatment. */
export type Difference = Partial<Treatment>;

/** A row of the client table. */
export interface ClientRow {
  /** A label of bounded length, safe for metrics: `[a-z0-9-]{1,32}`. */
  readonly name: string;
  /** The properties by which the client is recognised, as text for people. */
  readonly marks: string;
  /** The versions that were measured, as text for people; empty if none was. */
  readonly measured: string;
  readonly isMatch: (request: RequestMarks) => boolean;
  readonly everywhere: Difference;
  readonly protocols: Readonly<Partial<Record<ProtocolId, Difference>>>;
  /** Share of the client's own timeout, stated in its request, that the gateway may use before it sends the response head. */
  readonly patienceShare: number;
}

/** The parts of a request that identify its client. */
export interface RequestMarks {
  /** The user agent; empty if the request has none. */
  readonly agent: string;
  readonly headers: RelayHeaders;
}
