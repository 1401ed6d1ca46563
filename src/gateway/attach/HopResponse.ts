/**
 * Sends the response of a run to a client of another process, as a hop.
 *
 * The facts about the run are sent along, because the other process logs the client's request.
 */
import type { ServerResponse } from "node:http";
import { Effect } from "effect";
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import { Access, type AccessFacts } from "../log/AccessRecord.ts";
import { ClientResponse } from "../proxy/ClientResponse.ts";
import { hopHeader } from "../workers/SignedWire.ts";
import { encode, factsOf } from "./HopMessage.ts";

/** Settings of the response to a hop. */
export interface HopSetting {
  /** Timeout after which a client that reads nothing is disconnected, in milliseconds. */
  readonly slowMs: number;
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
  /** Asks the client's process if the client's socket is silent. */
  readonly isSilent: Effect.Effect<boolean>;
  /** True if a network is between the two processes. */
  readonly isRemote: boolean;
}

/** A response that is sent to another process, which forwards it to the client. */
export class HopResponse extends ClientResponse {
  readonly #isSilentThere: Effect.Effect<boolean>;
  readonly #isRemote: boolean;

  constructor(response: ServerResponse, { isRemote, isSilent, now, slowMs }: HopSetting) {
    super(response, slowMs, new HopAccess(response, now));
    this.#isSilentThere = isSilent;
    this.#isRemote = isRemote;
  }

  /**
   * Checks the client's socket at the other process. The socket between the two processes is checked too if there is a network between
   * them, because a machine that was cut off cannot be asked.
   */
  override get isSilent(): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (this.isGone) return Effect.succeed(true);
      if (!this.#isRemote) return this.#isSilentThere;
      return Effect.flatMap(super.isSilent, (isSilent) => (isSilent ? Effect.succeed(true) : this.#isSilentThere));
    });
  }

  override head({ headers, status, statusText }: RelayHead, streaming = false): void {
    const facts = factsOf(this.access.record);
    const head = encode({ _tag: "Head", status, statusText, headers, streaming, facts });
    super.head({ status: 200, statusText: "OK", headers: [[hopHeader, head]] });
  }

  override answer(status: number, document: object, own: RelayHead["headers"]): void {
    const facts = factsOf(this.access.record);
    super.answer(200, document, [[hopHeader, encode({ _tag: "Answer", status, headers: own, facts })]]);
  }

  /** Responds that the request cannot attach to any run. */
  answerNone(): void {
    super.answer(200, {}, [[hopHeader, encode({ _tag: "None" })]]);
  }
}

/** Sends recorded facts to the process of the client. */
class HopAccess extends Access {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse, now: () => number) {
    super(now);
    this.#response = response;
  }

  override addFacts(facts: AccessFacts): void {
    super.addFacts(facts);
    if (facts.attached_at === undefined || this.#response.headersSent) return;
    // Written to the socket directly, because Node sends headers only on the interim responses that it knows. Nothing else has been written
    // at this point.
    const word = encode(factsOf(this.record));
    this.#response.socket?.write(`HTTP/1.1 102 Processing\r\n${hopHeader}: ${word}\r\n\r\n`);
  }

  /** Sends the last facts in the trailers or, if the run broke before its head, in the head. */
  override recordEnd(how: "whole" | "left" | "broken"): void {
    super.recordEnd(how);
    const response = this.#response;
    if (how === "left" || response.writableEnded) return;
    const facts = factsOf(this.record);
    if (response.headersSent) {
      response.addTrailers([[hopHeader, encode({ how, facts })]]);
      if (how === "broken") response.end();
    } else if (how === "broken") {
      response.writeHead(200, [hopHeader, encode({ _tag: "Broken", facts })]);
      response.end();
    }
  }
}
