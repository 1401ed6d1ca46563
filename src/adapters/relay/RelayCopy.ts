/**
 * Copies a relayed response to a sink, in the step in which its bytes leave the run.
 *
 * While the sink is ready, the run calls its tee, which writes each part to the sink, and nothing is read. If the sink is not ready, or
 * something must be recorded first, parts wait in the run until its only fiber takes them after the drain. Otherwise that fiber just waits
 * for the end.
 *
 * The head is sent as soon as it may be: with the first stream's head, with the first bytes, or after the client's maximum wait.
 * Keep-alives start after the head, and are sent only while the sink is ready.
 */
import { Cause, Clock, Context, Effect, Exit, Fiber, type Scope } from "effect";
import type { RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { Alarm, Alarms } from "./Alarms.ts";
import { Beats, type Pulse, pulseOf } from "./KeepAlive.ts";
import {
  awaitPathTimeout,
  type BegunRun,
  begin,
  ownHeadOf,
  type RelayOptions,
  type RelaySink,
} from "./RelayBeginning.ts";
import type { RelayPart } from "./RelayFrames.ts";
import { pathWaited, type RelayInterrupted } from "./RelayInterrupted.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import type { RelayHead } from "./RelayTransport.ts";
import { closeRun } from "./RelayWaits.ts";

/**
 * Runs a request and copies its response.
 *
 * @param plan the plan from `RelayPlan.recognise`
 * @returns completes once the sink has the whole response; the caller ends the sink
 * @throws RelayInterrupted if the run ends earlier: a client without a head can still get a status, otherwise its connection must break
 */
export const copy = (
  plan: RelayPlan,
  options: RelayOptions,
  sink: RelaySink,
): Effect.Effect<void, RelayInterrupted, StreamProcessor | Scope.Scope> =>
  Effect.suspend(() => {
    let copying: Copying | undefined;
    const beginning = begin(plan, options, {
      // The tee is called by the first pull at the earliest, which happens in a later step.
      tee: (events) => copying?.accept(events) === true,
      room: { isFree: sink.isReady, freed: sink.drained },
    });
    return Effect.flatMap(beginning, (begun) => {
      copying = new Copying(begun, options, sink);
      return copyBegun(copying, begun, options);
    });
  });

const copyBegun = (
  copying: Copying,
  begun: BegunRun,
  options: RelayOptions,
): Effect.Effect<void, RelayInterrupted, StreamProcessor | Scope.Scope> => {
  const { plan } = begun.run;
  const work = Effect.catch(copying.work, begun.failing);
  const isBounded = !plan.streaming && options.pathPatienceMs !== undefined;
  const given = Effect.andThen(awaitPathTimeout(plan, options, begun.waits), () =>
    copying.isHeaded ? Effect.never : givenUp,
  );
  const bounded: Effect.Effect<void | "given_up", RelayInterrupted> = isBounded ? Effect.raceFirst(work, given) : work;
  const ended = Effect.onExit(bounded, (exit) => {
    // A client that disconnects before the head may send its request again, marked as a retry, so the spent retries are remembered.
    const isLeft = !copying.isHeaded && Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause);
    copying.over();
    return isLeft ? begun.rememberSpent(true) : Effect.void;
  });
  return Effect.flatMap(ended, (outcome) => (outcome === "given_up" ? giveUp(begun, options) : Effect.void));
};

/** Ends a run that has waited for its path for the client's maximum wait (`pathPatienceMs`). */
const giveUp = Effect.fnUntraced(function* (
  { reader, rememberSpent, run, scope }: BegunRun,
  { pathPatienceMs = 0 }: RelayOptions,
): Effect.fn.Return<never, RelayInterrupted> {
  yield* closeRun(scope);
  yield* rememberSpent(false);
  return yield* pathWaited({ ...run, attempts: reader.attempts, waitedMs: pathPatienceMs });
});

const givenUp = Effect.succeed("given_up" as const);

class Copying {
  /** True if the sink has its head. */
  isHeaded = false;
  readonly #begun: BegunRun;
  readonly #options: RelayOptions;
  readonly #sink: RelaySink;
  readonly #alarms: Alarms;
  #resume: ((end: Effect.Effect<void, RunInterrupted>) => void) | undefined;
  #beats: Beats | undefined;
  /** Fires when the head is due. */
  #patience: Alarm | undefined;
  #late: Fiber.Fiber<void> | undefined;
  readonly #pulse: Pulse;

  constructor(begun: BegunRun, options: RelayOptions, sink: RelaySink) {
    this.#begun = begun;
    this.#options = options;
    this.#sink = sink;
    this.#alarms = Alarms.of(Context.get(begun.services, Clock.Clock));
    this.#pulse = pulseOf(begun, options);
  }

