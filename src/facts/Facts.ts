/**
 * Folds what is observed of an attempt into its facts.
 *
 * The fold runs on the hot path, once per part and once per hand-over: it is mutable inside, does no schema work, and
 * allocates nothing for a text delta after the first. Facts only grow (law L1); `snapshot` gives them as a value.
 */
import type { AttemptFacts, Counters, Delivery, ToolPhase, ToolRow } from "../domain/AttemptFacts.ts";
import {
  callKey,
  atMost as chainAtMost,
  Delivery as Deliveries,
  fresh,
  Progress,
  Shown,
} from "../domain/AttemptFacts.ts";
import { isMalformed } from "../domain/Failure.ts";
import { label, toolRowsMax } from "../domain/Limits.ts";
import type { CallSignal, Observation, Usage } from "../domain/Observation.ts";
import type { Executor, SideEffects, ToolBoundary, ToolEffect } from "../domain/SideEffects.ts";
import { withState } from "../domain/SideEffects.ts";
import { Boundaries } from "./Boundaries.ts";
import { lastMoment } from "./Growth.ts";
import { Ledger } from "./ToolRows.ts";

export { atMost, join } from "./Growth.ts";

/** What a fold knows of its attempt before it starts. */
export interface FactsOptions {
  /** The boundary before the attempt; `null` = missing. */
  readonly sideEffects: SideEffects | null;
  /** Whether the caller can discard parts that it was handed. If not, every part but a quiet one counts as text. */
  readonly discardable: boolean;
  /** What the request declares of its tools. */
  readonly boundaries: ReadonlyArray<ToolBoundary>;
  /** The proof that every declared runtime tool was made by ToolGuard. */
  readonly guarded: boolean;
  /** The facts of an attempt of an earlier process, which this fold goes on from. */
  readonly from?: AttemptFacts;
}

/** The growing facts of one attempt. All methods are synchronous; none fails. */
export interface FactsFold {
  /** Counts what is known when a part was decoded. Returns whether anything but counters changed. */
  readonly decoded: (o: Observation) => boolean;
  /** Counts what is known when the caller got a part. Returns whether `shown` rose, text came behind a call, or a call's row changed. */
  readonly handedOver: (o: Observation) => boolean;
  /** Counts parts that are decoded and handed over in one step, each in its turn: the way of every part of a reader that waits. */
  readonly passed: (parts: ReadonlyArray<Observation>) => void;
  /**
   * Whether handing the part over raises what must be on record first (law L8): `shown`, text behind a call, a runtime call's
   * row, or the row of a call that the provider runs and that no earlier part told of.
   */
  readonly wouldShow: (o: Observation) => boolean;
  /** The request got at least so far. Returns whether that is news. */
  readonly delivery: (d: Delivery) => boolean;
  /** Counts bytes that were read. */
  readonly bytes: (n: number) => void;
  /**
   * The handler of a runtime call is about to start. Returns whether a row changed.
   *
   * @param call the key, `choice.ordinal`
   * @param tool the tool's name, which a call that the stream has not handed over yet is added with
   */
  readonly dispatched: (call: string, tool?: string) => boolean;
  /** A dispatched call ended, and its outcome is not known. Returns whether a row changed. */
  readonly outcomeUnknown: (call: string, tool?: string) => boolean;
  /** A runtime call has its outcome, good or bad. Returns whether a row changed. */
  readonly settled: (call: string, tool?: string) => boolean;
  /** The clock jumped by so many milliseconds while the attempt ran. */
  readonly suspended: (ms: number) => void;
  /** The facts so far, immutable. The same object until something changes. */
  readonly snapshot: () => AttemptFacts;
}

/** Starts the facts of one attempt. */
export const make = (options: FactsOptions): FactsFold => new Fold(options);

/** Shared by all attempts of requests that declare no tool. */
const undeclared = new Boundaries([]);

const noRows: ReadonlyArray<ToolRow> = [];

type Growing<A> = { -readonly [K in keyof A]: A[K] };

class Fold implements FactsFold {
  readonly #discardable: boolean;
  readonly #guarded: boolean;
  readonly #boundaries: Boundaries;
  /**
   * The facts as they grow, all of them: an earlier process's go on here, and a fact that is new to the table is in every
   * snapshot. `tools` and `counters` alone are kept beside it, in the ledger and in `#counters`.
   */
  readonly #now: Growing<AttemptFacts>;
  readonly #counters: Growing<Counters>;
  readonly #ledger = new Ledger();
  /** Calls whose beginning was seen, at most `toolRowsMax`. */
  #begun: Set<string> | undefined;
  /** The one counter that text, calls and settles are ordered by. */
  #moment: number;
  /** The provider has begun to keep something: what it may have changed unseen grew by that, once. */
  #stored = false;
  /** An error event came: no later marker counts (law L5). */
  #failed = false;
  #tools: ReadonlyArray<ToolRow> | undefined;
  #snapshot: AttemptFacts | undefined;

  constructor({ boundaries, discardable, from = fresh, guarded, sideEffects }: FactsOptions) {
    this.#discardable = discardable;
    this.#guarded = guarded;
    this.#boundaries = boundaries.length === 0 ? undeclared : new Boundaries(boundaries);
    this.#now = { ...from, side_effects: sideEffects };
    this.#counters = { ...from.counters };
    this.#moment = lastMoment(from);
    for (const row of from.tools) this.#ledger.raise(row);
  }

