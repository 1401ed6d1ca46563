/**
 * Folds what is observed of an attempt into its facts.
 *
 * The fold runs on the hot path, once per part and once per hand-over: it is mutable inside, does no schema work, and
 * allocates nothing for a text delta after the first. Facts only grow (law L1); `snapshot` gives them as a value.
 */
import type { AttemptFacts, Counters, Delivery, Progress, Shown, ToolPhase, ToolRow } from "../domain/AttemptFacts.ts";
import { callKey } from "../domain/AttemptFacts.ts";
import { isMalformed } from "../domain/Failure.ts";
import { label, toolRowsMax } from "../domain/Limits.ts";
import type { CallSignal, Observation, Usage } from "../domain/Observation.ts";
import type { Executor, SideEffects, ToolEffect } from "../domain/SideEffects.ts";
import { withState } from "../domain/SideEffects.ts";
import { Boundaries } from "./Boundaries.ts";
import type { FactsFold, FactsOptions } from "./FactsFold.ts";
import { Ledger } from "./ToolRows.ts";
import { highest } from "./Usage.ts";

export type { FactsFold, FactsOptions } from "./FactsFold.ts";
export { atMost, join } from "./Growth.ts";

/** Starts the facts of one attempt. */
export const make = (options: FactsOptions): FactsFold => new Fold(options);

const progressRank: Ranks = { none: 0, started: 1, reasoning: 2, output: 3 };
const shownRank: Ranks = { nothing: 0, reasoning: 1, text: 2 };
const deliveryRank: Ranks = { not_sent: 0, ambiguous: 1, accepted: 2 };

interface Ranks {
  readonly [word: string]: number;
}

/** Above every known word: a foreign one is kept, so that a decision sees that it does not understand it. */
const foreignRank = 4;

const outranks = (ranks: Ranks, a: string, b: string): boolean => (ranks[a] ?? foreignRank) > (ranks[b] ?? foreignRank);

/** Shared by all attempts of requests that declare no tool. */
const undeclared = new Boundaries([]);

const noRows: ReadonlyArray<ToolRow> = [];

class Fold implements FactsFold {
  readonly #discardable: boolean;
  readonly #guarded: boolean;
  readonly #boundaries: Boundaries;
  readonly #ledger = new Ledger();
  /** Calls whose beginning was seen, at most `toolRowsMax`. */
  #begun: Set<string> | undefined;
  #delivery: Delivery = "not_sent";
  #progress: Progress = "none";
  #shown: Shown = "nothing";
  /** The one counter that text, calls and settles are ordered by. */
  #tick = 0;
  #textThrough = 0;
  #callThrough = 0;
  #settledThrough = 0;
  #terminal = false;
  /** What the provider may have changed unseen; it grows where the provider begins to keep something. */
  #sideEffects: SideEffects | null;
  #stored = false;
  /** An error event came: no later marker counts (law L5). */
  #failed = false;
  #parts = 0;
  #bytes = 0;
  #characters = 0;
  #usage: Usage | undefined;
  #suspendedMs = 0;
  #tools: ReadonlyArray<ToolRow> | undefined;
  #snapshot: AttemptFacts | undefined;

  constructor(options: FactsOptions) {
    this.#sideEffects = options.sideEffects;
    this.#discardable = options.discardable;
    this.#guarded = options.guarded;
    this.#boundaries = options.boundaries.length === 0 ? undeclared : new Boundaries(options.boundaries);
    if (options.from !== undefined) this.#restore(options.from);
  }

  decoded(o: Observation): boolean {
    this.#snapshot = undefined;
    this.#parts += 1;
    this.#characters += o.characters;
    if (o.usage !== undefined) this.#use(o.usage);
    let changed = this.delivery("accepted");
    if (o.progress !== this.#progress && outranks(progressRank, o.progress, this.#progress)) {
      this.#progress = o.progress;
      changed = true;
    }
    if (o.calls.length > 0) changed = this.#decodedCalls(o.calls) || changed;
    if (o.stores === true && !this.#stored) {
      this.#stored = true;
      this.#sideEffects = withState(this.#sideEffects);
      changed = true;
    }
    if (o.failure !== undefined && !isMalformed(o.failure)) this.#failed = true;
    if (o.terminal && !this.#failed && !this.#terminal) {
      this.#terminal = true;
      changed = true;
    }
    return changed;
  }