  /** Sends the parts of events to the sink. The parts then count as sent. */
  accept(events: ReadonlyArray<RunEvent<RelayPart>>): boolean {
    // `#safely` would allocate a closure for each event.
    try {
      const { reader } = this.#begun;
      const bytes = reader.bytesOf(events);
      if (bytes.length > 0) this.#write(bytes);
      if (reader.hasThrown) Effect.runForkWith(this.#begun.services)(reader.reportThrown);
    } catch (defect) {
      this.#die(defect);
    }
    return true;
  }

  /** Waits for the end of the run. A defect of the sink, in whatever step it occurs, becomes a defect of this effect. */
  readonly work: Effect.Effect<void, RunInterrupted> = Effect.callback((resume) => {
    this.#resume = resume;
    this.#safely(() => this.#awaitHead());
    const pulling = Effect.runForkWith(this.#begun.services)(this.#pullToEnd);
    pulling.addObserver((exit) => resume(exit));
    return Fiber.interrupt(pulling);
  });

  readonly #pullToEnd: Effect.Effect<void, RunInterrupted> = Effect.suspend(() =>
    Effect.matchEffect(Effect.forever(this.#begun.pull), {
      onSuccess: () => Effect.void,
      onFailure: (failed) => this.#onEnd(failed),
    }),
  );

  /**
   * Schedules the response head. It is sent when the head of the first provider stream arrives, or after the client's maximum wait. If
   * bytes of the body arrive earlier, the head is sent before them.
   */
  #awaitHead(): void {
    const { heads, run } = this.#begun;
    const { head = "first" } = this.#options;
    if (head === "content") return;
    if (head === "first") {
      heads.whenReleased((released) => this.#safely(() => this.#sendHead(released)));
      if (heads.firstReleased !== undefined) this.#sendHead(heads.firstReleased);
    } else if (run.plan.streaming) {
      this.#patience = new Alarm(() => this.#sendLateHead());
      this.#alarms.set(this.#patience, this.#alarms.now() + head.withinMs);
    }
  }

  #onEnd(failed: RunInterrupted | Cause.Done): Effect.Effect<void, RunInterrupted> {
    const { reader } = this.#begun;
    if (Cause.isDone(failed)) {
      reader.ended = true;
      // A response without any bytes also has a head.
      this.#ensureHead();
      return Effect.void;
    }
    const { endsCleanly, error, last } = reader.onBreak(failed);
    if (last.length > 0) this.#write(last);
    if (endsCleanly) reader.ended = true;
    return Effect.andThen(reader.reportThrown, endsCleanly ? Effect.void : Effect.fail(error));
  }

  #write(bytes: ReadonlyArray<Uint8Array<ArrayBuffer>>): void {
    this.#ensureHead();
    this.#sink.write(bytes);
    this.#beats?.recordSent();
  }

  /** Sends the head before the first bytes or the clean end. At that point the attempt has a head. */
  #ensureHead(): void {
    if (this.isHeaded) return;
    const { head } = this.#begun.heads;
    if (head === undefined) throw new Error("A body arrived before its head");
    this.#sendHead(head);
  }

  #sendHead(head: RelayHead): void {
    if (this.isHeaded) return;
    this.isHeaded = true;
    this.#stopPatience();
    const { heads, responseOf, run } = this.#begun;
    heads.sent = run.plan.streaming;
    this.#sink.head(responseOf(head));
    const { keepAliveMs } = this.#options;
    if (keepAliveMs !== undefined && run.plan.streaming)
      this.#beats = new Beats(this.#alarms, keepAliveMs, () => this.#safely(() => this.#sendKeepAlive()));
  }

  #sendKeepAlive(): void {
    const bytes = this.#sink.isReady() ? this.#pulse() : undefined;
    if (bytes !== undefined) this.#sink.write([bytes]);
  }

  /** Sends the head now: that of the newest stream, or the relay's own. Waits for a document in progress. */
  #sendLateHead(): void {
    const { heads, run } = this.#begun;
    const late = Effect.map(heads.late, (head) => this.#safely(() => this.#sendHead(head ?? ownHeadOf(run.plan))));
    this.#late = Effect.runForkWith(this.#begun.services)(late);
  }

  /** Stops waiting for a head. */
  #stopPatience(): void {
    if (this.#patience !== undefined) this.#alarms.clear(this.#patience);
    this.#late?.interruptUnsafe();
  }

  /** Stops sending. */
  over(): void {
    this.isHeaded = true;
    this.#stopPatience();
    this.#beats?.end();
  }

  #safely(act: () => void): void {
    try {
      act();
    } catch (defect) {
      this.#die(defect);
    }
  }

  #die(defect: unknown): void {
    this.#resume?.(Effect.die(defect));
  }
}
