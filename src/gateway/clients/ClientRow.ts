/**
 * Describes what a row of the table of clients says: how a client is recognised, and how it is treated in each protocol.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** How a client is treated. */
export interface Treatment {
  /** What is held back from it. */
  readonly reveal: "live" | "on_complete";
  /**
   * What it gets where a shown response breaks for good. `tell`: its protocol's error event. `abort`: a broken body.
   * `as_provider`: the provider's own end.
   */
  readonly onBreak: "tell" | "abort" | "as_provider";
  /** The head is withheld at most so long while nothing is known, in milliseconds. */
  readonly patienceMs: number;
  /** A held response is handed over as live after so long, in milliseconds; undefined is never. */
  readonly holdMaxMs: number | undefined;
  /**
   * What it mends by itself where a response of which it has shown a part breaks: it asks again and takes that part back.
   * `cuts`: where the connection breaks. `errors`: behind a provider's error event too. `nothing`: it ends, or shows the text twice.
   */
  readonly mends: "nothing" | "cuts" | "errors";
  /**
   * It asks again by words of an error's message, whatever its status: a provider's message is quoted to it without them.
   */
  readonly asksByWords: boolean;
  /** The status of a run that is given up before its head. */
  readonly status: 400 | 424;
  /** The end of the body behind the error event of `tell`: clean, or broken (inside an open chunk). */
  readonly ending: "clean" | "broken";
  /** What keeps it waiting before an event of the response has left: the protocol's no-op, or a comment line. */
  readonly firstNoOp: "event" | "comment";
}

/** The fields of a treatment in which a client differs. */
export type Difference = Partial<Treatment>;

/** A row of the table. */
export interface ClientRow {
  /** A bounded label, as a metric may have it: `[a-z0-9-]{1,32}`. */
  readonly name: string;
  /** For people: how it is recognised. */
  readonly marks: string;
  /** For people: the versions that were measured; empty where none was. */
  readonly measured: string;
  /** Whether a request is this client's. */
  readonly matches: (request: RequestMarks) => boolean;
  readonly everywhere: Difference;
  readonly protocols: Readonly<Partial<Record<ProtocolId, Difference>>>;
  /** Of the time that a request says it waits, this share may pass before its head. */
  readonly patienceShare: number;
}

/** Of a request what tells its client. */
export interface RequestMarks {
  /** The user agent, empty where there is none. */
  readonly agent: string;
  readonly headers: RelayHeaders;
}
