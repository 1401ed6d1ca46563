/**
 * Copies a relayed response to a sink: what leaves the run reaches the sink in the step in which it leaves.
 *
 * Nothing is read here. The run's tee writes, while the sink is ready; where it is not, or where something must be on record first,
 * parts wait in their slot and the one fiber of the run takes them from there, behind the sink's drain. That fiber has nothing else to
 * do but to wait for the end.
 *
 * The head leaves in the step in which it may: with the first stream's head, with the first bytes, or when the client's patience is
 * over. Keep-alives go from the head on, while the sink is ready.
 */
import { Cause, Clock, type Context, Effect, Fiber, type Scope } from "effect";
import type { RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { type Deadline, Deadlines } from "./deadline/Deadlines.ts";
import { Beats, type Pulse, pulseOf } from "./KeepAlive.ts";
import { type BegunRun, begin, givesUp, ownHead, type RelayOptions, type RelaySink } from "./RelayBeginning.ts";
import type { RelayPart } from "./RelayFrames.ts";
import { pathWaited, type RelayInterrupted } from "./RelayInterrupted.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import type { RelayHead } from "./RelayTransport.ts";
import { closeRun } from "./RelayWaits.ts";

/**
 * Runs a request and copies its response.
 *
 * @param plan what `RelayPlan.recognise` made of it
 * @returns done once the sink has the whole response; the caller ends the sink
 * @throws RelayInterrupted when the run ends before: where the sink has no head, its client can be told by a status; behind one the
 *   connection must break
 */
export const copy = Effect.fnUntraced(function* (
  plan: RelayPlan,
  options: RelayOptions,
  sink: RelaySink,
): Effect.fn.Return<void, RelayInterrupted, StreamProcessor | Scope.Scope> {
  const deadlines = Deadlines.of(yield* Clock.Clock);
  const services = yield* Effect.context<never>();
  let copying: Copying | undefined;
  const begun = yield* begin(plan, options, {
    // A tee is first asked by a pull, and none is made before the next step.
    tee: (events) => copying?.takes(events) === true,
    room: { isFree: sink.isReady, freed: sink.drained },
  });
  const { failing, reader, run, scope, spends, waits } = begun;
  const made = new Copying(begun, options, sink, [deadlines, services]);
  copying = made;
  const work = Effect.catch(made.work, failing);
  const isBounded = !plan.streaming && options.pathPatienceMs !== undefined;
  const given = Effect.andThen(givesUp(plan, options, waits), () => (made.isHeaded ? Effect.never : givenUp));
  const bounded: Effect.Effect<void | "given_up", RelayInterrupted> = isBounded ? Effect.raceFirst(work, given) : work;
  const outcome = yield* bounded.pipe(
    // A client that gives up before the head may repeat its request, and marks the repeat as a retry.
    Effect.onInterrupt(() => (made.isHeaded ? Effect.void : spends(true))),
    Effect.ensuring(Effect.sync(() => made.over())),
  );
  if (outcome !== "given_up") return;
  yield* closeRun(scope);
  yield* spends(false);
  const { attempts } = reader;
  return yield* pathWaited({ ...run, attempts, waitedMs: options.pathPatienceMs ?? 0 });
});

const givenUp = Effect.succeed("given_up" as const);

/** The copying of one response. */
class Copying {
  /** The sink has its head. */
  isHeaded = false;
  readonly #begun: BegunRun;
  readonly #options: RelayOptions;
  readonly #sink: RelaySink;
  readonly #deadlines: Deadlines;
  readonly #services: Context.Context<never>;
  #resume: ((end: Effect.Effect<void, RunInterrupted>) => void) | undefined;
  #beats: Beats | undefined;
  /** When the head goes, whatever it is. */
  #patience: Deadline | undefined;
  #late: Fiber.Fiber<void> | undefined;
  readonly #pulse: Pulse;

  constructor(
    begun: BegunRun,
    options: RelayOptions,
    sink: RelaySink,
    [deadlines, services]: [Deadlines, Context.Context<never>],
  ) {
    this.#begun = begun;
    this.#options = options;
    this.#sink = sink;
    this.#deadlines = deadlines;
    this.#services = services;
    this.#pulse = pulseOf(begun, options);
  }

  /** Takes what leaves the run. Its parts have left with it. */
  takes(events: ReadonlyArray<RunEvent<RelayPart>>): boolean {
    // `#safely` would make a function of each event.
    try {
      const { reader } = this.#begun;
      const bytes = reader.bytesOf(events);
      if (bytes.length > 0) this.#writes(bytes);
      if (reader.hasThrown) Effect.runForkWith(this.#services)(reader.reportThrown);
    } catch (defect) {
      this.#dies(defect);
    }
    return true;
  }

  /** Waits for the end of the run. A defect of the sink is one of the copying, in whatever step it shows. */
  readonly work: Effect.Effect<void, RunInterrupted> = Effect.callback((resume) => {
    this.#resume = resume;
    this.#safely(() => this.#awaitsHead());
    const pulling = Effect.runForkWith(this.#services)(this.#ended);
    pulling.addObserver((exit) => resume(exit));
    return Fiber.interrupt(pulling);
  });

  readonly #ended: Effect.Effect<void, RunInterrupted> = Effect.suspend(() =>
    Effect.matchEffect(Effect.forever(this.#begun.pull), {
      onSuccess: () => Effect.void,
      onFailure: (failed) => this.#ends(failed),
    }),
  );

  /** The head goes with that of the first stream, or when the client's patience is over; the first bytes bring it in any case. */
  #awaitsHead(): void {
    const { heads, run } = this.#begun;
    const { head = "first" } = this.#options;
    if (head === "content") return;
    if (head === "first") {
      heads.whenReleased((released) => this.#safely(() => this.#heads(released)));
      if (heads.firstReleased !== undefined) this.#heads(heads.firstReleased);
    } else if (run.plan.streaming) {
      this.#patience = { act: () => this.#isPatientNoMore(), at: 0, place: -1 };
      this.#deadlines.set(this.#patience, this.#deadlines.now() + head.withinMs);
    }
  }

  #ends(failed: RunInterrupted | Cause.Done): Effect.Effect<void, RunInterrupted> {
    const { reader } = this.#begun;
    if (Cause.isDone(failed)) {
      reader.ended = true;
      // A response without a byte has a head all the same.
      this.#headsFirst();
      return Effect.void;
    }
    const { endsCleanly, error, last } = reader.breaks(failed);
    if (last.length > 0) this.#writes(last);
    if (endsCleanly) reader.ended = true;
    return Effect.andThen(reader.reportThrown, endsCleanly ? Effect.void : Effect.fail(error));
  }

  #writes(bytes: ReadonlyArray<Uint8Array<ArrayBuffer>>): void {
    this.#headsFirst();
    this.#sink.write(bytes);
    this.#beats?.left();
  }

  /** Bytes come after a head of their attempt, and a clean end after its marker. */
  #headsFirst(): void {
    if (this.isHeaded) return;
    const { head } = this.#begun.heads;
    if (head === undefined) throw new Error("A body came before its head");
    this.#heads(head);
  }

  #heads(head: RelayHead): void {
    if (this.isHeaded) return;
    this.isHeaded = true;
    this.#isPatient();
    const { heads, responseOf, run } = this.#begun;
    heads.sent = run.plan.streaming;
    this.#sink.head(responseOf(head));
    const { keepAliveMs } = this.#options;
    if (keepAliveMs !== undefined && run.plan.streaming)
      this.#beats = new Beats(this.#deadlines, keepAliveMs, () => this.#safely(() => this.#keepsAlive()));
  }

  #keepsAlive(): void {
    const bytes = this.#sink.isReady() ? this.#pulse() : undefined;
    if (bytes !== undefined) this.#sink.write([bytes]);
  }

  /** The head goes now: of the newest stream, or one of our own. A document that is under way is waited for. */
  #isPatientNoMore(): void {
    const late = Effect.map(this.#begun.heads.late, (head) => this.#safely(() => this.#heads(head ?? ownHead)));
    this.#late = Effect.runForkWith(this.#services)(late);
  }

  /** There is a head, or none is waited for. */
  #isPatient(): void {
    if (this.#patience !== undefined) this.#deadlines.clear(this.#patience);
    this.#late?.interruptUnsafe();
  }

  /** Nothing of the response leaves any more. */
  over(): void {
    this.isHeaded = true;
    this.#isPatient();
    this.#beats?.end();
  }

  #safely(act: () => void): void {
    try {
      act();
    } catch (defect) {
      this.#dies(defect);
    }
  }

  #dies(defect: unknown): void {
    this.#resume?.(Effect.die(defect));
  }
}
