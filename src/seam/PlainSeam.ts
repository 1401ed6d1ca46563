/**
 * Joins parts that carry plain text, for adapters of decoded streams and for tests.
 */
import type { Observation } from "../domain/Observation.ts";
import type { SeamFault, SeamRefusal } from "../domain/SeamWords.ts";
import { anchorOf } from "./Anchor.ts";
import * as SeamVerifier from "./SeamVerifier.ts";
import { ShownText } from "./ShownText.ts";
import type { SeamJoin, SeamPassed, SeamPlan, TextSeam } from "./TextSeam.ts";

/** Reads and writes one kind of parts. */
export interface PlainParts<P> {
  /** The visible text of a part; undefined if the part is not text. */
  readonly text: (part: P) => string | undefined;
  /** Returns the part with another text. */
  readonly withText: (part: P, text: string) => P;
}

/**
 * A part after the seam that is not delivered yet: the repetition guard holds some of its text, or it follows such a part and is not text.
 */
interface Waiting<P> {
  readonly part: P;
  readonly observation: Observation;
  /** Length of the text that was not delivered yet, in code units; undefined for a part that is not text. */
  text: number | undefined;
}

const passNothing = (joined: boolean): SeamPassed<never> => ({ type: "passed", joined, parts: [], observations: [] });

const isTextEnd = ({ calls, shows, terminal }: Observation): boolean =>
  shows !== "nothing" || calls.length > 0 || terminal;

class Join<P> implements SeamJoin<P> {
  readonly #parts: PlainParts<P>;
  readonly #verifier: SeamVerifier.SeamVerifier;
  #joined = false;
  /** Length of the new text that has arrived, in code units. `#left` is the length that was delivered. */
  #taken = 0;
  #left = 0;
  #waiting: Array<Waiting<P>> = [];
  #last: { readonly part: P; readonly observation: Observation } | undefined;

  constructor(parts: PlainParts<P>, verifier: SeamVerifier.SeamVerifier) {
    this.#parts = parts;
    this.#verifier = verifier;
  }

