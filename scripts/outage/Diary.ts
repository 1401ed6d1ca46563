/**
 * The observations of the world and its agents, for the judge. It shares no code with the library under test.
 */
import type { Limit } from "./Weather.ts";

/** The provider path, key and model of a request. Requests that agree in all three share a limit. */
export interface Asker {
  readonly path: number;
  readonly key: number;
  readonly model: number;
}

/** A request that was written to the wire. Times are virtual, in milliseconds. */
export interface SentRequest extends Asker {
  readonly at: number;
  /** The start of its attempt. The connect lies between this and `at`. */
  readonly from: number;
  readonly run: string;
  /** True if it reached the provider. A request written into a black hole does not. */
  reached: boolean;
  /** True if its response head was read. */
  answered: boolean;
  /** True if the provider refused it. */
  refused: boolean;
  /** The fate of its stream after the head: intact, broken, or abandoned because nothing more arrived. */
  cut: "no" | "broke" | "silent";
}

/** A refusal with a retry time, after its head was read. */
export interface HeardRefusal extends Asker {
  readonly kind: Limit["kind"];
  readonly at: number;
  readonly until: number;
}

/** A question, and what its run had delivered before it. */
export interface AskedQuestion {
  readonly at: number;
  readonly rule: string;
  /** True if something was delivered that only a person may withdraw: text, or anything if the caller cannot discard. */
  readonly shown: boolean;
  /** True if reasoning of the failed response was delivered. */
  readonly reasoned: boolean;
  readonly answer: string;
}

/** The retries that a run may spend without a person. */
export interface Spendable {
  /** Maximum retries after a refusal. */
  readonly refusals: number;
  /** Maximum retries after any other failure. */
  readonly breaks: number;
  /** Maximum retries of all runs of a group together. */
  readonly group?: { readonly id: string; readonly retries: number };
}

/** The default limits of a run. */
export const spendable: Spendable = { refusals: 3, breaks: 3 };

/** One run of an agent. */
export interface RunEntry extends Asker {
  readonly run: string;
  readonly from: number;
  readonly style: string;
  readonly requests: Array<SentRequest>;
  readonly questions: Array<AskedQuestion>;
  readonly may: Spendable;
  /** Numbers of retry decisions, of attempts that requested a connection, and of moments at which the run reported a wait. */
  decisions: number;
  connects: number;
  waits: number;
  /** The time at which it started to wait for its path; undefined if it is not waiting. */
  waitsFrom: number | undefined;
  to: number | undefined;
  end: "open" | "whole" | "asked" | "lost";
  /** A description of its end, for a person. */
  why: string;
  /** The rule that ended it, if one did. */
  rule: string | undefined;
  /** Serial numbers that its caller kept more than once, and those that are missing. */
  twice: ReadonlyArray<string>;
  missing: ReadonlyArray<string>;
}

/** The return of a path after an outage. */
export interface PathReturn {
  readonly path: number;
  readonly at: number;
  /** Duration of the outage, in milliseconds, and its kind. */
  readonly awayMs: number;
  readonly kind: string;
  /** The runs that were waiting for the path. */
  readonly waiting: ReadonlyArray<RunEntry>;
}

/** All observations of a play. */
export class Diary {
  readonly runs = new Map<string, RunEntry>();
  readonly refusals: Array<HeardRefusal> = [];
  readonly returns: Array<PathReturn> = [];
  /** The times at which paths went down. */
  readonly departures: Array<{ readonly path: number; readonly at: number }> = [];
  /** The times at which the process slept, and the durations. */
  readonly sleeps: Array<{ readonly at: number; readonly ms: number }> = [];
  /** Number of times that each effect happened. */
  readonly effects = new Map<string, number>();
  probes = 0;
  /** Paths that cannot be probed. */
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
