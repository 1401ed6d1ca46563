/**
 * Proves a seam piece by piece: says of new text whether it is still the anchor, goes on behind it, or is something else.
 *
 * New text passes three stations. `Comparison` reads the anchor (of a prefill: the echo) to the last shown character. `ShownTail`
 * takes off what stands there already. `RepetitionGuard` holds what may become a repetition. Each reads unit by unit, so that it
 * makes no difference how the new text is cut.
 */
import type { SeamFault, SeamProof } from "../domain/SeamWords.ts";
import { type Anchor, anchorWeightMin } from "./Anchor.ts";
import { Comparison } from "./Comparison.ts";
import { weighBack } from "./Folding.ts";
import { type Guarded, RepetitionGuard } from "./RepetitionGuard.ts";
import { sentenceStarts } from "./SentenceStarts.ts";
import { ShownTail } from "./ShownTail.ts";

/** What a verifier says of what has come so far. */
export type SeamStep =
  /** Nothing may leave yet. */
  | { readonly type: "wait" }
  /** The seam is proven, and this text may leave now; it may be empty. */
  | { readonly type: "joined"; readonly text: string }
  /** The seam is not proven, or not any more; nothing further may leave. */
  | { readonly type: "unproven"; readonly fault: SeamFault };

/** What a verifier starts from. */
export interface SeamStart {
  /** All text that was shown since the last block that is no text. */
  readonly run: string;
  readonly anchor: Anchor;
  readonly proof: SeamProof;
  /** The provider says the prefill once more before it goes on. */
  readonly echoes?: boolean;
  /** The prefill was sent with the white space at its end, so that it does not come again. Left out: without. */
  readonly sentToTheEnd?: boolean;
}

/** Follows the text of one continuation, in order. Linear in its length and bounded. */
export interface SeamVerifier {
  /** How much of the new text stands in front of the seam and never leaves, in UTF-16 code units; 0 until the seam is proven. */
  readonly cut: number;
  /** The next piece of new text, cut anywhere. */
  readonly take: (text: string) => SeamStep;
  /** The text run ends here, and something that is no text follows: what was held against a repetition may leave. */
  readonly close: () => SeamStep;
  /** The response has ended cleanly. */
  readonly stop: () => SeamStep;
}

/** How far in front of the end a model may begin anew, in code units. */
const earlierMax = 1_600;

/** Longest text that a model may begin anew from its beginning, in code units. */
const wholeMax = 2_000;

/** Echoes may hold this many times their own length, as white space may be longer; then they are none. */
const echoLengths = 2;

/** Reads the prefill where it comes again before the new text. What was read is text where it was none. */
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

/** Where a model may begin anew, and where sentences begin in the end of a text, ascending. */
const startsOf = (run: string, anchor: Anchor): ReadonlyArray<number> => {
  const from = run.length <= wholeMax ? 0 : run.length - earlierMax;
  return [...new Set([...sentenceStarts(run, from), anchor.at])].sort((a, b) => a - b);
};

class Following implements SeamVerifier {
  #comparison: Comparison | undefined;
  #echo: Echo | undefined;
  readonly #echoes: boolean;
  #tail: ShownTail;
  /** Behind an echo all white space stands again, whether it was sent or not. */
  readonly #echoedTail: ShownTail;
  readonly #guard: RepetitionGuard;
  #fault: SeamFault | undefined;
  /** How much new text has come and how much of it has left, in code units. */
  #taken = 0;
  #left = 0;

  constructor({ anchor, echoes, proof, run, sentToTheEnd }: SeamStart) {
    const starts = startsOf(run, anchor);
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
    return proven ? this.#taken - this.#left - this.#guard.held - this.#tail.held : 0;
  }

  readonly take = (text: string): SeamStep => {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    this.#taken += text.length;
    const rest = this.#comparison === undefined ? this.#unechoed(text) : this.#compared(this.#comparison, text);
    return typeof rest === "string" ? this.#passed(this.#guard.take(this.#tail.take(rest))) : rest;
  };

  readonly close = (): SeamStep => this.#end("not_text");

  readonly stop = (): SeamStep => this.#end("stopped");

  #failed(fault: SeamFault): SeamStep {
    this.#fault = fault;
    return { type: "unproven", fault };
  }

  /** What stands behind the seam of a piece of text, or what there is to say of it. */
  #compared(comparison: Comparison, text: string): string | SeamStep {
    const compared = comparison.take(text);
    if (compared.type === "wait") return compared;
    if (compared.type === "differs") return this.#failed("differs");
    this.#comparison = undefined;
    return compared.rest;
  }

  #unechoed(text: string): string | SeamStep {
    const echo = this.#echo;
    if (echo === undefined) return text;
    const compared = echo.take(text);
    if (compared.type === "wait") return compared;
    if (compared.type === "differs" && this.#echoes) return this.#failed("differs");
    this.#echo = undefined;
    if (compared.type === "differs") return echo.read;
    this.#tail = this.#echoedTail;
    return compared.rest;
  }

  #end(fault: SeamFault): SeamStep {
    if (this.#fault !== undefined) return { type: "unproven", fault: this.#fault };
    // the white space at the end was shown, and a provider may leave it out where nothing follows it
    if (this.#comparison?.complete === false) return this.#failed(fault);
    if (this.#echo !== undefined && this.#echoes) return this.#failed(fault);
    const read = this.#echo?.read ?? "";
    this.#comparison = undefined;
    this.#echo = undefined;
    const before = this.#guard.take(this.#tail.take(read) + this.#tail.end());
    if (before.repeats) return this.#passed(before);
    const { repeats, text } = this.#guard.end();
    return this.#passed({ repeats, text: before.text + text });
  }

  /**
   * A late repetition is said with the next call, where text in front of it may still leave: how the new text was cut must
   * make no difference.
   */
  #passed({ repeats, text }: Guarded): SeamStep {
    if (repeats) this.#fault = "repeats";
    this.#left += text.length;
    return repeats && text === "" ? { type: "unproven", fault: "repeats" } : { type: "joined", text };
  }
}

/**
 * Begins to verify a continuation.
 *
 * @param start what was shown, and what the request asked for
 */
export const make = (start: SeamStart): SeamVerifier => new Following(start);
