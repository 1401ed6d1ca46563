/**
 * A verifier of seams in the plainest words: the new text has to begin with the anchor, letter by letter. White space behind it
 * waits for what follows, and with `holds` as many characters besides, as if they might become a repetition.
 */
import type { SeamStep, SeamVerifier } from "../../../src/seam/SeamVerifier.ts";

/** Makes one for an anchor. */
export const plainVerifier = (anchor: string, holds = 0): SeamVerifier => new PlainVerifier(anchor, holds);

class PlainVerifier implements SeamVerifier {
  cut = 0;
  readonly #anchor: string;
  readonly #holds: number;
  #joined = false;
  #text = "";

  constructor(anchor: string, holds: number) {
    this.#anchor = anchor;
    this.#holds = holds;
  }

  readonly take = (text: string): SeamStep => {
    this.#text += text;
    if (!this.#joined) {
      const blank = this.#text.length - this.#text.trimStart().length;
      const said = this.#text.slice(blank);
      if (said.length <= this.#anchor.length && this.#anchor.startsWith(said)) return { type: "wait" };
      if (!said.startsWith(this.#anchor)) return { type: "unproven", fault: "differs" };
      this.#joins(blank);
    }
    const stays = Math.max(this.#holds, this.#text.length - this.#text.trimEnd().length);
    return this.#out(Math.max(0, this.#text.length - stays));
  };

  readonly close = (): SeamStep => this.#ends("not_text");
  readonly stop = (): SeamStep => this.#ends("stopped");

  #ends(fault: "not_text" | "stopped"): SeamStep {
    const blank = this.#text.length - this.#text.trimStart().length;
    if (!this.#joined && this.#text.slice(blank) !== this.#anchor) return { type: "unproven", fault };
    if (!this.#joined) this.#joins(blank);
    return this.#out(this.#text.length);
  }

  #joins(blank: number): void {
    this.#joined = true;
    this.cut = blank + this.#anchor.length;
    this.#text = this.#text.slice(this.cut);
  }

  #out(length: number): SeamStep {
    const text = this.#text.slice(0, length);
    this.#text = this.#text.slice(length);
    return { type: "joined", text };
  }
}