  readonly take = (part: P, observation: Observation): SeamPassed<P> => {
    const text = this.#parts.text(part);
    // An error ends the attempt unchanged, and a quiet part shows nothing, so neither waits for a seam.
    if (text === undefined && (observation.quiet || observation.failure !== undefined)) {
      return { type: "passed", joined: this.#joined, parts: [part], observations: [observation] };
    }
    if (text === undefined) return this.#takeOther(part, observation);
    this.#last = { part, observation };
    this.#taken += text.length;
    const step = this.#verifier.take(text);
    const closes = isTextEnd({ ...observation, shows: "nothing" });
    return this.#step(closes && step.type !== "unproven" ? this.#closeRun(observation, step) : step, {
      part,
      observation,
      text: text.length,
    });
  };

  readonly end = (): SeamPassed<P> => this.#step(this.#verifier.stop(), undefined);

  #takeOther(part: P, observation: Observation): SeamPassed<P> {
    const other: Waiting<P> = { part, observation, text: undefined };
    if (isTextEnd(observation)) {
      // Reasoning before the seam would show a second time in this response, so it is dropped.
      if (
        !this.#joined &&
        observation.shows === "reasoning" &&
        observation.calls.length === 0 &&
        !observation.terminal
      ) {
        return passNothing(false);
      }
      return this.#step(this.#closeRun(observation, undefined), other);
    }
    if (!this.#joined) return passNothing(false);
    this.#waiting.push(other);
    return { type: "passed", joined: true, ...this.#leave(0) };
  }

  /** Ends the text run. If the part that ends it has text too, that text (`before`) comes first. */
  #closeRun({ calls, terminal }: Observation, before: SeamVerifier.SeamStep | undefined): SeamVerifier.SeamStep {
    const step = terminal && calls.length === 0 ? this.#verifier.stop() : this.#verifier.close();
    return step.type === "joined" && before?.type === "joined" ? { ...step, text: before.text + step.text } : step;
  }

  #step(step: SeamVerifier.SeamStep, next: Waiting<P> | undefined): SeamPassed<P> {
    if (step.type === "unproven") return step;
    if (step.type === "wait") return passNothing(false);
    this.#joined = true;
    const waiting = this.#waiting.reduce((sum, { text }) => sum + (text ?? 0), 0);
    const behind = this.#taken - this.#verifier.cut - this.#left - waiting;
    this.#left += step.text.length;
    if (next?.text !== undefined) this.#waiting.push({ ...next, text: behind });
    else if (next !== undefined) this.#waiting.push(next);
    return { type: "passed", joined: true, ...this.#leave(step.text.length, step.text) };
  }

  /** Releases text in the same parts in which it arrived, together with the parts between them. */
  #leave(
    length: number,
    text = "",
  ): { readonly parts: ReadonlyArray<P>; readonly observations: ReadonlyArray<Observation> } {
    const parts: Array<P> = [];
    const observations: Array<Observation> = [];
    const addPart = ({ observation, part }: Pick<Waiting<P>, "observation" | "part">, piece: string): void => {
      parts.push(this.#parts.withText(part, piece));
      observations.push({ ...observation, characters: piece.length });
    };
    let at = 0;
    while (this.#waiting.length > 0) {
      const first = this.#waiting[0];
      if (first === undefined || (first.text !== undefined && first.text > 0 && at === length)) break;
      if (first.text === undefined) {
        parts.push(first.part);
        observations.push(first.observation);
      } else {
        const piece = text.slice(at, at + first.text);
        at += piece.length;
        first.text -= piece.length;
        if (piece !== "" || first.observation.calls.length > 0 || first.observation.terminal) addPart(first, piece);
        if (first.text > 0) break;
      }
      this.#waiting.shift();
    }
    if (at < length && this.#last !== undefined) addPart(this.#last, text.slice(at));
    return { parts, observations };
  }
}

class Plain<P> implements TextSeam<P> {
  readonly #parts: PlainParts<P>;
  #shown = new ShownText();

  constructor(parts: PlainParts<P>) {
    this.#parts = parts;
  }

  readonly begins = (): void => {
    this.#shown = new ShownText();
  };

  readonly left = (part: P, observation: Observation): void => {
    const text = this.#parts.text(part);
    if (text !== undefined) this.#shown.say(text);
    else if (observation.shows !== "nothing") this.#shown.endRun();
    // A call of the caller's own tools cannot be part of the request of a continuation.
    for (const { choice, executor, ordinal, phase } of observation.calls) {
      if (executor !== "provider") this.#shown.refuse("not_text_last");
      this.#shown.recordHostedTool(`${choice}.${ordinal}`, phase === "settled");
    }
  };

  readonly plan = (): SeamPlan | SeamRefusal => {
    const { characters, refusal, run } = this.#shown.response();
    if (refusal !== undefined) return refusal;
    if (run === "") return "blank";
    const anchor = anchorOf(run);
    return typeof anchor === "string" ? anchor : { proof: "anchor", at: characters, quote: anchor.quote };
  };

  readonly joins = (plan: SeamPlan): SeamJoin<P> => {
    const { run } = this.#shown.response();
    const anchor = anchorOf(run);
    return typeof anchor === "string"
      ? failJoin("unwritable")
      : new Join(this.#parts, SeamVerifier.make({ run, anchor, proof: plan.proof }));
  };

  /** Does nothing, because a plan of this seam is never a prefill. */
  readonly refused = (): void => {};
}

/** A join that always fails, because the text has no anchor. */
const failJoin = <P>(fault: SeamFault): SeamJoin<P> => ({
  take: () => ({ type: "unproven", fault }),
  end: () => ({ type: "unproven", fault }),
});

/**
 * Describes the seams of plain text. Each run calls the returned function to make its own seam.
 *
 * A part without text ends the text run if it shows something or has calls. Before the seam every part is dropped except errors and quiet
 * parts, which show nothing. The part that contains the seam is split.
 */
export const make =
  <P>(parts: PlainParts<P>): (() => TextSeam<P>) =>
  () =>
    new Plain(parts);
