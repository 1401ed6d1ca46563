/**
 * Draws what an agent does: text as it comes, a line a tool call, and what was withdrawn taken off the screen again.
 *
 * On a terminal withdrawn text is erased and a line says so in its place; in a pipe nothing can be taken back, and a line says
 * what no longer counts.
 */
import { styleText } from "node:util";
import type { AgentEvent, Watcher } from "./AgentEvent.ts";
import * as Canvas from "./Canvas.ts";
import { harmless, oneLine } from "./Line.ts";

/** What is drawn on. */
export interface Paper {
  readonly write: (text: string) => void;
  /** A terminal: what was written can be erased. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  /** Whether words are coloured. */
  readonly colours: boolean;
}

/** Most of a withdrawn text that is quoted, in characters. */
const quotedMax = 60;

/** Most pieces that can still be erased; what came before them has left the screen. */
const piecesMax = 20_000;

interface Piece {
  readonly text: string;
  /** The part that it shows; undefined for lines of our own. */
  readonly of?: { readonly attempt: number; readonly ordinal: number };
}

type Tone = "dim" | "red" | "green" | "yellow" | "bold" | "cyan";

/** Draws on a paper. */
export class TerminalView {
  readonly #paper: () => Paper;
  /** What this step has put on the screen, from its first line. */
  #pieces: Array<Piece> = [];
  #atLineStart = true;
  #reasoning = false;

  /** @param paper asked each time: a terminal may be resized */
  constructor(paper: () => Paper) {
    this.#paper = paper;
  }

  readonly watch: Watcher = (event) => {
    switch (event._tag) {
      case "StepStarted":
        this.#fresh();
        if (event.resumed) this.line(this.#ink("dim", `↻ going on with run ${event.run} of an earlier process`));
        return;
      case "Waiting":
        return this.line(this.#ink("dim", "· the process before still holds the run; waiting for its lease to end"));
      case "Text":
      case "Reasoning":
        return this.#says(event);
      case "Withdrawn":
        return this.#withdraw(event.attempt, event.keep_through);
      case "Retrying":
        return this.line(this.#ink("yellow", `↻ ${oneLine(event.message, 400)}`));
      case "Judged":
        return this.line(
          this.#ink("dim", `· ${event.tool}: ${event.verdict === "it_ran" ? "it ran" : "it did not run"}`),
        );
      case "ToolStarted":
        return this.line(`${this.#ink("cyan", "▸")} ${event.title}`);
      case "ToolEnded":
        return this.line(this.#result(event));
      case "ToolRefused":
        return this.line(this.#ink("red", `  ✗ not run: ${oneLine(event.message)}`));
      case "TurnEnded":
        return this.#ended(event);
      default:
        return;
    }
  };

  /** Writes a line of its own. */
  readonly line = (text: string): void => {
    if (!this.#atLineStart) this.#put({ text: "\n" });
    this.#put({ text: `${text}\n` });
    this.#reasoning = false;
  };

  /** A person typed something, or a line was written by others: nothing above it can be erased any more. */
  readonly settle = (): void => {
    this.#pieces = [];
    this.#atLineStart = true;
  };

  #fresh(): void {
    if (!this.#atLineStart) this.#put({ text: "\n" });
    this.#pieces = [];
  }

  #says({ _tag, attempt, ordinal, text }: Extract<AgentEvent, { readonly _tag: "Text" | "Reasoning" }>): void {
    if (text === "") return;
    const reasoning = _tag === "Reasoning";
    if (reasoning !== this.#reasoning && !this.#atLineStart) this.#put({ text: "\n", of: { attempt, ordinal } });
    this.#reasoning = reasoning;
    const plain = harmless(text);
    this.#put({ text: reasoning ? this.#ink("dim", plain) : plain, of: { attempt, ordinal } });
  }

  #result({ failed, output }: Extract<AgentEvent, { readonly _tag: "ToolEnded" }>): string {
    const lines = output.split("\n");
    const more = lines.length > 1 ? this.#ink("dim", ` (+${lines.length - 1} lines)`) : "";
    return `  ${this.#ink(failed ? "red" : "green", failed ? "✗" : "✓")} ${oneLine(lines[0] ?? "")}${more}`;
  }

  #ended({ how, message }: Extract<AgentEvent, { readonly _tag: "TurnEnded" }>): void {
    if (!this.#atLineStart) this.#put({ text: "\n" });
    if (how !== "done")
      this.line(this.#ink(how === "parked" ? "yellow" : "red", `${words[how]}: ${oneLine(message, 400)}`));
    this.#pieces = [];
  }

  #withdraw(attempt: number, keepThrough: number): void {
    const gone = (piece: Piece) => piece.of?.attempt === attempt && piece.of.ordinal > keepThrough;
    const first = this.#pieces.findIndex(gone);
    const text = this.#pieces
      .filter(gone)
      .map((piece) => piece.text)
      .join("");
    const quote = oneLine(text, quotedMax);
    if (quote === "") return;
    const said = this.#ink("dim", `⤺ withdrawn: “${quote}”`);
    const { columns, isTerminal, rows, write } = this.#paper();
    const kept = this.#pieces.slice(0, first);
    const rest = this.#pieces.slice(first).filter((piece) => !gone(piece));
    const top = Canvas.after(textOf(kept), { row: 0, column: 0 }, columns);
    const now = Canvas.after(textOf(this.#pieces), { row: 0, column: 0 }, columns);
    const up = now.row - top.row;
    if (!isTerminal || up >= rows - 1) {
      this.line(said);
      return;
    }
    write(`${up > 0 ? `\u001b[${up}A` : ""}\r${top.column > 0 ? `\u001b[${top.column}C` : ""}\u001b[J`);
    this.#pieces = kept;
    this.#atLineStart = top.column === 0;
    this.line(said);
    for (const piece of rest) if (!(piece.text === "\n" && this.#atLineStart)) this.#put(piece);
  }

  #put(piece: Piece): void {
    this.#paper().write(piece.text);
    this.#pieces.push(piece);
    if (this.#pieces.length > piecesMax) this.#pieces = this.#pieces.slice(piecesMax / 2);
    this.#atLineStart = piece.text.endsWith("\n") || (piece.text === "" && this.#atLineStart);
  }

  #ink(tone: Tone, text: string): string {
    return this.#paper().colours ? styleText(tone, text, { validateStream: false }) : text;
  }
}

const words = {
  stopped: "stopped",
  parked: "a question is open",
  cancelled: "cancelled",
  steps: "stopped",
} as const;

const textOf = (pieces: ReadonlyArray<Piece>): string => pieces.map((piece) => piece.text).join("");
