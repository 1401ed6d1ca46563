/**
 * Draws what an agent does: text as it comes, and a line for each tool call.
 *
 * On a terminal withdrawn text is erased and a line says so in its place; a pipe cannot erase text, so a line says which text
 * no longer counts.
 */
import { styleText } from "node:util";
import type { AgentEvent, Watcher } from "../AgentEvent.ts";
import { harmless, oneLine, wrapped } from "../tools/PlainText.ts";
import * as Cursor from "./Cursor.ts";

/** The terminal or pipe that a view draws on. */
export interface TerminalOutput {
  readonly write: (text: string) => void;
  /** Whether it is a terminal, where text can be erased. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  /** Whether words are coloured. */
  readonly colours: boolean;
}

/** Most of a withdrawn text that is quoted, in characters. */
const quotedMax = 60;

/** Longest message of a recovery, in characters. */
const messageMax = 400;

/** Most pieces that are kept to be erased; earlier ones have left the screen. */
const piecesMax = 20_000;

interface Piece {
  readonly text: string;
  /** The part that it shows; undefined for the view's own lines. */
  readonly of?: { readonly attempt: number; readonly ordinal: number };
}

type Tone = "dim" | "red" | "green" | "yellow" | "bold" | "cyan";

/** Draws the events of an agent. */
export class TerminalView {
  readonly #output: () => TerminalOutput;
  /** The pieces that this step has put on the screen, from its first line. */
  #pieces: Array<Piece> = [];
  #atLineStart = true;
  #reasoning = false;
  /** An earlier process has shown parts of this run, on another screen. */
  #before = false;

  /** @param output read each time, because a terminal may be resized */
  constructor(output: () => TerminalOutput) {
    this.#output = output;
  }

  readonly watch: Watcher = (event) => {
    switch (event._tag) {
      case "StepStarted":
        this.#fresh();
        this.#before = event.resumed;
        if (event.resumed) this.line(`↻ going on with run ${event.run} of an earlier process`, "dim");
        return;
      case "Waiting":
        return this.line("· the process before still holds the run; waiting for its lease to end", "dim");
      case "Text":
      case "Reasoning":
        return this.#says(event);
      case "Withdrawn":
        return this.#withdraw(event.attempt, event.keep_through);
      case "Retrying":
        return this.line(`↻ ${oneLine(event.message, messageMax)}`, "yellow");
      case "Judged":
        return this.line(`· ${event.tool}: ${event.verdict === "it_ran" ? "it ran" : "it did not run"}`, "dim");
      case "ToolStarted":
        return this.#raw(`${this.#ink("cyan", "▸")} ${event.title}`);
      case "ToolEnded":
        return this.#raw(this.#result(event));
      case "ToolRefused":
        return this.line(`  ✗ ${oneLine(event.message)}`, "red");
      case "TurnEnded":
        return this.#ended(event);
      default:
        return;
    }
  };

  /** Writes a line of its own, broken between words. */
  readonly line = (text: string, tone?: Tone): void => {
    const { columns, isTerminal } = this.#output();
    const indent = /^(\s*(\d+ +\w+ +|\S ))?/.exec(text)?.[0].length ?? 0;
    const fitting = isTerminal ? wrapped(text, columns - 1, Math.min(indent, columns / 2)) : text;
    this.#raw(tone === undefined ? fitting : this.#ink(tone, fitting));
  };

  /** Writes without a line end, so that typed text stands behind it. */
  readonly prompt = (text: string): void => this.#put({ text });

  /** A person has typed a line, and the terminal has shown it. */
  readonly typed = (text: string): void => {
    const { isTerminal } = this.#output();
    if (isTerminal) this.#keep({ text: `${text}\n` });
    else this.#put({ text: "\n" });
  };

  #raw(text: string): void {
    if (!this.#atLineStart) this.#put({ text: "\n" });
    this.#put({ text: `${text}\n` });
    this.#reasoning = false;
  }

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
    // A question has said already what happened.
    const why = how === "parked" ? "" : `: ${oneLine(message, messageMax)}`;
    if (how !== "done") this.line(`${words[how]}${why}`, how === "parked" ? "yellow" : "red");
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
    if (quote === "" && this.#before) this.line("⤺ withdrawn: what the earlier process had shown of it", "dim");
    if (quote === "") return;
    const said = `⤺ withdrawn: “${quote}”`;
    const { columns, isTerminal, rows, write } = this.#output();
    const kept = this.#pieces.slice(0, first);
    const rest = this.#pieces.slice(first).filter((piece) => !gone(piece));
    const top = Cursor.after(textOf(kept), { row: 0, column: 0 }, columns);
    const now = Cursor.after(textOf(this.#pieces), { row: 0, column: 0 }, columns);
    const up = now.row - top.row;
    if (!isTerminal || up >= rows - 1) {
      this.line(said, "dim");
      return;
    }
    write(`${up > 0 ? `\u001b[${up}A` : ""}\r${top.column > 0 ? `\u001b[${top.column}C` : ""}\u001b[J`);
    this.#pieces = kept;
    this.#atLineStart = top.column === 0;
    this.line(said, "dim");
    for (const piece of rest) if (!(piece.text === "\n" && this.#atLineStart)) this.#put(piece);
  }

  #put(piece: Piece): void {
    this.#output().write(piece.text);
    this.#keep(piece);
  }

  #keep(piece: Piece): void {
    this.#pieces.push(piece);
    if (this.#pieces.length > piecesMax) this.#pieces = this.#pieces.slice(piecesMax / 2);
    this.#atLineStart = piece.text.endsWith("\n") || (piece.text === "" && this.#atLineStart);
  }

  #ink(tone: Tone, text: string): string {
    return this.#output().colours ? styleText(tone, text, { validateStream: false }) : text;
  }
}

const words = {
  stopped: "stopped",
  parked: "the question stays open",
  cancelled: "cancelled",
  steps: "stopped",
} as const;

const textOf = (pieces: ReadonlyArray<Piece>): string => pieces.map((piece) => piece.text).join("");
