/**
 * Keeps the valid parts of a run, attempt by attempt, and converts them to a prompt for a continuation.
 */
import { Prompt, type Response } from "effect/ai";
import type { RunEvent } from "../../runtime/contract/RunEvent.ts";
import type { SettledCall } from "../../runtime/contract/ToolCall.ts";
import { unfinished } from "./History.ts";

/** Reports the result of a call in this step, final or preliminary. */
export interface ToolSettled {
  readonly _tag: "ToolSettled";
  readonly attempt: number;
  readonly part: Extract<Response.AnyPart, { readonly type: "tool-result" }>;
}

/** The run's events by the grammar of RunEvent.ts, and the results of its calls, which precede `RunCompleted`. */
export type AgentEvent = RunEvent<Response.AnyPart> | ToolSettled;

interface AttemptParts {
  parts: ReadonlyArray<Response.AnyPart>;
  readonly results: Map<string, Response.AnyPart>;
}

/** The parts of one response, which may come from several attempts. */
interface JoinedParts {
  readonly attempts: ReadonlyArray<number>;
  readonly parts: ReadonlyArray<Response.AnyPart>;
  readonly results: ReadonlyMap<string, Response.AnyPart>;
}

/** Sentences about calls without a result, for the request that continues the response. */
const outcomeSentences: Readonly<Record<SettledCall["outcome"], string>> = {
  settled: "The call ran, and its result was lost.",
  it_ran: "The call ran, and its result was lost.",
  not_run: "The call was not run.",
  it_did_not_run: "The call was not run.",
  unknown: unfinished.reason,
};

/** The valid parts of a run. Discarded parts are removed, and every call has a result. */
export class Transcript {
  readonly #attempts = new Map<number, AttemptParts>();
  /** Attempts that continue the response of the previous attempt. */
  readonly #joined = new Set<number>();

  /** Applies an event of a run: adds parts and results, or removes discarded parts. */
  take(event: AgentEvent): void {
    if (event._tag === "Part") this.add(event.attempt, event.part);
    else if (event._tag === "Continued") this.join(event.attempt);
    else if (event._tag === "ToolSettled") this.settle(event.attempt, event.part);
    else if (event._tag === "AttemptDiscarded") this.keep(event.attempt, event.keep_through);
  }

  add(attempt: number, part: Response.AnyPart): void {
    const kept = this.#partsOf(attempt);
    kept.parts = [...kept.parts, part];
  }

  /** Adds the result of a call. A preliminary result is ignored. */
  settle(attempt: number, part: Response.AnyPart): void {
    if (part.type === "tool-result" && !part.preliminary) this.#partsOf(attempt).results.set(part.id, part);
  }

  /** Joins an attempt to the response of the previous attempt, so that both become one message. */
  join(attempt: number): void {
    this.#joined.add(attempt);
  }

  /** Keeps only the parts of an attempt that were delivered to the caller. */
  keepLeft(attempt: number, left: { readonly has: (part: Response.AnyPart) => boolean }): void {
    const kept = this.#partsOf(attempt);
    kept.parts = kept.parts.filter((part) => left.has(part));
  }

  /** Keeps the first parts of an attempt and removes the others. */
  keep(attempt: number, count: number): void {
    const kept = this.#partsOf(attempt);
    kept.parts = kept.parts.slice(0, count);
  }

  partsOf(attempt: number): ReadonlyArray<Response.AnyPart> {
    return this.#partsOf(attempt).parts;
  }

  /**
   * Returns the kept parts as messages that follow the original prompt.
   *
   * @param calls known outcomes of calls without a result
   */
  prompt(calls: ReadonlyArray<SettledCall> = []): Prompt.Prompt {
    let prompt = Prompt.empty;
    for (const { attempts, parts, results } of this.#responses()) {
      const outcomes = new Map(calls.filter((it) => attempts.includes(it.attempt)).map((it) => [it.id, it.outcome]));
      const assistant = Prompt.fromResponseParts(parts.filter((part) => !isOpenHosted(part, parts)));
      const toolResults = parts.flatMap((part) =>
        part.type === "tool-call" && part.providerExecuted !== true
          ? [resultFor(part, results.get(part.id), outcomes.get(part.id) ?? "unknown")]
          : [],
      );
      prompt = Prompt.concat(prompt, assistant);
      if (toolResults.length > 0)
        prompt = Prompt.concat(prompt, Prompt.fromMessages([Prompt.toolMessage({ content: toolResults })]));
    }
    return prompt;
  }

  /** Groups the attempts by response, in order. */
  #responses(): ReadonlyArray<JoinedParts> {
    const responses: Array<JoinedParts> = [];
    for (const [attempt, { parts, results }] of [...this.#attempts].sort(([one], [other]) => one - other)) {
      const before = this.#joined.has(attempt) ? responses.pop() : undefined;
      responses.push({
        attempts: [...(before?.attempts ?? []), attempt],
        parts: [...(before?.parts ?? []), ...parts],
        results: new Map([...(before?.results ?? []), ...results]),
      });
    }
    return responses;
  }

  #partsOf(attempt: number): AttemptParts {
    const known = this.#attempts.get(attempt) ?? { parts: [], results: new Map() };
    this.#attempts.set(attempt, known);
    return known;
  }
}

/** True for a call that the provider ran and whose result did not arrive. No provider accepts such a call in a request. */
const isOpenHosted = (part: Response.AnyPart, parts: ReadonlyArray<Response.AnyPart>): boolean =>
  part.type === "tool-call" &&
  part.providerExecuted === true &&
  !parts.some((other) => other.type === "tool-result" && other.id === part.id);

const resultFor = (
  call: Extract<Response.AnyPart, { readonly type: "tool-call" }>,
  result: Response.AnyPart | undefined,
  outcome: SettledCall["outcome"],
): Prompt.ToolResultPart => {
  const { id, name } = call;
  if (result?.type === "tool-result")
    return Prompt.toolResultPart({
      id,
      name,
      isFailure: result.isFailure,
      result: result.encodedResult,
      providerExecuted: false,
      ...(result.modelOutput === undefined ? {} : { modelOutput: result.modelOutput }),
    });
  const lost = { ...unfinished, reason: outcomeSentences[outcome] };
  return Prompt.toolResultPart({ id, name, isFailure: true, result: lost, providerExecuted: false });
};
