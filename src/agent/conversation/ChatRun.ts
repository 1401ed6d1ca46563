/**
 * Folds the entries of one run: the kept parts of each attempt's response, and the outcomes of its calls.
 */
import { Result } from "effect";
import type * as Json from "../../domain/Json.ts";
import * as Continuation from "../../provider/Continuation.ts";
import * as ProtocolSeam from "../../provider/ProtocolSeam.ts";
import type { Part, ProtocolId, WireProtocol } from "../../provider/Protocols.ts";
import type { SeamPlan, TextSeam } from "../../seam/TextSeam.ts";
import type { CallVerdict, Ending, Entry } from "./Entry.ts";

type Of<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>;

/** A call of the model that its tool has begun, as the journal has it. */
export interface StartedCall {
  readonly attempt: number;
  readonly call: string;
  readonly tool: string;
  readonly input: string;
  /** What the tool noted before it began. */
  readonly before?: string;
}

/**
 * One attempt: the request that its response answers, and the kept parts of that. An attempt that goes on behind shown text has
 * those of the attempt before it, so that the response stays one message.
 */
interface ChatAttempt {
  readonly attempt: number;
  readonly body: Json.JsonRecord;
  readonly collector: Continuation.Collector;
  state: unknown;
  /** Ordinal of the part with the provider's marker; 0 while there is none. */
  terminal: number;
}

/** One run of a chat. */
export class ChatRun {
  readonly run: string;
  readonly #protocol: WireProtocol<ProtocolId>;
  readonly #first: Json.JsonRecord;
  readonly #attempts: Array<ChatAttempt> = [];
  readonly #started = new Map<string, Of<"Started">>();
  readonly #results = new Map<string, Continuation.CallResult>();
  readonly #verdicts = new Map<string, CallVerdict>();
  /** What has left of the open response, until a seam follows it. */
  #unfollowed: Array<Part> | undefined = [];

  /** @param first the request that the run began with */
  constructor(run: string, protocol: WireProtocol<ProtocolId>, first: Json.JsonRecord) {
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
   * @returns the request that it sends, or why no request can be made
   */
  begin({
    attempt,
    calls,
    request,
    seam,
  }: Of<"Attempt">): Result.Result<Json.JsonRecord, Continuation.ContinuationError> {
    // A first request asks for the whole response again: no part of an earlier attempt counts.
    if (request === "first") this.#attempts.length = 0;
    for (const { attempt, call, outcome } of calls) {
      if (outcome === "it_ran" || outcome === "it_did_not_run") this.#verdicts.set(keyOf({ attempt, call }), outcome);
    }
    const body = request === "first" ? Result.succeed(this.#first) : this.#continued(calls, seam);
    // A request that cannot be built is not sent: the attempt fails, and the next one is built from the kept parts.
    if (Result.isFailure(body)) return body;
    const open = this.#attempts.at(-1);
    if (seam !== undefined && open !== undefined) {
      this.#attempts.push({ ...open, attempt, terminal: 0 });
      return body;
    }
    if (this.#unfollowed !== undefined) this.#unfollowed = [];
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
    this.#unfollowed?.push(part);
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
  startOf(call: { readonly attempt: number; readonly call: string }): StartedCall | undefined {
    return this.#started.get(keyOf(call));
  }

  /** The newest call of this key that a tool has begun, in any attempt. */
  newestStartOf(call: string): StartedCall | undefined {
    return [...this.#started.values()].findLast((it) => it.call === call);
  }

  /**
   * What goes on behind the text of this run. It knows what an earlier process has shown; what this one shows its run tells it.
   *
   * @param url the address of the requests
   */
  seam(url: string): TextSeam<Part> {
    const seam = ProtocolSeam.makeIn(this.#protocol, { body: this.#first, url });
    for (const part of this.#unfollowed ?? []) seam.left(part, part.observation);
    this.#unfollowed = undefined;
    return seam;
  }

  /**
   * Calls that began and have neither a result nor a verdict: their outcome is not known. A call of a response that was asked
   * for again from the start is not among them: a person has said that it may run again.
   */
  get unknown(): ReadonlyArray<StartedCall> {
    return [...this.#started.values()].filter((it) => {
      const key = keyOf(it);
      if (!this.#attempts.some(({ attempt }) => attempt === it.attempt)) return false;
      return !this.#results.has(key) && !this.#verdicts.has(key);
    });
  }

  /**
   * The request with the whole run in it and every call closed.
   *
   * @returns `goes_on`: the model has to be asked again, with its calls' results or for the rest of its response
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

  /** The last attempt's request with the kept parts of its response; the same request where no part was kept. */
  #continued(
    calls: ReadonlyArray<Continuation.CallOutcome>,
    seam?: SeamPlan,
  ): Result.Result<Json.JsonRecord, Continuation.ContinuationError> {
    const last = this.#attempts.at(-1);
    if (last === undefined) return Result.succeed(this.#first);
    const received = last.collector.received();
    const ended = new Set(calls.filter(({ outcome }) => didNotRun(outcome)).map(keyOf));
    const results = [...this.#results.values()].filter((it) => !ended.has(keyOf(it)));
    return Continuation.build(this.#protocol.id, { body: last.body, received, calls, results, seam });
  }

  /** The outcome of every call, by the journal alone. */
  #outcomes(): ReadonlyArray<Continuation.CallOutcome> {
    return [...new Set(this.#attempts.map(({ collector }) => collector))].flatMap((collector) =>
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