  decoded(o: Observation): boolean {
    this.#snapshot = undefined;
    this.#counters.parts += 1;
    this.#counters.characters += o.characters;
    if (o.usage !== undefined) this.#use(o.usage);
    let changed = this.delivery("accepted");
    if (o.progress !== this.#now.progress && !chainAtMost(Progress, o.progress, this.#now.progress)) {
      this.#now.progress = o.progress;
      changed = true;
    }
    if (o.calls.length > 0) changed = this.#decodedCalls(o.calls) || changed;
    if (o.stores === true && !this.#stored) {
      this.#stored = true;
      this.#now.side_effects = withState(this.#now.side_effects);
      changed = true;
    }
    if (o.failure !== undefined && !isMalformed(o.failure)) this.#failed = true;
    if (o.terminal && !this.#failed && !this.#now.terminal_seen) {
      this.#now.terminal_seen = true;
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
        this.#now.call_through = this.#next();
    }
    if (shows !== this.#now.shown && !chainAtMost(Shown, shows, this.#now.shown)) {
      this.#now.shown = shows;
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
        this.#counters.parts += 1;
        this.#counters.characters += o.characters;
      } else {
        this.decoded(o);
        this.handedOver(o);
      }
    }
    this.#snapshot = undefined;
  }

  wouldShow(o: Observation): boolean {
    const shows = this.#shows(o);
    if (shows !== this.#now.shown && !chainAtMost(Shown, shows, this.#now.shown)) return true;
    if (o.stores === true && !this.#stored) return true;
    // Text behind a call or a settle is a transition too: the text that the call had closed is open again (row 18).
    if (shows === "text" && this.#now.text_through !== this.#moment) return true;
    if (o.calls.length === 0) return false;
    for (const signal of o.calls) {
      if (counted(signal) && this.#ledger.wouldRaise(this.#handedRow(signal))) return true;
      // Counted when decoded, but a caller must not know of it before the record does.
      if (signal.executor === "provider" && this.#ledger.wouldRaise(this.#providerRow(signal))) return true;
    }
    return false;
  }

  delivery(d: Delivery): boolean {
    if (d === this.#now.delivery || chainAtMost(Deliveries, d, this.#now.delivery)) return false;
    this.#now.delivery = d;
    this.#snapshot = undefined;
    return true;
  }

  bytes(n: number): void {
    this.#counters.bytes += n;
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
    if (changed) this.#now.settled_through = this.#next();
    return changed;
  }

  suspended(ms: number): void {
    this.#counters.suspended_ms = (this.#counters.suspended_ms ?? 0) + ms;
    this.#snapshot = undefined;
  }

  snapshot(): AttemptFacts {
    this.#tools ??= this.#ledger.rows.length === 0 ? noRows : this.#ledger.rows.slice();
    this.#snapshot ??= { ...this.#now, tools: this.#tools, counters: this.#counted() };
    return this.#snapshot;
  }

  /** Whether a part adds to the counters and to nothing else, decoded and handed over: one more delta of the same block. */
  #repeats(o: Observation): boolean {
    return (
      o.progress === this.#now.progress &&
      o.shows === this.#now.shown &&
      o.calls.length === 0 &&
      !o.terminal &&
      o.failure === undefined &&
      o.usage === undefined &&
      o.stores !== true &&
      this.#now.delivery === "accepted" &&
      (this.#now.shown === "text" ? this.#now.text_through === this.#moment : this.#discardable)
    );
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
        this.#now.call_through = this.#next();
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

  /** The guard proves nothing of an undeclared tool: a caller that is handed such a call may run it. */
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
    this.#moment += 1;
    this.#snapshot = undefined;
    return this.#moment;
  }

  /** Returns whether something had happened since the last text. */
  #textAt(): boolean {
    const behind = this.#now.text_through !== this.#moment;
    if (this.#now.text_through === 0 || behind) this.#now.text_through = this.#next();
    return behind;
  }

  /** Keeps the highest usage that was told: some providers tell it in pieces, some again and again. */
  #use({ input_tokens: input, output_tokens: output }: Usage): void {
    const counters = this.#counters;
    if (input !== undefined) counters.input_tokens = Math.max(input, counters.input_tokens ?? 0);
    if (output !== undefined) counters.output_tokens = Math.max(output, counters.output_tokens ?? 0);
  }

  #counted(): Counters {
    const { bytes, characters, input_tokens, output_tokens, parts, rows_folded = 0, suspended_ms = 0 } = this.#counters;
    const folded = rows_folded + this.#ledger.folded;
    return {
      parts,
      bytes: Math.min(bytes, Number.MAX_SAFE_INTEGER),
      characters: Math.min(characters, Number.MAX_SAFE_INTEGER),
      ...(input_tokens === undefined ? {} : { input_tokens }),
      ...(output_tokens === undefined ? {} : { output_tokens }),
      ...(folded === 0 ? {} : { rows_folded: folded }),
      ...(suspended_ms === 0 ? {} : { suspended_ms }),
    };
  }
}

/** Runtime calls are counted when handed over; their settles when they happen. */
const counted = (
  signal: CallSignal,
): signal is CallSignal & { readonly phase: "input_started" | "input_complete" | "ready" } =>
  signal.executor === "runtime" && signal.phase !== "settled";
