/**
 * Hands the parts of a run over in the order in which a caller of the AI SDK may have them.
 *
 * Nobody who reads a model's stream can throw a part away. So parts come as `StreamProcessor.parts` gives them, or all at once
 * when the answer is whole (`on_complete`), or, for a call that was made with `live`, as they come: then what was withdrawn is
 * followed by a mark, behind which the call's own transform starts the step anew.
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
 * The parts of a run.
 *
 * @param live of a call that can discard; left out for any other
 */
export const revealed = (
  processor: StreamProcessor["Service"],
  run: Run,
  live: LiveCall | undefined,
): Stream.Stream<ReadPart, RunInterrupted> => {
  if (live === undefined && run.reveal !== "on_complete") return processor.parts(run);
  return Stream.suspend(() => {
    const shown = new Shown(live);
    return Stream.flattenIterable(Stream.mapEffect(processor.run(run), (event) => shown.next(event)));
  });
};

/** Parts that wait for the terminal marker, in one attempt; of what comes beyond nothing waits any more. */
export const waitingPartsMax = 65_536;

/** What a caller has been handed of the live attempt, and what waits because a call is in it. */
class Shown {
  readonly #live: LiveCall | undefined;
  #runId = "";
  #waiting: Array<ReadPart> = [];
  #waits = false;
  #callShown = false;
  /** Something of the attempt was handed over that a caller would have to take back. */
  #visible = false;

  constructor(live: LiveCall | undefined) {
    this.#live = live;
  }

  /** The parts to hand over at an event of the run. */
  next(event: RunEvent<ReadPart>): Effect.Effect<ReadonlyArray<ReadPart>, RunInterrupted> {
    switch (event._tag) {
      case "AttemptStarted":
        this.#runId = event.run_id;
        this.#waiting = [];
        this.#waits = false;
        this.#visible = false;
        return nothing;
      case "Part":
        return Effect.succeed(this.#handed(this.#part(event.part)));
      case "AttemptDiscarded":
        return this.#discard(event.attempt);
      case "RunCompleted":
        return Effect.succeed(this.#handed(this.#release()));
      default:
        return nothing;
    }
  }

  #handed(reads: ReadonlyArray<ReadPart>): ReadonlyArray<ReadPart> {
    this.#visible ||= reads.some((read) => !lifecycle.has(read.part.type));
    return reads;
  }

  /** From its first call on an attempt waits: the SDK would keep, and run, a call that is withdrawn later. */
  #part(read: ReadPart): ReadonlyArray<ReadPart> {
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
    if (this.#callShown || this.#live?.attached !== true) return Effect.fail(this.#stuck(attempt));
    return Effect.succeed([new ReadPart(discardMark(attempt), none, { run_id: this.#runId, attempt })]);
  }

  /** What was handed over stays: better an error than a text that nobody takes back. */
  #stuck(attempts: number): RunInterrupted {
    const why =
      this.#live === undefined || this.#callShown
        ? "it was too long to be held back"
        : "the call was not given the experimental_transform of live()";
    return new RunInterrupted({
      reason: "do_not_retry",
      run_id: this.#runId,
      rule: "text_shown",
      failure: { kind: "caller_failed" },
      attempts,
      message: `The answer broke after a part of it was shown, and what was shown cannot be withdrawn: ${why}.`,
    });
  }
}

/** Parts that may come twice: the SDK takes the newest. */
const lifecycle: ReadonlySet<string> = new Set(["stream-start", "response-metadata", "ping"]);

const nothing: Effect.Effect<ReadonlyArray<ReadPart>> = Effect.succeed([]);