  handedOver(o: Observation): boolean {
    const shows = this.#shows(o);
    let changed = false;
    if (shows === "text") {
      changed = this.#textAt();
      if (o.calls.length > 0 && o.text_before_calls === true && this.#beginsCall(o.calls))
        this.#callThrough = this.#next();
    }
    if (shows !== this.#shown && outranks(shownRank, shows, this.#shown)) {
      this.#shown = shows;
      changed = true;
    }
    if (o.calls.length > 0) {
      for (const signal of o.calls) {
        if (counted(signal) && this.#raise(this.#handedRow(signal))) changed = true;
      }
    }
    if (changed) this.#snapshot = undefined;
    return changed;
  }

  passed(parts: ReadonlyArray<Observation>): void {
    for (const o of parts) {
      if (this.#repeats(o)) {
        this.#parts += 1;
        this.#characters += o.characters;
      } else {
        this.decoded(o);
        this.handedOver(o);
      }
    }
    this.#snapshot = undefined;
  }

  wouldShow(o: Observation): boolean {
    const shows = this.#shows(o);
    if (shows !== this.#shown && outranks(shownRank, shows, this.#shown)) return true;
    if (o.stores === true && !this.#stored) return true;
    // Text behind a call or a settle is a transition too: what was closed by the call is open again (row 18).
    if (shows === "text" && this.#textThrough !== this.#tick) return true;
    if (o.calls.length === 0) return false;
    for (const signal of o.calls) {
      if (counted(signal) && this.#ledger.wouldRaise(this.#handedRow(signal))) return true;
      // Counted when decoded, but a caller must not know of it before the record does.
      if (signal.executor === "provider" && this.#ledger.wouldRaise(this.#providerRow(signal))) return true;
    }
    return false;
  }

  delivery(d: Delivery): boolean {
    if (d === this.#delivery || !outranks(deliveryRank, d, this.#delivery)) return false;
    this.#delivery = d;
    this.#snapshot = undefined;
    return true;
  }

  bytes(n: number): void {
    this.#bytes += n;
    this.#snapshot = undefined;
  }

  dispatched(call: string, tool = ""): boolean {
    return this.#raise(this.#row(call, tool, "runtime", "dispatched"));
  }

  outcomeUnknown(call: string, tool = ""): boolean {
    return this.#raise(this.#row(call, tool, "runtime", "outcome_unknown"));
  }

  settled(call: string, tool = ""): boolean {
    const changed = this.#raise(this.#row(call, tool, "runtime", "settled"));
    if (changed) this.#settledThrough = this.#next();
    return changed;
  }

  suspended(ms: number): void {
    this.#suspendedMs += ms;
    this.#snapshot = undefined;
  }

  snapshot(): AttemptFacts {
    this.#tools ??= this.#ledger.rows.length === 0 ? noRows : this.#ledger.rows.slice();
    this.#snapshot ??= {
      delivery: this.#delivery,
      progress: this.#progress,
      shown: this.#shown,
      text_through: this.#textThrough,
      call_through: this.#callThrough,
      settled_through: this.#settledThrough,
      tools: this.#tools,
      terminal_seen: this.#terminal,
      side_effects: this.#sideEffects,
      counters: this.#counters(),
    };
    return this.#snapshot;
  }

  /** Whether a part adds to the counters and to nothing else, decoded and handed over: one more delta of the same block. */
  #repeats(o: Observation): boolean {
    return (
      o.progress === this.#progress &&
      o.shows === this.#shown &&
      o.calls.length === 0 &&
      !o.terminal &&
      o.failure === undefined &&
      o.usage === undefined &&
      o.stores !== true &&
      this.#delivery === "accepted" &&
      (this.#shown === "text" ? this.#textThrough === this.#tick : this.#discardable)
    );
  }

  #restore(from: AttemptFacts): void {
    this.#delivery = from.delivery;
    this.#progress = from.progress;
    this.#shown = from.shown;
    this.#textThrough = from.text_through;
    this.#callThrough = from.call_through;
    this.#settledThrough = from.settled_through;
    this.#tick = Math.max(from.text_through, from.call_through, from.settled_through);
    this.#terminal = from.terminal_seen;
    this.#parts = from.counters.parts;
    this.#bytes = from.counters.bytes;
    this.#characters = from.counters.characters;
    this.#suspendedMs = from.counters.suspended_ms ?? 0;
    for (const row of from.tools) this.#ledger.raise(row);
  }

  #shows(o: Observation): Shown {
    return this.#discardable || o.quiet ? o.shows : "text";
  }

  /** The beginning of any call, the rows of calls that the provider runs, and runtime calls that say they have run. */
  #decodedCalls(signals: ReadonlyArray<CallSignal>): boolean {
    let changed = false;
    for (const signal of signals) {
      const call = callKey(signal.choice, signal.ordinal);
      if (this.#begins(signal, call)) {
        this.#callThrough = this.#next();
        changed = true;
      }
      if (signal.executor === "provider") {
        changed = this.#raise(this.#providerRow(signal)) || changed;
      } else if (signal.phase === "settled") {
        changed = this.settled(call, signal.tool) || changed;
      }
    }
    return changed;
  }

  /** Past the bound only a signal that says so is taken for a beginning: a call that began late permits more (row 18). */
  #begins(signal: CallSignal, call: string): boolean {
    this.#begun ??= new Set();
    if (this.#begun.has(call)) return false;
    if (this.#begun.size >= toolRowsMax) return signal.phase === "input_started";
    this.#begun.add(call);
    return true;
  }

  /** Whether a call of this part has its beginning in it, as far as its rows tell before it is handed over. */
  #beginsCall(signals: ReadonlyArray<CallSignal>): boolean {
    return signals.some(
      (signal) =>
        signal.phase === "input_started" ||
        (counted(signal) && this.#ledger.find("runtime", callKey(signal.choice, signal.ordinal)) === undefined),
    );
  }

  #providerRow(signal: CallSignal): ToolRow {
    const phase = signal.phase === "ready" ? "input_complete" : signal.phase;
    return this.#row(callKey(signal.choice, signal.ordinal), signal.tool ?? "", "provider", phase);
  }

  #handedRow(signal: CallSignal): ToolRow {
    const tool = signal.tool ?? "";
    return this.#row(callKey(signal.choice, signal.ordinal), tool, "runtime", this.#handedPhase(signal, tool));
  }

  /** The guard proves nothing of a tool that nobody declared: whoever is handed such a call may run it. */
  #handedPhase(signal: CallSignal, tool: string): ToolPhase {
    if (signal.phase !== "ready") return signal.phase;
    return this.#guarded && !this.#declared(signal, tool) ? "dispatched" : "handed_over";
  }

  /** A `ready` signal may leave out the name that an earlier one gave. */
  #declared(signal: CallSignal, tool: string): boolean {
    const name = tool === "" ? this.#ledger.find("runtime", callKey(signal.choice, signal.ordinal))?.tool : label(tool);
    return name !== undefined && this.#boundaries.declares(name);
  }

  #row(call: string, tool: string, executor: Executor, phase: ToolPhase): ToolRow {
    const name = label(tool);
    return { call: label(call), tool: name, executor, effect: this.#effect(executor, call, name), phase };
  }

  /** A signal without a name adds nothing to the effect of a call that is known. */
  #effect(executor: Executor, call: string, name: string): ToolEffect {
    if (name !== "") return this.#boundaries.effectOf(executor, name);
    return this.#ledger.find(executor, label(call))?.effect ?? "unknown";
  }

