/**
 * Writes the response of a run to a client of another worker: the same response as to a client of this one, in the words of a hop.
 *
 * What the access line of a client here would say is told to the worker that writes the line of this one.
 */
import type { ServerResponse } from "node:http";
import { Effect } from "effect";
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import { Access, type AccessFacts } from "../log/AccessRecord.ts";
import { ClientResponse } from "../proxy/ClientResponse.ts";
import { factsOf, hopHeader, written } from "./HopMessage.ts";

/** What a hop's response needs of its worker. */
export interface HopSetting {
  /** A client that takes nothing for so long is given up, in milliseconds. */
  readonly slowMs: number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Whether the client's socket is silent, as the worker says that has it. */
  readonly isSilent: Effect.Effect<boolean>;
}

/** The response to one hop. */
export class HopResponse extends ClientResponse {
  readonly #isSilentThere: Effect.Effect<boolean>;

  constructor(response: ServerResponse, { isSilent, now, slowMs }: HopSetting) {
    super(response, slowMs, new HopAccess(response, now));
    this.#isSilentThere = isSilent;
  }

  /** This worker's own socket says nothing of the client: its bytes wait at the other one. */
  override get isSilent(): Effect.Effect<boolean> {
    return Effect.suspend(() => (this.gone ? Effect.succeed(true) : this.#isSilentThere));
  }

  override head({ headers, status, statusText }: RelayHead, streaming = false): void {
    const facts = factsOf(this.access.record);
    const head = written({ _tag: "Head", status, statusText, headers, streaming, facts });
    super.head({ status: 200, statusText: "OK", headers: [[hopHeader, head]] });
  }

  override answer(status: number, document: object, own: RelayHead["headers"]): void {
    const facts = factsOf(this.access.record);
    super.answer(200, document, [[hopHeader, written({ _tag: "Answer", status, headers: own, facts })]]);
  }

  /** There is nothing that the request may attach to. */
  none(): void {
    super.answer(200, {}, [[hopHeader, written({ _tag: "None" })]]);
  }
}

/** Tells what it is told. */
class HopAccess extends Access {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse, now: () => number) {
    super(now);
    this.#response = response;
  }

  override learned(facts: AccessFacts): void {
    super.learned(facts);
    if (facts.attached_at === undefined || this.#response.headersSent) return;
    // Node writes headers only with the interim response that it has a use for. Nothing else has been written yet.
    const word = written(factsOf(this.record));
    this.#response.socket?.write(`HTTP/1.1 102 Processing\r\n${hopHeader}: ${word}\r\n\r\n`);
  }

  /** Called in front of the end, or the break, of what is written. */
  override ended(how: "whole" | "left" | "broken"): void {
    super.ended(how);
    const response = this.#response;
    if (how === "left" || response.writableEnded) return;
    const facts = factsOf(this.record);
    if (response.headersSent) {
      response.addTrailers([[hopHeader, written({ how, facts })]]);
      if (how === "broken") response.end();
    } else if (how === "broken") {
      response.writeHead(200, [hopHeader, written({ _tag: "Broken", facts })]);
      response.end();
    }
  }
}
