/**
 * Keeps what is valid of a run's answer, attempt by attempt, and writes it as a prompt.
 */
import { Prompt, type Response } from "effect/ai";
import type { SettledCall } from "../../runtime/contract/ToolCall.ts";
import type { AgentEvent } from "./Event.ts";

interface Kept {
  parts: ReadonlyArray<Response.AnyPart>;
  readonly results: Map<string, Response.AnyPart>;
}

/** What a continuation is told of a call without a result. */
const sentences: Readonly<Record<SettledCall["outcome"], string>> = {
  settled: "The call ran, and its result was lost.",
  it_ran: "The call ran, and its result was lost.",
  not_run: "The call was not run.",
  it_did_not_run: "The call was not run.",
  unknown: "The call was interrupted before its result was known. It may have run, in part or as a whole.",
};

/** The valid parts of a run: what was discarded is gone, and no call is left without a result. */
export class Transcript {
  readonly #attempts = new Map<number, Kept>();

  /** Takes an event of a run: parts and results are added, what is discarded is withdrawn. */
  take(event: AgentEvent): void {
    if (event._tag === "Part") this.add(event.attempt, event.part);
    else if (event._tag === "ToolSettled") this.settle(event.attempt, event.part);
    else if (event._tag === "AttemptDiscarded") this.keep(event.attempt, event.keep_through);
  }

  /** Adds a part of an attempt. */
  add(attempt: number, part: Response.AnyPart): void {
    const kept = this.#of(attempt);
    kept.parts = [...kept.parts, part];
  }

  /** Adds the result of a call. */
  settle(attempt: number, part: Response.AnyPart): void {
    if (part.type === "tool-result" && !part.preliminary) this.#of(attempt).results.set(part.id, part);
  }

  /** Keeps the first parts of an attempt and withdraws the rest. */
  keep(attempt: number, count: number): void {
    const kept = this.#of(attempt);
    kept.parts = kept.parts.slice(0, count);
  }

  /** The parts of an attempt that are kept. */
  partsOf(attempt: number): ReadonlyArray<Response.AnyPart> {
    return this.#of(attempt).parts;
  }

  /**
   * What is kept, as the messages that follow a prompt.
   *
   * @param calls what became of calls that have no result, where it is known
   */
  prompt(calls: ReadonlyArray<SettledCall> = []): Prompt.Prompt {
    let prompt = Prompt.empty;
    for (const [attempt, { parts, results }] of [...this.#attempts].sort(([one], [other]) => one - other)) {
      const outcomes = new Map(calls.filter((it) => it.attempt === attempt).map((it) => [it.id, it.outcome]));
      const assistant = Prompt.fromResponseParts(parts.filter((part) => !isOpenHosted(part, parts)));
      const answers = parts.flatMap((part) =>
        part.type === "tool-call" && part.providerExecuted !== true
          ? [answerTo(part, results.get(part.id), outcomes.get(part.id) ?? "unknown")]
          : [],
      );
      prompt = Prompt.concat(prompt, assistant);
      if (answers.length > 0)
        prompt = Prompt.concat(prompt, Prompt.fromMessages([Prompt.toolMessage({ content: answers })]));
    }
    return prompt;
  }

  #of(attempt: number): Kept {
    const known = this.#attempts.get(attempt) ?? { parts: [], results: new Map() };
    this.#attempts.set(attempt, known);
    return known;
  }
}

/** A call that the provider ran and never told the result of: no provider takes it back. */
const isOpenHosted = (part: Response.AnyPart, parts: ReadonlyArray<Response.AnyPart>): boolean =>
  part.type === "tool-call" &&
  part.providerExecuted === true &&
  !parts.some((other) => other.type === "tool-result" && other.id === part.id);

const answerTo = (
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
  const reason = sentences[outcome];
  const told = { type: "execution-interrupted", reason };
  return Prompt.toolResultPart({ id, name, isFailure: true, result: told, providerExecuted: false });
};
