/** Keeps the part of a response's shown text that a continuation needs: the text since the last block that is not text. */
import { shownCharactersMax } from "./TextSeam.ts";

/** The sent part of a response, as a continuation needs it. */
export interface ShownResponse {
  /** All visible text since the last block that is not text. */
  readonly run: string;
  /** Length of all visible text of the response, in UTF-16 code units. */
  readonly characters: number;
  /** The reason why the response cannot be continued, if the sent part already determines it. */
  readonly refusal: "refusal_shown" | "not_text_last" | "several_choices" | "too_long" | undefined;
}

/** Collects the visible text of one response. Its memory is bounded, because text that is too long to continue is not kept. */
export class ShownText {
  #run = "";
  #characters = 0;
  #choice: number | undefined;
  #several = false;
  #refused = false;
  /** True if content was sent after which no text can continue. */
  #ended = false;
  /** Hosted tools that were called and have not returned a result. */
  readonly #waits = new Set<string>();

  /** Length of all visible text, in UTF-16 code units. */
  get characters(): number {
    return this.#characters;
  }

  say(text: string): void {
    this.#characters += text.length;
    if (this.#run.length < shownCharactersMax) this.#run += text;
  }

  /** Ends the text run at a block that is not text. */
  endRun(): void {
    this.#run = "";
  }

  /** Records that content was shown after which no text can continue. */
  refuse(refusal: "refusal_shown" | "not_text_last"): void {
    if (refusal === "refusal_shown") this.#refused = true;
    else this.#ended = true;
  }

  /**
   * Records a call of a hosted tool, which the provider runs, and whether its result was shown (`settled`). A call without its result
   * cannot be sent back, so it prevents a continuation. Above `hostedMax` open calls, nothing can continue.
   */
  recordHostedTool(key: string, settled: boolean): void {
    this.endRun();
    if (settled) this.#waits.delete(key);
    else if (this.#waits.size < hostedMax) this.#waits.add(key);
    else this.refuse("not_text_last");
  }

  /** Records the choice that an event belongs to. */
  recordChoice(choice: number): void {
    this.#choice ??= choice;
    this.#several ||= this.#choice !== choice;
  }

  /** Index of the choice to which the first event belonged; 0 before that event. */
  get choice(): number {
    return this.#choice ?? 0;
  }

  response(): ShownResponse {
    return { run: this.#run, characters: this.#characters, refusal: this.#findRefusal() };
  }

  #findRefusal(): ShownResponse["refusal"] {
    if (this.#several) return "several_choices";
    if (this.#refused) return "refusal_shown";
    if (this.#characters > shownCharactersMax) return "too_long";
    const isOver = this.#run === "" && this.#characters > 0;
    return this.#ended || isOver || this.#waits.size > 0 ? "not_text_last" : undefined;
  }
}

/** Maximum hosted tools that may wait for their results. */
const hostedMax = 1024;
