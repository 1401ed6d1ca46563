/**
 * Sends a keep-alive to a client that waits, if no byte of its response was sent for a period.
 *
 * One `Alarms` object tracks the times of all responses, so that no timer is reset per byte. During a response, one fiber takes bytes from
 * the run. If a keep-alive is sent while a take is in progress, the result of the take serves the next read.
 */
import { Clock, Effect, Exit, type Scope } from "effect";
import * as Sse from "../../provider/stream/Sse.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { Alarm, Alarms } from "./Alarms.ts";
import type { BegunRun, RelayOptions } from "./RelayBeginning.ts";
import type { RelayBytes } from "./RelayReader.ts";

/** Returns the bytes of a keep-alive; undefined if none may be written at this time. */
export type Pulse = () => Uint8Array<ArrayBuffer> | undefined;

/** Creates the keep-alives of a response. None is sent while the client waits only for the provider, or inside an event. */
export const pulseOf = (
  { presence, reader, run }: Pick<BegunRun, "presence" | "reader" | "run">,
  { firstNoOp = "comment", onKeepAlive }: Pick<RelayOptions, "firstNoOp" | "onKeepAlive">,
): Pulse => {
  const { protocol, provider } = run.plan;
  const model = provider.model === undefined ? {} : { model: provider.model };
  const { framing = Sse.framing } = protocol;
  return () => {
    const { lastByte } = reader;
    if (presence.isAway || !reader.holding) return undefined;
    const isComment = !reader.begun && firstNoOp === "comment" && protocol.takesComments;
    const { data, event } = protocol.noOp(reader.last, { id: run.run_id, ...model });
    const named = event === undefined ? {} : { event };
    const noOp = isComment ? comment : framing.encode({ ...named, data: JSON.stringify(data) });
    if (typeof noOp === "string" && lastByte !== undefined && lastByte !== LF && lastByte !== CR) return undefined;
    onKeepAlive?.();
    reader.preceded = true;
    if (typeof noOp !== "string") return noOp;
    // Completes a line end of CR alone with an LF. If the provider's own LF still follows, a reader takes it for an empty line.
    return new TextEncoder().encode(lastByte === CR ? `\n${noOp}` : noOp);
  };
};

const LF = 10;
const CR = 13;
const comment = new TextEncoder().encode(": keep-alive\n\n");

/** Calls back once per period in which nothing was sent. */
export class Beats {
  readonly #alarms: Alarms;
  readonly #due = new Alarm(() => this.#look());
  readonly #everyMs: number;
  readonly #beat: () => void;
  /** Time at which the head or bytes were last sent. */
  #leftMs: number;
  #isOver = false;

  /** @param beat called once per idle period; must not throw */
  constructor(alarms: Alarms, everyMs: number, beat: () => void) {
    this.#alarms = alarms;
    this.#everyMs = everyMs;
    this.#beat = beat;
    this.#leftMs = alarms.now();
    alarms.set(this.#due, this.#leftMs + everyMs);
  }

  recordSent(): void {
    this.#leftMs = this.#alarms.now();
  }

  #look(): void {
    const now = this.#alarms.now();
    if (this.#leftMs + this.#everyMs <= now) {
      this.#leftMs = now;
      this.#beat();
    }
    if (!this.#isOver) this.#alarms.set(this.#due, Math.max(this.#leftMs + this.#everyMs, now + 1));
  }

  end(): void {
    this.#isOver = true;
    this.#alarms.clear(this.#due);
  }
}

type Taken = Exit.Exit<RelayBytes, RunInterrupted>;

/** Serves the reads of one response, for one reader. */
export class KeepAlive {
  /** Result of a take that no read has returned yet. */
  #taken: Taken | undefined;
  /** True if a take is in progress or requested. */
  #taking = true;
  #reader: ((taken: Effect.Effect<RelayBytes, RunInterrupted>) => void) | undefined;
  #demand: (() => void) | undefined;
  readonly #beats: Beats;

  private constructor(alarms: Alarms, everyMs: number, pulse: Pulse) {
    this.#beats = new Beats(alarms, everyMs, () => this.#sendPulse(pulse));
  }

  /**
   * Creates the reads. The first take is already in progress.
   *
   * @param first returns the first bytes
   * @param take returns all further bytes
   */
  static readonly make = Effect.fnUntraced(function* (
    first: Effect.Effect<RelayBytes, RunInterrupted>,
    take: Effect.Effect<RelayBytes, RunInterrupted>,
    everyMs: number,
    pulse: Pulse,
  ): Effect.fn.Return<KeepAlive, never, Scope.Scope> {
    const made = new KeepAlive(Alarms.of(yield* Clock.Clock), everyMs, pulse);
    yield* Effect.addFinalizer(() => Effect.sync(() => made.#beats.end()));
    yield* Effect.forkScoped(made.#takeOnDemand(first, take));
    return made;
  });

  /** Reads the next bytes of the response, or a keep-alive. */
  readonly read: Effect.Effect<RelayBytes, RunInterrupted> = Effect.callback((resume) => {
    const taken = this.#taken;
    if (taken !== undefined) {
      this.#taken = undefined;
      this.#beats.recordSent();
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

  #takeOnDemand(
    first: Effect.Effect<RelayBytes, RunInterrupted>,
    take: Effect.Effect<RelayBytes, RunInterrupted>,
  ): Effect.Effect<never> {
    const handResult = (one: Effect.Effect<RelayBytes, RunInterrupted>) =>
      Effect.map(Effect.exit(one), (taken) => this.#hand(taken));
    const onDemand = Effect.andThen(this.#awaitDemand, handResult(take));
    return Effect.onInterrupt(Effect.andThen(handResult(first), Effect.forever(onDemand)), () =>
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
    this.#beats.recordSent();
    reader(taken);
    return true;
  }

  readonly #awaitDemand: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#taking) return resume(Effect.void);
    const demand = () => {
      this.#demand = undefined;
      resume(Effect.void);
    };
    this.#demand = demand;
  });

  /**
   * Sends a keep-alive to a waiting read. Without a waiting read, the reader is writing or waiting for its socket to drain, so nothing is
   * sent.
   */
  #sendPulse(pulse: Pulse): void {
    const bytes = this.#reader === undefined ? undefined : pulse();
    if (bytes !== undefined) this.#give(Exit.succeed([bytes]));
  }
}
