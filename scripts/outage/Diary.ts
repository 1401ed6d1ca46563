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
  /** The provider refused it. */
  refused: boolean;
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

/** How much a run may spend without a person. */
export interface Spendable {
  /** Requests that are sent again behind a refusal. */
  readonly refusals: number;
  /** Requests that are sent again behind anything else. */
  readonly breaks: number;
  /** What all runs of a group may send again together. */
  readonly group?: { readonly id: string; readonly retries: number };
}

/** What a run may spend that names nothing. */
export const spendable: Spendable = { refusals: 3, breaks: 3 };

/** One run of an agent. */
export interface RunEntry extends Asker {
  readonly run: string;
  readonly from: number;
  readonly style: string;
  readonly requests: Array<SentRequest>;
  readonly questions: Array<AskedQuestion>;
  readonly may: Spendable;
  /** Decisions to send it again, attempts that asked for a connection, and moments at which it said that it waits. */
  decisions: number;
  connects: number;
  waits: number;
  /** When it began to wait for its path, while it does. */
  waitsFrom: number | undefined;
  to: number | undefined;
  end: "open" | "whole" | "asked" | "lost";
  /** How it ended, for a person. */
  why: string;
  /** The rule that ended it, where one did. */
  rule: string | undefined;
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
  /** Paths that nobody can probe. */
  readonly unprobed = new Set<number>();

  begin(run: string, { key, model, path }: Asker, style: string, at: number, may: Spendable = spendable): RunEntry {
    const entry: RunEntry = {
      ...{ run, path, key, model, style, from: at, may },
      ...{ requests: [], questions: [], waitsFrom: undefined, to: undefined },
      ...{ decisions: 0, connects: 0, waits: 0 },
      ...{ end: "open", why: "", rule: undefined, twice: [], missing: [] },
    };
    this.runs.set(run, entry);
    return entry;
  }

  effect(key: string): void {
    this.effects.set(key, (this.effects.get(key) ?? 0) + 1);
  }
}
