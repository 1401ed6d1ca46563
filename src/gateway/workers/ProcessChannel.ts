/**
 * Sends messages over the pipe between a supervisor and a worker (node:child_process). What is not taken yet is counted and bounded.
 */
import { type BusPort, isNews } from "./BusEnvelope.ts";
import type { SupervisorMessage } from "./WorkerControl.ts";

/** One end of the pipe: `process` in a worker, a worker's process in the supervisor. */
interface Pipe {
  readonly connected: boolean;
  send?(message: unknown, handle: undefined, options: undefined, sent: (error: Error | null) => void): boolean;
}

/** Messages that are under way at one time. A process that hangs takes none, and what is beyond is not sent to it. */
export const unsentMax = 4_096;

/** The way of messages to the other end. */
export class ProcessChannel<Message> {
  readonly #pipe: Pipe;
  #unsent = 0;

  constructor(pipe: Pipe) {
    this.#pipe = pipe;
  }

  /** Sends one that may be lost. Gives whether it is on its way. */
  readonly send = (message: Message): boolean => this.#unsent < unsentMax && this.order(message);

  /** Sends one that must arrive, whatever waits: there are few of them. Gives false where the other end is gone. */
  readonly order = (message: Message): boolean => {
    if (!this.#pipe.connected || this.#pipe.send === undefined) return false;
    this.#unsent += 1;
    // An end that is gone is told by its exit, not here.
    this.#pipe.send(message, undefined, undefined, () => {
      this.#unsent -= 1;
    });
    return true;
  };
}

/** The way of envelopes to a worker: those that must arrive, and those that may be lost. */
export const portTo = ({ order, send }: ProcessChannel<SupervisorMessage>): BusPort => ({
  send: (envelope) => (isNews(envelope) ? order : send)({ _tag: "Bus", envelope }),
});
