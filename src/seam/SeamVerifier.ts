/**
 * Proves a seam, the place where a continuation joins the shown text, while text arrives. Each piece of new text is part of the anchor (the
 * quoted end of the shown text), continues after it, or differs.
 *
 * New text passes three stages. `Comparison` compares it with the anchor, or with the prefill if the provider echoes that, up to the last
 * shown character. `ShownTail` removes characters that were already shown. `RepetitionGuard` holds possible repetitions. All stages read
 * single code units, so the result does not depend on how the text is split into chunks.
 */
import type { SeamFault, SeamProof } from "../domain/SeamWords.ts";
import { type Anchor, anchorWeightMin } from "./Anchor.ts";
import { Comparison } from "./Comparison.ts";
import { weighBack } from "./Folding.ts";
import { type Guarded, RepetitionGuard } from "./RepetitionGuard.ts";
import { sentenceStarts } from "./SentenceStarts.ts";
import { ShownTail } from "./ShownTail.ts";

/** The result for the text that has arrived so far. */
export type SeamStep =
  /** No text may be delivered yet. */
  | { readonly type: "wait" }
  /** The seam is proven. This text, which may be empty, may be delivered. */
  | { readonly type: "joined"; readonly text: string }
  /** The seam is not proven or has turned out to be wrong. No further text may be delivered. */
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** Facts about a continuation that its verification needs. */
export interface SeamStart {
  /** All text that was shown since the last block that is not text. */
  readonly run: string;
  readonly anchor: Anchor;
  readonly proof: SeamProof;
  /** True if the provider repeats the prefill before it continues. */
  readonly echoes?: boolean;
  /** True if the prefill was sent with its trailing white space, which the model then does not repeat. Default: false. */
  readonly sentToTheEnd?: boolean;
}

/** Verifies the text of one continuation, in order. Time is linear in the length of the text, and memory is limited. */
export interface SeamVerifier {
  /** Length of the new text before the seam, in UTF-16 code units. That text is not delivered. 0 until the seam is proven. */
  readonly cut: number;
  /** Reads the next piece of new text. Pieces may be split at any position. */
  readonly take: (text: string) => SeamStep;
  /** Ends the text run, because a part that is not text follows. Text that was held as a possible repetition may then be delivered. */
  readonly close: () => SeamStep;
  /** Called at the clean end of the response. Held text may then be delivered; a seam that was not reached remains unproven. */
  readonly stop: () => SeamStep;
}

/** Maximum distance from the end of the text at which a model may start again, in code units. */
const earlierMax = 1_600;

/** Maximum length of a text run that a model may repeat from its start, in code units. */
const wholeMax = 2_000;

/** Maximum length of an echo, as a multiple of the prefill. An echo may contain more white space, but longer text is not an echo. */
const echoLengths = 2;

/** Reads the echo of a prefill before new text. If there is no echo, all text is new. */
class Echo {
  readonly #comparison: Comparison;
  readonly #most: number;
  #read = "";

  constructor(run: string) {
    const text = run.trimEnd();
    this.#comparison = new Comparison(text, [text.length - text.trimStart().length]);
    this.#most = echoLengths * run.length + anchorWeightMin;
  }

  get read(): string {
    return this.#read;
  }

  take(text: string): ReturnType<Comparison["take"]> {
    this.#read += text;
    const compared = this.#comparison.take(text);
    return compared.type === "wait" && this.#read.length > this.#most ? { type: "differs" } : compared;
  }
}

/** Returns the offsets from which a model may start again, ascending: starts of sentences near the end, and the start of the anchor. */
const restartPoints = (run: string, anchor: Anchor): ReadonlyArray<number> => {
  const from = run.length <= wholeMax ? 0 : run.length - earlierMax;
  return [...new Set([...sentenceStarts(run, from), anchor.at])].sort((a, b) => a - b);
};

