/**
 * Folds the observations of an attempt into its facts.
 *
 * The fold runs on the hot path, once per part and once per hand-over. So it is mutable inside, decodes no schemas, and allocates nothing
 * for text deltas after the first one. Facts only grow (law L1); `snapshot` returns them as a value.
 */

import {
  type AttemptFacts,
  type Counters,
  callKey,
  isAtMost as chainAtMost,
  Delivery as Deliveries,
  type Delivery,
  fresh,
  Progress,
  pickHigher,
  Shown,
  type ToolPhase,
  type ToolRow,
} from "../domain/AttemptFacts.ts";
import { isMalformed } from "../domain/Failure.ts";
import * as HostedTools from "../domain/HostedTools.ts";
import { label, toolRowsMax } from "../domain/Limits.ts";
import type { CallSignal, Observation, Usage } from "../domain/Observation.ts";
import { type Executor, type SideEffects, type ToolBoundary, ToolEffect, withState } from "../domain/SideEffects.ts";
import { lastMoment } from "./Growth.ts";
import { Ledger } from "./ToolRows.ts";

export { canGrowInto as atMost, join } from "./Growth.ts";

/** Options of an attempt's facts, known before the attempt starts. */
export interface FactsOptions {
  /** The side-effect boundary from before the attempt; `null` if missing. */
  readonly sideEffects: SideEffects | null;
  /** True if the caller can discard parts that it was handed. If not, every part that is not quiet counts as text. */
  readonly discardable: boolean;
  /** The request's declarations of its tools. */
  readonly boundaries: ReadonlyArray<ToolBoundary>;
  /** True if ToolGuard provably made every declared runtime tool. */
  readonly guarded: boolean;
  /** Facts that an earlier process has collected about the same attempt. */
  readonly from?: AttemptFacts;
}

/** Growing facts of one attempt. All methods are synchronous and never fail. */
export interface FactsFold {
  /** Counts a decoded part. Returns true if anything but counters changed. */
  readonly decoded: (o: Observation) => boolean;
  /** Counts a part that the caller received. Returns true if `shown` rose, text came after a call, or a call's row changed. */
  readonly handedOver: (o: Observation) => boolean;
  /** Counts parts that are decoded and handed over in one step, in order. This is the case if a reader is waiting. */
  readonly passed: (parts: ReadonlyArray<Observation>) => void;
  /**
   * Returns true if handing over the part raises what must be recorded first (law L8): `shown`, text after a call, a runtime
   * call's row, state that the provider keeps, or the row of a provider-executed call that no earlier part reported.
   */
  readonly wouldShow: (o: Observation) => boolean;
  /** Raises the delivery of the request to at least this value. Returns true if it rose. */
  readonly delivery: (d: Delivery) => boolean;
  /** Counts bytes that were read. */
  readonly bytes: (n: number) => void;
  /**
   * Records that the handler of a runtime call is about to start. Returns true if a row changed.
   *
   * @param call the key, `choice.ordinal`
   * @param tool the tool's name, for a call that the stream has not handed over yet
   */
  readonly dispatched: (call: string, tool?: string) => boolean;
  /** Records that a dispatched call ended without a known outcome. Returns true if a row changed. */
  readonly outcomeUnknown: (call: string, tool?: string) => boolean;
  /** Records that a runtime call has its outcome, success or failure. Returns true if a row changed. */
  readonly settled: (call: string, tool?: string) => boolean;
  /** Counts a clock jump during the attempt, in milliseconds. */
  readonly suspended: (ms: number) => void;
  /** Returns an immutable copy of the facts so far. It is the same object until something changes. */
  readonly snapshot: () => AttemptFacts;
}

/** Creates the fold of an attempt that has no observations yet. */
export const make = (options: FactsOptions): FactsFold => new Fold(options);

const noRows: ReadonlyArray<ToolRow> = [];

type Growing<A> = { -readonly [K in keyof A]: A[K] };