  #raise(row: ToolRow): boolean {
    if (!this.#ledger.raise(row)) return false;
    this.#tools = undefined;
    this.#snapshot = undefined;
    return true;
  }

  #next(): number {
    this.#tick += 1;
    this.#snapshot = undefined;
    return this.#tick;
  }

  /** Returns whether something had happened since the last text. */
  #textAt(): boolean {
    const behind = this.#textThrough !== this.#tick;
    if (this.#textThrough === 0 || behind) this.#textThrough = this.#next();
    return behind;
  }

  #use(usage: Usage): void {
    this.#usage = highest(this.#usage, usage);
  }

  #counters(): Counters {
    return {
      parts: this.#parts,
      bytes: Math.min(this.#bytes, Number.MAX_SAFE_INTEGER),
      characters: Math.min(this.#characters, Number.MAX_SAFE_INTEGER),
      ...this.#usage,
      ...(this.#ledger.folded === 0 ? {} : { rows_folded: this.#ledger.folded }),
      ...(this.#suspendedMs === 0 ? {} : { suspended_ms: this.#suspendedMs }),
    };
  }
}

/** Runtime calls are counted when handed over; their settles when they happen. */
const counted = (
  signal: CallSignal,
): signal is CallSignal & { readonly phase: "input_started" | "input_complete" | "ready" } =>
  signal.executor === "runtime" && signal.phase !== "settled";
