/**
 * Gives a client that waits something to read where no byte of its response has left for long.
 *
 * The time is watched for all responses together (`Deadlines`), and no timer is set again with each byte. Where a response is read,
 * one fiber takes from its run for as long as it lasts: a take that is under way when the client got a keep-alive is the next read's.
 */
import { Clock, Effect, Exit, type Scope } from "effect";
import { written } from "../../provider/protocol/StreamEvent.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { type Deadline, Deadlines } from "./deadline/Deadlines.ts";
import type { BegunRun, RelayOptions } from "./RelayBeginning.ts";
import type { RelayBytes } from "./RelayReader.ts";

/** The bytes of a keep-alive; undefined where none is due, or none may be written now. */
export type Pulse = () => Uint8Array<ArrayBuffer> | undefined;

/** What keeps a client waiting: nothing where it waits for its provider alone, nor inside an event. */
export const pulseOf = (
  { presence, reader, run }: Pick<BegunRun, "presence" | "reader" | "run">,
  { firstNoOp = "comment", onKeepAlive }: Pick<RelayOptions, "firstNoOp" | "onKeepAlive">,
): Pulse => {
  const { protocol, provider } = run.plan;
  const model = provider.model === undefined ? {} : { model: provider.model };
  return () => {
    const { lastByte } = reader;
    if (presence.isAway || !reader.holding || (lastByte !== undefined && lastByte !== LF && lastByte !== CR))
      return undefined;
    onKeepAlive?.();
    reader.preceded = true;
    if (!reader.begun && firstNoOp === "comment" && protocol.takesComments) return comment;
    const event = written(protocol.noOp(reader.last, { id: run.run_id, ...model }));
    // The second half of a line end may still come: it stands for itself then.
    return new TextEncoder().encode(lastByte === CR ? `\n${event}` : event);
  };
};

const LF = 10;
const CR = 13;
const comment = new TextEncoder().encode(": keep-alive\n\n");

/** The beats of one response: one where nothing has left for a period. */
export class Beats implements Deadline {
  at = 0;
  place = -1;
  readonly #deadlines: Deadlines;
  readonly #everyMs: number;
  readonly #beat: () => void;
  /** When bytes have left last, or the head has. */
  #leftMs: number;
  #isOver = false;

  /** @param beat called with each; it must not throw */
  constructor(deadlines: Deadlines, everyMs: number, beat: () => void) {
    this.#deadlines = deadlines;
    this.#everyMs = everyMs;
    this.#beat = beat;
    this.#leftMs = deadlines.now();
    deadlines.set(this, this.#leftMs + everyMs);
  }

  /** Bytes have left. */
  left(): void {
    this.#leftMs = this.#deadlines.now();
  }

  readonly act = (): void => {
    const now = this.#deadlines.now();
    if (this.#leftMs + this.#everyMs <= now) {
      this.#leftMs = now;
      this.#beat();
    }
    if (!this.#isOver) this.#deadlines.set(this, Math.max(this.#leftMs + this.#everyMs, now + 1));
  };

  end(): void {
    this.#isOver = true;
    this.#deadlines.clear(this);
  }
}

type Taken = Exit.Exit<RelayBytes, RunInterrupted>;

/** The reads of one response, for one reader. */
export class KeepAlive {
  /** The take that has ended and that no read has had. */
  #taken: Taken | undefined;
  /** A take is under way, or is asked for. */
  #taking = true;
  #reader: ((taken: Effect.Effect<RelayBytes, RunInterrupted>) => void) | undefined;
  #demand: (() => void) | undefined;
  readonly #beats: Beats;

  private constructor(deadlines: Deadlines, everyMs: number, pulse: Pulse) {
    this.#beats = new Beats(deadlines, everyMs, () => this.#pulses(pulse));
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
    const made = new KeepAlive(Deadlines.of(yield* Clock.Clock), everyMs, pulse);
    yield* Effect.addFinalizer(() => Effect.sync(() => made.#beats.end()));
    yield* Effect.forkScoped(made.#takes(first, take));
    return made;
  });

  /** The next bytes: those of the response, or a keep-alive. */
  readonly read: Effect.Effect<RelayBytes, RunInterrupted> = Effect.callback((resume) => {
    const taken = this.#taken;
    if (taken !== undefined) {
      this.#taken = undefined;
      this.#beats.left();
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
    this.#beats.left();
    reader(taken);
    return true;
  }

  readonly #demanded: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#taking) return resume(Effect.void);
    const demand = () => {
      this.#demand = undefined;
      resume(Effect.void);
    };
    this.#demand = demand;
  });

  /** A reader that is busy writing, or waits for its socket to drain, does not read: nothing is written in between. */
  #pulses(pulse: Pulse): void {
    const bytes = this.#reader === undefined ? undefined : pulse();
    if (bytes !== undefined) this.#give(Exit.succeed([bytes]));
  }
}