class Following implements SeamVerifier {
  #comparison: Comparison | undefined;
  #echo: Echo | undefined;
  readonly #echoes: boolean;
  #tail: ShownTail;
  /** The shown characters to remove after an echo. An echo repeats all white space, even if the white space was sent. */
  readonly #echoedTail: ShownTail;
  readonly #guard: RepetitionGuard;
  #fault: SeamFault | undefined;
  /** Length of the new text that has arrived, in code units. `#left` is the length that was delivered. */
  #taken = 0;
  #left = 0;

  constructor({ anchor, echoes, proof, run, sentToTheEnd }: SeamStart) {
    const starts = restartPoints(run, anchor);
    this.#echoes = echoes === true;
    if (proof === "anchor") {
      this.#comparison = new Comparison(
        run,
        starts.filter((at) => at <= anchor.at),
      );
    } else if (this.#echoes || weighBack(run.trim(), 0, anchorWeightMin).weight >= anchorWeightMin) {
      this.#echo = new Echo(run);
    }
    this.#tail = new ShownTail(run, proof === "prefill" && sentToTheEnd !== true);
    this.#echoedTail = new ShownTail(run, true);
    this.#guard = new RepetitionGuard(run, anchor, starts);
  }

  get cut(): number {
    const proven = this.#comparison === undefined && this.#echo === undefined;
    return proven ? this.#taken - this.#left - this.#guard.heldLength - this.#tail.heldLength : 0;
  }

  readonly take = (text: string): SeamStep => {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    this.#taken += text.length;
    const rest = this.#comparison === undefined ? this.#skipEcho(text) : this.#compare(this.#comparison, text);
    return typeof rest === "string" ? this.#pass(this.#guard.take(this.#tail.take(rest))) : rest;
  };

  readonly close = (): SeamStep => this.#end("not_text");

  readonly stop = (): SeamStep => this.#end("stopped");

  #fail(fault: SeamFault): SeamStep {
    this.#fault = fault;
    return { type: "unproven", fault };
  }

  /** Returns the text after the seam. If the seam has not been reached or does not exist, returns a step instead. */
  #compare(comparison: Comparison, text: string): string | SeamStep {
    const compared = comparison.take(text);
    if (compared.type === "wait") return compared;
    if (compared.type === "differs") return this.#fail("differs");
    this.#comparison = undefined;
    return compared.rest;
  }

  #skipEcho(text: string): string | SeamStep {
    const echo = this.#echo;
    if (echo === undefined) return text;
    const compared = echo.take(text);
    if (compared.type === "wait") return compared;
    if (compared.type === "differs" && this.#echoes) return this.#fail("differs");
    this.#echo = undefined;
    if (compared.type === "differs") return echo.read;
    this.#tail = this.#echoedTail;
    return compared.rest;
  }

  #end(fault: SeamFault): SeamStep {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    // The white space at the end was shown, and a provider may omit it if no text follows.
    if (this.#comparison?.isComplete === false) return this.#fail(fault);
    if (this.#echo !== undefined && this.#echoes) return this.#fail(fault);
    const read = this.#echo?.read ?? "";
    this.#comparison = undefined;
    this.#echo = undefined;
    const before = this.#guard.take(this.#tail.take(read) + this.#tail.end());
    if (before.repeats) return this.#pass(before);
    const { repeats, text } = this.#guard.end();
    return this.#pass({ repeats, text: before.text + text });
  }

  /**
   * Returns guarded text. If there is text before a repetition, the text is delivered first and the next call reports the repetition, so
   * that the result does not depend on the chunks.
   */
  #pass({ repeats, text }: Guarded): SeamStep {
    if (repeats) this.#fault = "repeats";
    this.#left += text.length;
    return repeats && text === "" ? { type: "unproven", fault: "repeats" } : { type: "joined", text };
  }
}

/**
 * Starts to verify a continuation.
 *
 * @param start the shown text, and facts about the request
 */
export const make = (start: SeamStart): SeamVerifier => new Following(start);
