/**
 * Gives a client that waits something to read where no byte of its response has left for long.
 *
 * One fiber takes from the run and one watches the time, for as long as the response lasts: a read starts none, and no timer is
 * set again with each byte. A take that is under way when the client got a keep-alive is the next read's.
 */
import { Clock, Effect, Exit, type Scope } from "effect";
import type { Provider } from "../../domain/RunFacts.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";
import { written } from "../../provider/protocol/StreamEvent.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import type { Presence } from "../../runtime/contract/Presence.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RelayBytes, RelayReader } from "./RelayReader.ts";

/** The bytes of a keep-alive; undefined where none is due, or none may be written now. */
export type Pulse = () => Uint8Array<ArrayBuffer> | undefined;

/** What the keep-alives of a response depend on. */
export interface PulseOptions {
  readonly protocol: WireProtocol;
  readonly provider: Provider;
  readonly run_id: string;
  readonly firstNoOp: "event" | "comment";
  readonly onKeepAlive: (() => void) | undefined;
  readonly presence: Presence | undefined;
}

/** What keeps a client waiting: nothing where it waits for its provider alone, nor inside an event. */
export const pulseOf = (
  reader: RelayReader,
  { firstNoOp, onKeepAlive, presence, protocol, provider, run_id }: PulseOptions,
): Pulse => {
  const model = provider.model === undefined ? {} : { model: provider.model };
  return () => {
    const { lastByte } = reader;
    if (presence?.isAway === true || !reader.holding || (lastByte !== undefined && lastByte !== LF && lastByte !== CR))
      return undefined;
    onKeepAlive?.();
    reader.preceded = true;
    if (!reader.begun && firstNoOp === "comment" && protocol.takesComments) return comment;
    const event = written(protocol.noOp(reader.last, { id: run_id, ...model }));
    // The second half of a line end may still come: it stands for itself then.
    return new TextEncoder().encode(lastByte === CR ? `\n${event}` : event);
  };
};

const LF = 10;
const CR = 13;
const comment = new TextEncoder().encode(": keep-alive\n\n");

type Taken = Exit.Exit<RelayBytes, RunInterrupted>;

/** The reads of one response, for one reader. */
export class KeepAlive {
  /** The take that has ended and that no read has had. */
  #taken: Taken | undefined;
  /** A take is under way, or is asked for. */
  #taking = true;
  #reader: ((taken: Effect.Effect<RelayBytes, RunInterrupted>) => void) | undefined;
  #demand: (() => void) | undefined;
  readonly #now: () => number;
  /** When bytes have left last, or the head has. */
  #leftMs = 0;

  private constructor(clock: Clock.Clock) {
    this.#now = () => monotonicMs(clock);
  }

  /**
   * Begins with a take that is under way.
   *
   * @param first gives the first bytes
   * @param take gives all others
   */
  static readonly make = Effect.fnUntraced(function* (
    first: Effect.Effect<RelayBytes, RunInterrupted>,
    take: Effect.Effect<RelayBytes, RunInterrupted>,
    everyMs: number,
    pulse: Pulse,
  ): Effect.fn.Return<KeepAlive, never, Scope.Scope> {
    const made = new KeepAlive(yield* Clock.Clock);
    made.#leftMs = made.#now();
    yield* Effect.forkScoped(made.#takes(first, take));
    yield* Effect.forkScoped(made.#beats(everyMs, pulse));
    return made;
  });

  /** The next bytes: those of the response, or a keep-alive. */
  readonly read: Effect.Effect<RelayBytes, RunInterrupted> = Effect.callback((resume) => {
    const taken = this.#taken;
    if (taken !== undefined) {
      this.#taken = undefined;
      this.#leftMs = this.#now();
      resume(taken);
      return;
    }
    this.#reader = resume;
    if (!this.#taking) {
      this.#taking = true;
      this.#demand?.();
    }
    return Effect.sync(() => {
      if (this.#reader === resume) this.#reader = undefined;
    });
  });

  #takes(
    first: Effect.Effect<RelayBytes, RunInterrupted>,
    take: Effect.Effect<RelayBytes, RunInterrupted>,
  ): Effect.Effect<never> {
    const handed = (one: Effect.Effect<RelayBytes, RunInterrupted>) =>
      Effect.map(Effect.exit(one), (taken) => this.#hand(taken));
    const onDemand = Effect.andThen(this.#demanded, handed(take));
    return Effect.onInterrupt(Effect.andThen(handed(first), Effect.forever(onDemand)), () =>
      Effect.sync(() => this.#hand(Exit.interrupt())),
    );
  }

  #hand(taken: Taken): void {
    this.#taking = false;
    if (!this.#give(taken)) this.#taken = taken;
  }

  #give(taken: Effect.Effect<RelayBytes, RunInterrupted>): boolean {
    const reader = this.#reader;
    if (reader === undefined) return false;
    this.#reader = undefined;
    this.#leftMs = this.#now();
    reader(taken);
    return true;
  }

  readonly #demanded: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#taking) return resume(Effect.void);
    this.#demand = () => {
      this.#demand = undefined;
      resume(Effect.void);
    };
  });

  /** A reader that is busy writing, or waits for its socket to drain, does not read: nothing is written in between. */
  #beats(everyMs: number, pulse: Pulse): Effect.Effect<never> {
    return Effect.forever(
      Effect.suspend(() => {
        const left = this.#leftMs + everyMs - this.#now();
        if (left > 0) return Effect.sleep(left);
        this.#leftMs = this.#now();
        const bytes = this.#reader === undefined ? undefined : pulse();
        if (bytes !== undefined) this.#give(Exit.succeed([bytes]));
        return Effect.void;
      }),
    );
  }
}
