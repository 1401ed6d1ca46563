/**
 * Describes a row of the client table: the marks that identify a client and its treatment in each protocol.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** The settings for one client. */
export interface Treatment {
  /** `live` shows the response as it arrives; `on_complete` withholds it until it is complete. */
  readonly reveal: "live" | "on_complete";
  /**
   * Delivered when a shown response breaks for good. `tell`: the protocol's error event. `abort`: a broken body. `as_provider`: the
   * provider's own end.
   */
  readonly onBreak: "tell" | "abort" | "as_provider";
  /** Maximum time that the head is withheld while nothing is known, in milliseconds. */
  readonly patienceMs: number;
  /** Maximum hold, in milliseconds, after which a held response is delivered live. Unlimited if undefined. */
  readonly holdMaxMs: number | undefined;
  /**
   * The breaks after which the client retries and withdraws the partial response that it has shown. `cuts`: a broken connection. `errors`:
   * also a provider's error event. `nothing`: the client stops, or shows the text twice.
   */
  readonly mends: "nothing" | "cuts" | "errors";
  /** True if words in an error's message make the client retry, whatever the status. A provider's message is then quoted without them. */
  readonly asksByWords: boolean;
  /** The status of a run that fails for good before its head. */
  readonly status: 400 | 424;
  /** The end of the body after the error event of `tell`: clean, or broken (inside an open chunk). */
  readonly ending: "clean" | "broken";
  /** Sent before the first event of the response, so that the client does not time out: the protocol's no-op event, or a comment line. */
  readonly firstNoOp: "event" | "comment";
}

/** The fields in which a client differs from the default treatment. */
export type Difference = Partial<Treatment>;

/** A row of the client table. */
export interface ClientRow {
  /** A bounded label, safe for metrics: `[a-z0-9-]{1,32}`. */
  readonly name: string;
  /** The identifying marks, for people. */
  readonly marks: string;
  /** The versions that were measured, for people; empty if none was. */
  readonly measured: string;
  readonly matches: (request: RequestMarks) => boolean;
  readonly everywhere: Difference;
  readonly protocols: Readonly<Partial<Record<ProtocolId, Difference>>>;
  /** Share of the client's stated timeout that the gateway may use before it sends the response head. */
  readonly patienceShare: number;
}

/** The parts of a request that identify its client. */
export interface RequestMarks {
  /** The user agent; empty if the request has none. */
  readonly agent: string;
  readonly headers: RelayHeaders;
}
