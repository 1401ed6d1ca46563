/** Reads the events of a run once, in order, and records violations of the grammar that the header comment of RunEvent.ts defines. */
import type { RunEvent } from "../runtime/contract/RunEvent.ts";

/** Checks the events of one run. Pass every event to `next`, and the end of the stream to `end`. */
export class GrammarCheck {
  readonly #violations: Array<string> = [];
  #count = 0;
  #attempt = 0;
  /** Ordinal of the last part of each attempt. */
  #parts = new Map<number, number>();
  /** The event that announced the next attempt: a retry with its mode, or an answered question. */
  #announced: string | undefined;
  /** Revision of the open question. */
  #asked: number | undefined;
  #discarding = false;
  #completed = false;

  /** The violations so far, each with the position of its event, from 1. */
  get violations(): ReadonlyArray<string> {
    return this.#violations;
  }

  next(event: RunEvent<unknown>): void {
    this.#count += 1;
    this.#check(!this.#completed, event, "comes after RunCompleted");
    if (this.#attempt === 0)
      this.#check(event._tag === "AttemptStarted", event, "comes before the first AttemptStarted");
    if (this.#discarding)
      this.#check(
        event._tag === "AttemptDiscarded" || event._tag === "AttemptStarted",
        event,
        "comes between an AttemptDiscarded and its AttemptStarted",
      );
    switch (event._tag) {
      case "AttemptStarted":
        this.#onAttemptStarted(event);
        return;
      case "Part":
        this.#part(event);
        return;
      case "AttemptDiscarded":
        this.#onAttemptDiscarded(event);
        return;
      case "RetryScheduled":
        this.#onRetryScheduled(event);
        return;
      case "Waiting":
        this.#check(
          this.#announced !== undefined || (!this.#parts.has(this.#attempt) && this.#asked === undefined),
          event,
          "does not follow a RetryScheduled, an answer or an AttemptStarted, or follows a part",
        );
        return;
      case "QuestionAsked":
        this.#check(event.question.choices.length >= 2, event, "has fewer than two choices");
        this.#asked = event.question.revision;
        this.#announced = undefined;
        return;
      case "QuestionAnswered":
        this.#check(event.revision === this.#asked, event, "answers no open question");
        this.#asked = undefined;
        this.#announced = "answer";
        return;
      case "CallVerified":
        this.#check(event.attempt <= this.#attempt, event, "belongs to an attempt that never started");
        return;
      case "Continued":
        this.#check(
          event.attempt === this.#attempt && !this.#parts.has(event.attempt),
          event,
          "belongs to another attempt, or follows its parts",
        );
        return;
      case "RunCompleted":
        this.#check(event.attempts === this.#attempt, event, `counts ${event.attempts} attempts of ${this.#attempt}`);
        this.#completed = true;
    }
  }

  end(cleanly: boolean): void {
    if (cleanly && !this.#completed) this.#violations.push("the end: the stream ended without RunCompleted");
    if (!cleanly && this.#completed) this.#violations.push("the end: the stream failed after RunCompleted");
    if (this.#discarding) this.#violations.push("the end: no attempt follows an AttemptDiscarded");
  }

  #onRetryScheduled(event: Extract<RunEvent<unknown>, { readonly _tag: "RetryScheduled" }>): void {
    const hasStarted = event.attempt >= 1 && event.attempt <= this.#attempt;
    this.#check(hasStarted, event, "belongs to an attempt that never started");
    this.#announced = event.mode;
    this.#asked = undefined;
  }

  #onAttemptStarted(event: Extract<RunEvent<unknown>, { readonly _tag: "AttemptStarted" }>): void {
    this.#check(event.attempt === this.#attempt + 1, event, `has number ${event.attempt} after ${this.#attempt}`);
    if (this.#attempt === 0) this.#check(event.mode === "first", event, `starts a run with mode ${event.mode}`);
    else this.#check(this.#announced !== undefined, event, "was not announced by a retry or an answer");
    if (this.#announced !== undefined && this.#announced !== "answer")
      this.#check(
        event.mode === this.#announced,
        event,
        `has mode ${event.mode}, but ${this.#announced} was announced`,
      );
    this.#attempt = event.attempt;
    this.#announced = undefined;
    this.#asked = undefined;
    this.#discarding = false;
  }

  #part(event: Extract<RunEvent<unknown>, { readonly _tag: "Part" }>): void {
    const before = this.#parts.get(this.#attempt) ?? 0;
    this.#check(
      event.attempt === this.#attempt,
      event,
      `belongs to attempt ${event.attempt}, during attempt ${this.#attempt}`,
    );
    this.#check(event.ordinal === before + 1, event, `has ordinal ${event.ordinal} after ${before}`);
    this.#check(this.#asked === undefined, event, "comes while a question is open");
    this.#parts.set(this.#attempt, event.ordinal);
  }

  #onAttemptDiscarded(event: Extract<RunEvent<unknown>, { readonly _tag: "AttemptDiscarded" }>): void {
    const shown = this.#parts.get(event.attempt) ?? 0;
    this.#check(event.keep_through < shown, event, `withdraws the parts after ${event.keep_through} of ${shown}`);
    this.#check(this.#announced !== undefined, event, "comes without a retry or an answer");
    this.#discarding = true;
  }

  #check(condition: boolean, event: RunEvent<unknown>, problem: string): void {
    if (!condition) this.#violations.push(`event ${this.#count}, ${event._tag}: ${problem}`);
  }
}
