/** Judges the events that the caller saw: their grammar, and the remaining parts (I1, I2, I13, I16). */
import { Exit } from "effect";
import { RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import type { Entry, Part, Trace } from "../Journal.ts";
import { splitSerial } from "../world/Provider.ts";
import { against, type Violation } from "./Invariants.ts";

type Seen = Extract<Entry, { readonly what: "seen" }>["event"];

const eventsOf = (trace: Pick<Trace, "journal">): ReadonlyArray<Seen> =>
  trace.journal.flatMap((entry) => (entry.what === "seen" ? [entry.event] : []));

export const interruptedOf = (trace: Pick<Trace, "journal">): RunInterrupted | undefined => {
  for (const entry of trace.journal) {
    if (entry.what !== "ended" || Exit.isSuccess(entry.exit)) continue;
    for (const reason of entry.exit.cause.reasons) {
      if (reason._tag === "Fail" && reason.error instanceof RunInterrupted) return reason.error;
    }
  }
  return undefined;
};

/** I1: checks the grammar of the events in one pass. */
export const grammar = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I1");
  const handed = new Map<number, number>();
  let attempt = 0;
  let completed = false;
  let scheduled: string | undefined;
  let asked: number | undefined;
  let answered: string | undefined;
  let discarding = false;
  let overtaken: string | undefined;
  for (const event of eventsOf(trace)) {
    const told = () => `${JSON.stringify(event)} while attempt ${attempt}`;
    holds(!completed, () => `after the end: ${told()}`);
    if (discarding)
      holds(
        event._tag === "AttemptDiscarded" || event._tag === "AttemptStarted",
        () => `a discard that nothing follows, but ${told()}`,
      );
    switch (event._tag) {
      case "AttemptStarted":
        holds(event.attempt === attempt + 1, () => `attempt number: ${told()}`);
        holds(
          attempt === 0 ? event.mode === "first" : scheduled !== undefined || answered !== undefined,
          () => `a start that was not announced: ${told()}`,
        );
        if (scheduled !== undefined) holds(event.mode === scheduled, () => `announced ${scheduled}: ${told()}`);
        holds(overtaken === undefined, () => `a part of what a replay withdraws: ${overtaken}`);
        attempt = event.attempt;
        [scheduled, answered, asked, discarding] = [undefined, undefined, undefined, false];
        break;
      case "Part":
        holds(
          event.attempt === attempt && event.part.attempt === attempt,
          () => `a part of another attempt: ${told()}`,
        );
        holds(event.ordinal === (handed.get(attempt) ?? 0) + 1, () => `ordinal: ${told()}`);
        holds(asked === undefined, () => `a part while a question is open: ${told()}`);
        // Frozen parts may follow a RetryScheduled, but never precede the start of a replay.
        if (scheduled === "replay") overtaken = told();
        handed.set(attempt, event.ordinal);
        break;
      case "AttemptDiscarded":
        holds(
          event.attempt <= attempt && event.keep_through < (handed.get(event.attempt) ?? 0),
          () => `a discard of nothing: ${told()}`,
        );
        holds(scheduled !== undefined || answered !== undefined, () => `a discard without a break: ${told()}`);
        discarding = true;
        break;
      case "RetryScheduled":
        // After a refused cursor the event names the attempt that was interrupted first.
        holds(event.attempt >= 1 && event.attempt <= attempt, () => `a retry of no attempt: ${told()}`);
        [scheduled, answered, asked, overtaken] = [event.mode, undefined, undefined, undefined];
        break;
      case "QuestionAsked":
        holds(asked === undefined || event.question.revision > asked, () => `revision: ${told()}`);
        holds(event.question.choices.length >= 2, () => `fewer than two choices: ${told()}`);
        [asked, answered, scheduled, overtaken] = [event.question.revision, undefined, undefined, undefined];
        break;
      case "QuestionAnswered":
        holds(event.revision === asked, () => `an answer to no question: ${told()}`);
        [asked, answered] = [undefined, event.choice];
        break;
      case "RunCompleted":
        holds(event.attempts === attempt, () => `attempts: ${told()}`);
        completed = true;
    }
  }
  return [...violations, ...ending(trace, attempt, completed, discarding)];
};

const ending = (trace: Pick<Trace, "journal">, attempt: number, completed: boolean, discarding: boolean) => {
  const { holds, violations } = against("I1");
  const ends = trace.journal.filter((entry) => entry.what === "ended");
  const interrupted = interruptedOf(trace);
  holds(ends.length <= 1, () => `${ends.length} ends`);
  holds(!(completed && interrupted !== undefined), () => "completed and interrupted");
  if (interrupted !== undefined && interrupted.reason !== "refused" && eventsOf(trace).length > 0) {
    holds(interrupted.attempts === attempt, () => `${interrupted.attempts} attempts told, ${attempt} seen`);
    holds(!discarding, () => "a discard that no attempt follows");
  }
  return violations;
};

