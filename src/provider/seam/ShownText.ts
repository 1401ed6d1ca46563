/**
 * Holds what a client has read of a response, as far as a continuation needs it.
 */
import { type ShownResponse, shownCharactersMax } from "./Splice.ts";

/** Gathers the visible text of one response. Bounded: of a text that is too long to be gone on with no more is kept. */
export class ShownText {
  #run = "";
  #characters = 0;
  #choice: number | undefined;
  #several = false;
  /** What nothing behind it makes good again. */
  #refusal: "refusal_shown" | "not_text_last" | undefined;
  /** Hosted tools that were called and have given no result. */
  readonly #waits = new Set<string>();

  /** Text was shown. */
  say(text: string): void {
    this.#characters += text.length;
    if (this.#run.length < shownCharactersMax) this.#run += text;
  }

  /** A block that is no text stands here: the next text begins a run of its own. */
  breaks(): void {
    this.#run = "";
  }

  /** Something was shown behind which no text goes on. */
  refuse(refusal: "refusal_shown" | "not_text_last"): void {
    this.#refusal ??= refusal;
  }

  /** A hosted tool stands here, and has its result or waits for it. */
  hosted(key: string, settled: boolean): void {
    this.breaks();
    if (settled) this.#waits.delete(key);
    else if (this.#waits.size < hostedMax) this.#waits.add(key);
    else this.refuse("not_text_last");
  }

  /** A choice of the response says something. */
  chooses(choice: number): void {
    this.#choice ??= choice;
    this.#several ||= this.#choice !== choice;
  }

  /** The choice that speaks; 0 before one has. */
  get choice(): number {
    return this.#choice ?? 0;
  }

  shown(): ShownResponse {
    return { run: this.#run, characters: this.#characters, refusal: this.#refused() };
  }

  #refused(): ShownResponse["refusal"] {
    if (this.#several) return "several_choices";
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#characters > shownCharactersMax) return "too_long";
    const isOver = this.#run === "" && this.#characters > 0;
    return isOver || this.#waits.size > 0 ? "not_text_last" : undefined;
  }
}

/** Most hosted tools that may wait for their results. */
const hostedMax = 512;
