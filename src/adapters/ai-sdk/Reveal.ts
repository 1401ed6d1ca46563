/**
 * Delivers the parts of a run in one of three ways.
 *
 * A reader of a model's stream cannot discard parts. By default this adapter delivers them as `StreamProcessor.parts` does. With
 * `on_complete` it delivers them together, once the response is complete. A call with the options that `recovery.live()` returns gets
 * them as they arrive; a mark follows withdrawn parts, and the call's transform restarts the step at the mark.
 */
import { Effect, Stream } from "effect";
import { none } from "../../domain/Observation.ts";
import type { RunEvent } from "../../runtime/contract/RunEvent.ts";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunOptions } from "../../runtime/contract/RunOptions.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { discardMark, type LiveCall } from "./Discard.ts";
import { ReadPart } from "./Parts.ts";

type Run = RunOptions<ReadPart, unknown, never>;

/**
 * Returns the parts of a run.
 *
 * @param live the live call, if the caller can discard parts
 */
export const revealParts = (
  processor: StreamProcessor["Service"],
  run: Run,
  live: LiveCall | undefined,
): Stream.Stream<ReadPart, RunInterrupted> => {
  if (live === undefined && run.reveal !== "on_complete") return processor.parts(run);
  return Stream.suspend(() => {
    const shown = new Shown(live);
    return Stream.flattenIterable(Stream.mapEffect(processor.run(run), (event) => shown.partsAfter(event)));
  });
};

/**
 * Maximum number of parts of one attempt that are held until the terminal marker. Beyond that, the attempt's parts are delivered as they
 * arrive.
 */
export const waitingPartsMax = 65_536;

/** Tracks the parts of the current attempt: those that the caller has, and those that are held because the attempt contains a call. */
class Shown {
  readonly #live: LiveCall | undefined;
  #runId = "";
  #waiting: Array<ReadPart> = [];
  #waits = false;
  #callShown = false;
  /** True if the attempt has delivered a part that a discard would have to withdraw. */
  #visible = false;

  constructor(live: LiveCall | undefined) {
    this.#live = live;
  }

  /** Returns the parts to deliver after an event of the run. */
  partsAfter(event: RunEvent<ReadPart>): Effect.Effect<ReadonlyArray<ReadPart>, RunInterrupted> {
    switch (event._tag) {
      case "AttemptStarted":
        this.#runId = event.run_id;
        this.#waiting = [];
        this.#waits = false;
        this.#visible = false;
        return nothing;
      case "Part":
        return Effect.succeed(this.#trackVisibility(this.#holdOrPass(event.part)));
      case "AttemptDiscarded":
        return this.#discard(event.attempt);
      case "RunCompleted":
        return Effect.succeed(this.#trackVisibility(this.#release()));
      default:
        return nothing;
    }
  }

  #trackVisibility(reads: ReadonlyArray<ReadPart>): ReadonlyArray<ReadPart> {
    this.#visible ||= reads.some((read) => !lifecycle.has(read.part.type));
    return reads;
  }

  /** Holds the attempt's parts from its first call on. Otherwise the SDK would keep and run a call even if it is withdrawn later. */
  #holdOrPass(read: ReadPart): ReadonlyArray<ReadPart> {
    const { calls, terminal } = read.observation;
    if (calls.length > 0 && !this.#callShown) this.#waits = true;
    if (!this.#waits) return [read];
    this.#waiting.push(read);
    return terminal || this.#waiting.length >= waitingPartsMax ? this.#release() : [];
  }

  #release(): ReadonlyArray<ReadPart> {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waits = false;
    this.#callShown ||= waiting.some((read) => read.observation.calls.length > 0);
    return waiting;
  }

  #discard(attempt: number): Effect.Effect<ReadonlyArray<ReadPart>, RunInterrupted> {
    this.#waiting = [];
    if (!this.#visible) return nothing;
    if (this.#callShown || this.#live?.attached !== true) return Effect.fail(this.#withdrawalError(attempt));
    return Effect.succeed([new ReadPart(discardMark(attempt), none, { run_id: this.#runId, attempt })]);
  }

  /** Creates the error for a call whose delivered parts cannot be withdrawn. The alternative would be to continue after broken text. */
  #withdrawalError(attempts: number): RunInterrupted {
    const why =
      this.#live === undefined || this.#callShown
        ? "it was too long to hold back"
        : "this call cannot withdraw text: spread `recovery.live(model)` into it";
    return new RunInterrupted({
      reason: "do_not_retry",
      run_id: this.#runId,
      rule: "text_shown",
      failure: { kind: "caller_failed" },
      attempts,
      message: `The response broke after part of it was shown, and that part cannot be withdrawn: ${why}.`,
    });
  }
}

/** Parts that may be delivered twice, because the SDK uses the newest one. */
const lifecycle: ReadonlySet<string> = new Set(["stream-start", "response-metadata", "ping"]);

const nothing: Effect.Effect<ReadonlyArray<ReadPart>> = Effect.succeed([]);