class Fold implements FactsFold {
  readonly #discardable: boolean;
  readonly #guarded: boolean;
  readonly #boundaries: Boundaries;
  /**
   * All facts as they grow, starting with those of an earlier process. Only `tools` and `counters` are kept elsewhere, in the ledger and in
   * `#counters`.
   */
  readonly #now: Growing<AttemptFacts>;
  readonly #counters: Growing<Counters>;
  readonly #ledger = new Ledger();
  /** Calls that were seen to begin, at most `toolRowsMax`. */
  #begun: Set<string> | undefined;
  /** The counter that orders text, calls and settles. */
  #moment: number;
  /** True if the provider has begun to keep state. `side_effects` is then raised, but only once. */
  #stored = false;
  /** True after an error event. A later marker then does not count (law L5). */
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
    if (o.usage !== undefined) this.#addUsage(o.usage);
    let changed = this.delivery("accepted");
    if (o.progress !== this.#now.progress && !chainAtMost(Progress, o.progress, this.#now.progress)) {
      this.#now.progress = o.progress;
      changed = true;
    }
    if (o.calls.length > 0) changed = this.#countCalls(o.calls) || changed;
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
    const shows = this.#shownOf(o);
    let changed = false;
    if (shows === "text") {
      changed = this.#markText();
      if (o.calls.length > 0 && o.text_before_calls === true && this.#hasNewCall(o.calls))
        this.#now.call_through = this.#nextMoment();
    }
    if (shows !== this.#now.shown && !chainAtMost(Shown, shows, this.#now.shown)) {
      this.#now.shown = shows;
      changed = true;
    }
    if (o.calls.length > 0) {
      for (const signal of o.calls) {
        if (isCounted(signal) && this.#raise(this.#runtimeRow(signal))) changed = true;
      }
    }
    if (changed) this.#snapshot = undefined;
    return changed;
  }

  passed(parts: ReadonlyArray<Observation>): void {
    for (const o of parts) {
      if (this.#isFurtherDelta(o)) {
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
    const shows = this.#shownOf(o);
    if (shows !== this.#now.shown && !chainAtMost(Shown, shows, this.#now.shown)) return true;
    if (o.stores === true && !this.#stored) return true;
    // Text after a call or a settle counts as new too, because the text that the call had closed is open again (policy row 18).
    if (shows === "text" && this.#now.text_through !== this.#moment) return true;
    if (o.calls.length === 0) return false;
    for (const signal of o.calls) {
      if (isCounted(signal) && this.#ledger.canRaise(this.#runtimeRow(signal))) return true;
      // A provider-executed call is counted when decoded, but it must be on record before the caller can know of it.
      if (signal.executor === "provider" && this.#ledger.canRaise(this.#providerRow(signal))) return true;
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
    if (changed) this.#now.settled_through = this.#nextMoment();
    return changed;
  }

  suspended(ms: number): void {
    this.#counters.suspended_ms = (this.#counters.suspended_ms ?? 0) + ms;
    this.#snapshot = undefined;
  }

  snapshot(): AttemptFacts {
    this.#tools ??= this.#ledger.rows.length === 0 ? noRows : this.#ledger.rows.slice();
    this.#snapshot ??= { ...this.#now, tools: this.#tools, counters: this.#snapshotCounters() };
    return this.#snapshot;
  }

  /** True if a part that is decoded and handed over only changes counters, because it is one more delta of the same block. */
  #isFurtherDelta(o: Observation): boolean {
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

  #shownOf(o: Observation): Shown {
    return this.#discardable || o.quiet ? o.shows : "text";
  }

  /** Counts the calls that begin in a part, the provider-executed calls, and the runtime calls that it reports as settled. */
  #countCalls(signals: ReadonlyArray<CallSignal>): boolean {
    let changed = false;
    for (const signal of signals) {
      const call = callKey(signal.choice, signal.ordinal);
      if (this.#markBegun(signal, call)) {
        this.#now.call_through = this.#nextMoment();
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

  /**
   * Returns true if the call was not marked before. After `toolRowsMax` calls, only `input_started` counts as a beginning, because a late
   * beginning permits more (policy row 18).
   */
  #markBegun(signal: CallSignal, call: string): boolean {
    this.#begun ??= new Set();
    if (this.#begun.has(call)) return false;
    if (this.#begun.size >= toolRowsMax) return signal.phase === "input_started";
    this.#begun.add(call);
    return true;
  }

  /** True if a call begins in this part. The rows before the hand-over show which calls are known. */
  #hasNewCall(signals: ReadonlyArray<CallSignal>): boolean {
    return signals.some(
      (signal) =>
        signal.phase === "input_started" ||
        (isCounted(signal) && this.#ledger.find("runtime", callKey(signal.choice, signal.ordinal)) === undefined),
    );
  }

  #providerRow(signal: CallSignal): ToolRow {
    const phase = signal.phase === "ready" ? "input_complete" : signal.phase;
    return this.#row(callKey(signal.choice, signal.ordinal), signal.tool ?? "", "provider", phase);
  }

  #runtimeRow(signal: CallSignal): ToolRow {
    const tool = signal.tool ?? "";
    return this.#row(callKey(signal.choice, signal.ordinal), tool, "runtime", this.#runtimePhase(signal, tool));
  }

  /** Returns the phase of a runtime call. The guard does not control an undeclared tool, so a caller may already run such a call. */
  #runtimePhase(signal: CallSignal, tool: string): ToolPhase {
    if (signal.phase !== "ready") return signal.phase;
    return this.#guarded && !this.#isDeclared(signal, tool) ? "dispatched" : "handed_over";
  }

  /** Returns true if the request declares the tool. A `ready` signal may omit the name that an earlier one gave. */
  #isDeclared(signal: CallSignal, tool: string): boolean {
    const name = tool === "" ? this.#ledger.find("runtime", callKey(signal.choice, signal.ordinal))?.tool : label(tool);
    return name !== undefined && this.#boundaries.isDeclared(name);
  }

  #row(call: string, tool: string, executor: Executor, phase: ToolPhase): ToolRow {
    const name = label(tool);
    return { call: label(call), tool: name, executor, effect: this.#effect(executor, call, name), phase };
  }

  /** Returns the effect of a call. A signal without a name does not change the effect of a known call. */
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

  #nextMoment(): number {
    this.#moment += 1;
    this.#snapshot = undefined;
    return this.#moment;
  }

  /** Records that text was the last thing observed. Returns true if anything else was observed since the previous text. */
  #markText(): boolean {
    const behind = this.#now.text_through !== this.#moment;
    if (this.#now.text_through === 0 || behind) this.#now.text_through = this.#nextMoment();
    return behind;
  }

  /** Keeps the highest usage reported, because some providers report it in pieces and some repeatedly. */
  #addUsage({ input_tokens: input, output_tokens: output }: Usage): void {
    const counters = this.#counters;
    if (input !== undefined) counters.input_tokens = Math.max(input, counters.input_tokens ?? 0);
    if (output !== undefined) counters.output_tokens = Math.max(output, counters.output_tokens ?? 0);
  }

  #snapshotCounters(): Counters {
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

/** True for a signal that counts when its part is handed over. A runtime call's result counts as soon as the call settles. */
const isCounted = (
  signal: CallSignal,
): signal is CallSignal & { readonly phase: "input_started" | "input_complete" | "ready" } =>
  signal.executor === "runtime" && signal.phase !== "settled";

/** Declared boundaries of one attempt. If a name is declared twice, the higher of its two effects applies. */
class Boundaries {
  readonly #declared: ReadonlyArray<ToolBoundary>;
  readonly #runtime: ReadonlyMap<string, ToolEffect>;
  readonly #provider: ReadonlyMap<string, ToolEffect>;

  constructor(boundaries: ReadonlyArray<ToolBoundary>) {
    this.#declared = boundaries;
    this.#runtime = effects(boundaries, "runtime");
    this.#provider = effects(boundaries, "provider");
  }

  /** Returns true if the request declares a runtime tool of that name. */
  isDeclared(name: string): boolean {
    return this.#runtime.has(name);
  }

  /** Returns the declared effect; else, for a tool that the provider runs, the effect of the hosted tool; else unknown. */
  effectOf(executor: Executor, name: string): ToolEffect {
    if (executor === "runtime") return this.#runtime.get(name) ?? "unknown";
    return this.#provider.get(name) ?? HostedTools.effectOf(name, this.#declared);
  }
}

/**
 * Shared by all attempts that declare no tool of an executor, because a separate map would take up nearly all memory of an idle attempt.
 */
const nothingDeclared: ReadonlyMap<string, ToolEffect> = new Map();

const effects = (boundaries: ReadonlyArray<ToolBoundary>, executor: Executor): ReadonlyMap<string, ToolEffect> => {
  const own = boundaries.filter((boundary) => boundary.executor === executor);
  if (own.length === 0) return nothingDeclared;
  const declared = new Map<string, ToolEffect>();
  for (const { name, effect } of own) {
    const known = declared.get(label(name));
    declared.set(label(name), known === undefined ? effect : pickHigher(ToolEffect, known, effect));
  }
  return declared;
};

/** Shared by all attempts of requests that declare no tool. */
const undeclared = new Boundaries([]);