/** The parts that the caller still has: all but those that it was told to discard. */
const keptOf = (trace: Pick<Trace, "journal">) => {
  let kept: ReadonlyArray<{ readonly attempt: number; readonly ordinal: number; readonly part: Part }> = [];
  for (const event of eventsOf(trace)) {
    if (event._tag === "Part") kept = [...kept, event];
    if (event._tag === "AttemptDiscarded") {
      kept = kept.filter((it) => it.attempt !== event.attempt || it.ordinal <= event.keep_through);
    }
  }
  return kept;
};

/** I2: no serial twice; within a response, no gap before the last remaining part. */
export const nothingTwice = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I2");
  const events = eventsOf(trace);
  // A caller that left in the middle of a withdrawal of several attempts has discarded only some of them.
  const cut = events.at(-1)?._tag === "AttemptDiscarded";
  // A caller that accepts a partial response gets its frozen text without the calls in between.
  const accepted = events.some((event) => event._tag === "QuestionAnswered" && event.choice === "accept");
  const joins = joiningAttempts(trace);
  const numbers = new Map<string, Array<number>>();
  const joined = new Set<string>();
  for (const { attempt, part } of keptOf(trace)) {
    if (part.serial === undefined) continue;
    const [response, number] = splitSerial(part.serial);
    numbers.set(response, [...(numbers.get(response) ?? []), number]);
    if (joins.has(attempt)) joined.add(response);
  }
  for (const [response, found] of numbers) {
    holds(new Set(found).size === found.length, () => `twice in response ${response}: ${found.join(" ")}`);
    if (accepted || cut) continue;
    // The text that a continuation repeats precedes its seam and is not handed over.
    const before = joined.has(response) ? (trace.scenario.world.seam?.anchor ?? 0) : 0;
    holds(
      found.every((number, index) => number === before + index + 1),
      () => `missing in response ${response}: ${found.join(" ")}`,
    );
  }
  return violations;
};

/** The attempts that join their text to shown text. The same response may also come whole, in another attempt. */
const joiningAttempts = ({ journal }: Pick<Trace, "journal">): ReadonlySet<number> =>
  new Set(journal.flatMap((it) => (it.what === "opened" && it.context.seam !== undefined ? [it.context.attempt] : [])));

/** I13: for callers that cannot discard. */
export const plainParts = (trace: Pick<Trace, "journal" | "scenario">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I13");
  // A part above the limit of held parts ends the holding.
  const heavy = trace.scenario.world.edges.some(({ field }) => field === "sizeOf" || field === "part.characters");
  const got = new Set<string>();
  const marked = new Set<number>();
  let attempt = 0;
  for (const entry of trace.journal) {
    if (
      entry.what === "emitted" &&
      entry.parts.some((part) => part.says.terminal || part.says.terminal_at_end === true)
    ) {
      marked.add(entry.attempt);
    }
    if (entry.what !== "got") continue;
    const { part } = entry;
    holds(part.attempt >= attempt, () => `a part of attempt ${part.attempt} after one of ${attempt}`);
    attempt = part.attempt;
    // The rest of a resumed response comes in a later attempt, and its marker with it.
    const whole = [...marked].some((it) => it >= part.attempt);
    holds(part.says.calls.length === 0 || whole || heavy, () => `a call before the marker: ${part.serial}`);
    if (part.serial === undefined) continue;
    holds(!got.has(part.serial), () => `handed out twice: ${part.serial}`);
    got.add(part.serial);
  }
  return violations;
};

/** I16: a replay sends the failed attempt's request again. Only a person's retry returns to the start of the response. */
export const sameRequest = (trace: Pick<Trace, "journal">): ReadonlyArray<Violation> => {
  const { holds, violations } = against("I16");
  const opened = trace.journal.flatMap((entry) => (entry.what === "opened" ? [entry.context] : []));
  for (const [index, context] of opened.entries()) {
    const before = opened[index - 1];
    if (before === undefined || context.mode !== "replay") continue;
    const origin = opened.slice(0, index).findLast((it) => it.request !== "resume" && it.seam === undefined) ?? before;
    const own = [before, origin].some(
      (it) =>
        it.request === context.request &&
        it.cursor === context.cursor &&
        JSON.stringify(it.calls) === JSON.stringify(context.calls),
    );
    holds(
      own,
      () => `attempt ${context.attempt} sends ${context.request} ${context.cursor ?? ""} instead of ${before.request}`,
    );
  }
  return violations;
};
