/**
 * Collects in one order what every observer of a simulated run saw: the provider, the consumer, the tools, the recorder and the
 * outside world. The judge reads nothing else.
 */
import type { Exit } from "effect";
import type { Observation } from "../../src/domain/Observation.ts";
import type { ToolEffect } from "../../src/domain/SideEffects.ts";
import type { RunRecord, Entry as Written } from "../../src/recorder/RunRecord.ts";
import type { RunEvent, RunInterrupted } from "../../src/runtime/contract/RunEvent.ts";
import type { AttemptContext } from "../../src/runtime/contract/RunOptions.ts";
import type { Outside, Scenario } from "./Scenario.ts";

/** A part of the simulated provider. */
export interface Part {
  /** The response and the number of the part. A repeated request gives the same serials again. Quiet parts have none. */
  readonly serial: string | undefined;
  readonly attempt: number;
  readonly says: Observation;
}

/** The end of a source by itself, with the original error. */
export type SourceEnd =
  | { readonly how: "clean" }
  | { readonly how: "failed" | "died" | "factory_threw"; readonly error: unknown }
  | { readonly how: "interrupted" };

/** A call as its handler knows it. */
export interface HandlerCall {
  readonly tool: string;
  readonly guarded: boolean;
  readonly effect: ToolEffect;
  readonly attempt: number;
  readonly call: string;
  /** True if the handler got a provider's id that other calls share, so the call is ambiguous. */
  readonly vague: boolean;
}

export type Happened =
  | {
      readonly what: "opened";
      readonly context: Pick<AttemptContext, "attempt" | "mode" | "request" | "cursor" | "calls"> &
        Partial<Pick<AttemptContext, "route" | "seam">>;
    }
  | { readonly what: "closed"; readonly attempt: number }
  | { readonly what: "emitted"; readonly attempt: number; readonly parts: ReadonlyArray<Part> }
  | { readonly what: "source_ended"; readonly attempt: number; readonly end: SourceEnd }
  | { readonly what: "seen"; readonly event: RunEvent<Part> }
  | { readonly what: "got"; readonly part: Part }
  | { readonly what: "handler_started"; readonly call: HandlerCall }
  | { readonly what: "tool_returned"; readonly call: HandlerCall; readonly refused: string | undefined }
  | { readonly what: "writing"; readonly entries: ReadonlyArray<Written> }
  | { readonly what: "written"; readonly entries: ReadonlyArray<Written>; readonly ok: boolean }
  /** The run's id is used again. */
  | { readonly what: "again"; readonly phase: "starts" | "refused" | "ends" }
  /** An event of the world: the store goes away, the process freezes, or the calm begins. */
  | { readonly what: "world"; readonly kind: "store_leaves" | "freeze" | "calm" }
  | { readonly what: "outside"; readonly kind: Outside | "layer_closed" }
  | { readonly what: "ended"; readonly exit: Exit.Exit<unknown, RunInterrupted | ConsumerBroke> };

/** An event and its time, in virtual milliseconds from the start. */
export type Entry = Happened & { readonly at: number };

/** The error of a failing consumer. */
export class ConsumerBroke {
  readonly _tag = "ConsumerBroke";
}

/** Everything that is known about one simulated run. */
export interface Trace {
  readonly scenario: Scenario;
  readonly journal: ReadonlyArray<Entry>;
  /** The record that the recorder returns at the end. */
  readonly record: RunRecord | undefined;
  /** True if the consumer's stream ended within the virtual hours that a run may take. */
  readonly ended: boolean;
  /** True if the stream's scope closed, and the processor's with it. */
  readonly closed: boolean;
  /** Spans, log lines and metrics, as JSON. */
  readonly telemetry: ReadonlyArray<string>;
}

export class Journal {
  readonly entries: Array<Entry> = [];
  readonly #now: () => number;
  #listeners: Array<(entry: Entry) => void> = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The virtual time of the journal, in milliseconds from the start. */
  get now(): number {
    return this.#now();
  }

  add(happened: Happened): void {
    const entry = { ...happened, at: this.#now() };
    this.entries.push(entry);
    for (const listener of this.#listeners) listener(entry);
  }

  listen(listener: (entry: Entry) => void): void {
    this.#listeners = [...this.#listeners, listener];
  }
}
