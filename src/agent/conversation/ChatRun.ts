/**
 * Folds the entries of one run: what was kept of each attempt's answer, and what became of its calls.
 */
import { Result } from "effect";
import type * as Json from "../../domain/Json.ts";
import * as Continuation from "../../provider/Continuation.ts";
import type { Part, Protocol } from "../../provider/Protocols.ts";
import type { Ending, Entry, Verdict } from "./Entry.ts";

type Of<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>;

/** A call of the model, as the journal knows it. */
export interface Called {
  readonly attempt: number;
  readonly call: string;
  readonly tool: string;
  readonly input: string;
  /** What the tool noted before it began. */
  readonly before?: string;
}

/** One attempt: the request that it sent, and what was kept of its answer. */
interface Taken {
  readonly attempt: number;
  readonly body: Json.JsonRecord;
  readonly collector: Continuation.Collector;
  state: unknown;
  /** Ordinal of the part with the provider's marker; 0 while there is none. */
  terminal: number;
}

/** One run of a chat. */
export class Answering {
  readonly run: string;
  readonly #protocol: Protocol<unknown>;
  readonly #first: Json.JsonRecord;
  readonly #attempts: Array<Taken> = [];
  readonly #started = new Map<string, Of<"Started">>();
  readonly #results = new Map<string, Continuation.CallResult>();
  readonly #verdicts = new Map<string, Verdict>();

  /** @param first the request that the run began with */
  constructor(run: string, protocol: Protocol<unknown>, first: Json.JsonRecord) {
    this.run = run;
    this.#protocol = protocol;
    this.#first = first;
  }

  /** The request that the run began with, as text: `StreamProcessor.takeUp` takes no other. */
  get transcript(): string {
    return JSON.stringify(this.#first);
  }

  /**
   * An attempt begins.
   *
   * @returns the request that it sends, or why none can be made of what is there
   */
  begin({ attempt, calls, request }: Of<"Attempt">): Result.Result<Json.JsonRecord, Continuation.ContinuationError> {
    // A first request asks for all of it again: nothing of an earlier attempt counts.
    if (request === "first") this.#attempts.length = 0;
    for (const { attempt, call, outcome } of calls) {
      if (outcome === "it_ran" || outcome === "it_did_not_run") this.#verdicts.set(keyOf({ attempt, call }), outcome);
    }
    const body = request === "first" ? Result.succeed(this.#first) : this.#continued(calls);
    // What cannot be continued is sent by nobody: the attempt fails, and the next one is built from what there is.
    if (Result.isFailure(body)) return body;
    const collector = Continuation.collector(this.#protocol.id);
    const state = this.#protocol.initial();
    this.#attempts.push({ attempt, body: body.success, collector, state, terminal: 0 });
    return body;
  }

  /** A part was handed over. Returns it as it was decoded. */
  take({ attempt, data, event, id, ordinal }: Of<"Part">): Part | undefined {
    const taken = this.#attempts.find((it) => it.attempt === attempt);
    if (taken === undefined) return undefined;
    const source = { event, data, bytes: data.length, ...(id === undefined ? {} : { id }) };
    const [state, part] = this.#protocol.step(taken.state, source);
    taken.state = state;
    if (part.observation.terminal) taken.terminal ||= ordinal;
    else if (part.observation.terminal_at_end === true) taken.terminal = ordinal;
    taken.collector.take(attempt, ordinal, part);
    return part;
  }

  discard({ attempt, keep_through }: Of<"Discard">): void {
    for (const taken of this.#attempts) {
      if (taken.attempt !== attempt) continue;
      taken.collector.discard(attempt, keep_through);
      if (taken.terminal > keep_through) taken.terminal = 0;
    }
  }

  started(entry: Of<"Started">): void {
    this.#started.set(keyOf(entry), entry);
  }

  settled({ attempt, call, failed, output }: Of<"Result">): void {
    this.#results.set(keyOf({ attempt, call }), { attempt, call, output, failed });
  }

  judged({ attempt, call, verdict }: Of<"Judged">): void {
    this.#verdicts.set(keyOf({ attempt, call }), verdict);
  }

  /** The result of a call; undefined while it has none. */
  resultOf(call: { readonly attempt: number; readonly call: string }): Continuation.CallResult | undefined {
    return this.#results.get(keyOf(call));
  }

  /** How a call began; undefined where its tool has not begun it. */
  startOf(call: { readonly attempt: number; readonly call: string }): Called | undefined {
    return this.#started.get(keyOf(call));
  }

  /** The newest call of this key that a tool has begun, whatever attempt it is of. */
  newestStartOf(call: string): Called | undefined {
    return [...this.#started.values()].findLast((it) => it.call === call);
  }

  /**
   * Calls that began and have neither a result nor a word on them: what they did is not known. Those of an answer that was
   * asked for again from the start are none of them: a person has said that they may run again.
   */
  get unknown(): ReadonlyArray<Called> {
    return [...this.#started.values()].filter((it) => {
      const key = keyOf(it);
      if (!this.#attempts.some(({ attempt }) => attempt === it.attempt)) return false;
      return !this.#results.has(key) && !this.#verdicts.has(key);
    });
  }

  /**
   * The request with all of the run in it, every call closed, and what has to happen next.
   *
   * @returns `goes_on`: the model has to be asked again, for its calls' results or for the rest of its answer
   */
  end(ending: Ending): { readonly body: Json.JsonRecord; readonly goes_on: boolean } {
    const last = this.#attempts.at(-1);
    if (last === undefined) return { body: this.#first, goes_on: ending === "cut" };
    const { items } = last.collector.received();
    const called = items.some((item) => item.type === "call" && item.whole);
    const cut = ending === "cut" && last.terminal === 0;
    const body = Result.getOrElse(this.#continued(this.#outcomes()), () => last.body);
    return { body, goes_on: (ending === "completed" && called) || (ending === "cut" && (called || cut)) };
  }

  /** The last attempt's request with what was kept of its answer; the same request where nothing was. */
  #continued(
    calls: ReadonlyArray<Continuation.CallOutcome>,
  ): Result.Result<Json.JsonRecord, Continuation.ContinuationError> {
    const last = this.#attempts.at(-1);
    if (last === undefined) return Result.succeed(this.#first);
    const received = last.collector.received();
    const ended = new Set(calls.filter(({ outcome }) => didNotRun(outcome)).map(keyOf));
    const results = [...this.#results.values()].filter((it) => !ended.has(keyOf(it)));
    return Continuation.build(this.#protocol.id, { body: last.body, received, calls, results });
  }

  /** What became of every call, by the journal alone. */
  #outcomes(): ReadonlyArray<Continuation.CallOutcome> {
    return this.#attempts.flatMap(({ collector }) =>
      collector.received().items.flatMap(({ attempt, call }) => {
        if (call === undefined) return [];
        const key = keyOf({ attempt, call });
        const known = this.#results.has(key) ? "settled" : this.#started.has(key) ? "unknown" : "not_run";
        return [
          { attempt, call, outcome: this.#results.has(key) ? known : (this.#verdicts.get(key) ?? known) },
        ] as const;
      }),
    );
  }
}

const didNotRun = (outcome: Continuation.CallOutcome["outcome"]): boolean =>
  outcome === "not_run" || outcome === "it_did_not_run";

const keyOf = ({ attempt, call }: { readonly attempt: number; readonly call: string }): string => `${attempt}/${call}`;
