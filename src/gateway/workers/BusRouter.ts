/**
 * Carries messages between workers, in their supervisor. It reads who they are for and nothing else, and keeps none.
 */
import { Result, Schema } from "effect";
import { BusEnvelope, type BusPort } from "./BusEnvelope.ts";

/** So many tell a member that comes what all know together. What both say counts once. */
const tellersMax = 2;

/** The router. */
export class BusRouter {
  readonly #ports = new Map<number, BusPort>();

  /**
   * Lets a member in, and tells it of those that are there. It takes the place of one that died. What all know together is told to it by
   * those that have been there for longest: any other may be new itself, and wait to be told. The first of them may hang.
   */
  join(member: number, port: BusPort): void {
    this.leave(member);
    const others = [...this.#ports];
    // What they say to it at once must find it.
    this.#ports.set(member, port);
    let tellers = 0;
    for (const [other, its] of others) {
      const isToBeTold = other !== 0 && tellers < tellersMax;
      if (its.send({ _tag: "Joined", from: member, isToBeTold }) && isToBeTold) tellers += 1;
      port.send({ _tag: "Joined", from: other, isToBeTold: false });
    }
  }

  /** A member has died: whoever waits for it is told. */
  leave(member: number): void {
    if (!this.#ports.delete(member)) return;
    for (const port of this.#ports.values()) port.send({ _tag: "Left", from: member });
  }

  /**
   * Carries what a member has sent. What is no envelope, or not in its own name, is dropped.
   *
   * @returns false where it was not taken
   */
  route(from: number, message: unknown): boolean {
    const read = decode(message);
    if (Result.isFailure(read)) return false;
    const envelope = read.success;
    if (envelope.from !== from || envelope._tag === "Joined" || envelope._tag === "Left") return false;
    if (envelope.to === "others") {
      for (const [member, port] of this.#ports) if (member !== from && member !== 0) port.send(envelope);
      return true;
    }
    const port = this.#ports.get(envelope.to);
    if (port?.send(envelope) === true) return true;
    if (envelope._tag !== "Query") return false;
    const reason = port === undefined ? "gone" : "busy";
    this.#ports.get(from)?.send({ _tag: "Failure", from: envelope.to, to: from, id: envelope.id, reason });
    return true;
  }
}

const decode = Schema.decodeUnknownResult(BusEnvelope);
