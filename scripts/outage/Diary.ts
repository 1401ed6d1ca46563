/**
 * Holds what the world and its agents saw, for the judge: it shares nothing with the library that is judged.
 */
import type { Limit } from "./Weather.ts";

/** Whose requests share a limit. */
export interface Asker {
  readonly path: number;
  readonly key: number;
  readonly model: number;
}

/** A request as it was written to the wire. Times are virtual, in milliseconds. */
export interface SentRequest extends Asker {
  readonly at: number;
  /** When it was let go: before that lies its connect. */
  readonly from: number;
  readonly run: string;
  /** It came to the provider: what is written into a black hole does not. */
  reached: boolean;
  /** Its response head was read. */
  answered: boolean;
  /** Its stream broke behind that head, or was given up there because nothing came any more. */
  cut: "no" | "broke" | "silent";
}

/** A refusal that said how long, once its head was read. */
export interface HeardRefusal extends Asker {
  readonly kind: Limit["kind"];
  readonly at: number;
  readonly until: number;
}

/** A question, with what its run had seen until then. */
export interface AskedQuestion {
  readonly at: number;
  readonly rule: string;
  /** Something was handed over that its caller cannot take back without a person: text, or anything where it discards nothing. */
  readonly shown: boolean;
  /** Reasoning of the failed response was handed over. */
  readonly reasoned: boolean;
  readonly answer: string;
}

/** One run of an agent. */
export interface RunEntry extends Asker {
  readonly run: string;
  readonly from: number;
  readonly style: string;
  readonly requests: Array<SentRequest>;
  readonly questions: Array<AskedQuestion>;
  /** When it began to wait for its path, while it does. */
  waitsFrom: number | undefined;
  to: number | undefined;
  end: "open" | "whole" | "asked" | "lost";
  /** How it ended, for a person. */
  why: string;
  /** Serials that its caller kept more than once, or that are missing. */
  twice: ReadonlyArray<string>;
  missing: ReadonlyArray<string>;
}

/** A path was back. */
export interface PathReturn {
  readonly path: number;
  readonly at: number;
  /** How long it had been away, in milliseconds, and how it was away. */
  readonly awayMs: number;
  readonly kind: string;
  /** The runs that waited for it. */
  readonly waiting: ReadonlyArray<RunEntry>;
}

/** Everything that was seen. */
export class Diary {
  readonly runs = new Map<string, RunEntry>();
  readonly refusals: Array<HeardRefusal> = [];
  readonly returns: Array<PathReturn> = [];
  /** When paths went away. */
  readonly departures: Array<{ readonly path: number; readonly at: number }> = [];
  /** When the process slept, and for how long. */
  readonly sleeps: Array<{ readonly at: number; readonly ms: number }> = [];
  /** How often each effect happened. */
  readonly effects = new Map<string, number>();
  probes = 0;

  begin(run: string, { key, model, path }: Asker, style: string, at: number): RunEntry {
    const entry: RunEntry = {
      ...{ run, path, key, model, style, from: at },
      ...{ requests: [], questions: [], waitsFrom: undefined, to: undefined },
      ...{ end: "open", why: "", twice: [], missing: [] },
    };
    this.runs.set(run, entry);
    return entry;
  }

  effect(key: string): void {
    this.effects.set(key, (this.effects.get(key) ?? 0) + 1);
  }
}
