/**
 * Derives observations from the parts of an AI SDK model stream.
 *
 * The types are those of the SDK's language model specification `v4`, taken from `ai` 7. No code of `ai` is loaded. The provider packages
 * end every stream with a `finish` part that they create themselves, even if the stream was cut. Here a finish counts as the terminal
 * marker only if it contains the provider's own finish reason. `interrupted`, or `other` without that reason, means that the stream was
 * cut.
 */
import type { LanguageModel } from "ai";
import { callKey } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import { label } from "../../domain/Limits.ts";
import {
  type CallSignal,
  calls,
  failed,
  none,
  type Observation,
  ping,
  reasoning,
  terminal,
  text,
  type Usage,
} from "../../domain/Observation.ts";
import type { Executor } from "../../domain/SideEffects.ts";
import * as FailureClassifier from "../../failure/FailureClassifier.ts";
import { endingOf, failureOf, invalidToolInput } from "../../provider/openai-chat/Finish.ts";
import type { ReadyCall } from "../../runtime/contract/ToolCall.ts";

/** A language model, as the provider packages create it. */
export type Model = Extract<Exclude<LanguageModel, string>, { readonly specificationVersion: "v4" }>;

/** Options of one call, with its prompt and tools. */
export type CallOptions = Parameters<Model["doStream"]>[0];

/** The result of `doStream`. */
export type StreamResult = Awaited<ReturnType<Model["doStream"]>>;

/** The result of `doGenerate`. */
export type GenerateResult = Awaited<ReturnType<Model["doGenerate"]>>;

/** One part of a model's stream. */
export type StreamPart = StreamResult["stream"] extends ReadableStream<infer P> ? P : never;

/** The reason why a model finished, in the SDK's terms and in the provider's. */
export type FinishReason = Extract<StreamPart, { readonly type: "finish" }>["finishReason"];

/** A tool in a request. */
export type ExposedTool = NonNullable<CallOptions["tools"]>[number];

/** The attempt to which the parts belong. */
export type ReadAttempt = Pick<ReadyCall, "run_id" | "attempt">;

/** A part and the observation that it causes. */
export class ReadPart<P = StreamPart> {
  readonly part: P;
  readonly observation: Observation;
  readonly attempt: ReadAttempt;

  constructor(part: P, observation: Observation, attempt: ReadAttempt) {
    this.part = part;
    this.observation = observation;
    this.attempt = attempt;
  }

  /** The calls that the caller may run after it has received this part. */
  get ready(): ReadonlyArray<Pick<ReadyCall, "run_id" | "attempt" | "call" | "id">> {
    const { attempt, run_id } = this.attempt;
    return this.observation.calls.flatMap(({ choice, executor, id, ordinal, phase }) =>
      phase === "ready" && executor === "runtime" && id !== undefined
        ? [{ run_id, attempt, call: callKey(choice, ordinal), id }]
        : [],
    );
  }
}

/** Maximum number of calls per attempt whose ordinal is remembered. Beyond that, each part of a call counts as a new call. */
const callsMax = 1_024;

/** Reads the parts of one attempt. Calls are numbered in the order in which they start. */
export class PartReader {
  readonly #ordinals = new Map<string, number>();
  readonly #providerExecuted = new Set<string>();
  readonly #attempt: ReadAttempt;
  #next = 0;

  constructor(attempt: ReadAttempt) {
    this.#attempt = attempt;
  }

  read(part: StreamPart): ReadPart {
    return new ReadPart(part, this.#observe(part), this.#attempt);
  }

  /** Reads a response that arrived as a whole. */
  readWhole(result: GenerateResult): ReadPart<GenerateResult> {
    const signals = result.content.flatMap((part) => (part.type === "tool-call" ? [this.#call(part, "ready")] : []));
    const characters = result.content.reduce((sum, part) => sum + ("text" in part ? part.text.length : 0), 0);
    const finish = finishOf(result.finishReason, usageOf(result.usage));
    const said: Observation = { ...text(characters), calls: signals };
    const observation = finish.failure === undefined || finish.terminal ? { ...said, ...marker(finish) } : finish;
    return new ReadPart(result, observation, this.#attempt);
  }

  #observe(part: StreamPart): Observation {
    switch (part.type) {
      case "text-delta":
        return part.delta.length === 0 ? none : text(part.delta.length);
      case "reasoning-start":
        // The start of a block is progress but shows nothing, so the part is held until content arrives.
        return { ...none, progress: "reasoning" };
      case "reasoning-delta":
        return part.delta.length === 0 ? { ...none, progress: "reasoning" } : reasoning(part.delta.length);
      case "reasoning-file":
        return reasoning(0);
      case "file":
      case "source":
        return text(0);
      case "ping":
        return ping;
      case "error":
        return failed(classifyPart(part.error));
      case "finish":
        return finishOf(part.finishReason, usageOf(part.usage));
      case "tool-input-start":
        if (part.providerExecuted === true) this.#providerExecuted.add(part.id);
        return calls([this.#signal(part.id, "input_started", part.toolName)]);
      case "tool-input-delta":
        return { ...none, progress: "output" };
      case "tool-input-end":
        return calls([this.#signal(part.id, "input_complete")]);
      case "tool-call":
        return calls([this.#call(part, "ready")]);
      case "tool-result":
        return part.preliminary === true ? { ...none, progress: "output" } : calls([this.#settleCall(part)]);
      default:
        return none;
    }
  }

  #call(
    part: { readonly toolCallId: string; readonly toolName: string; readonly providerExecuted?: boolean },
    phase: "ready",
  ) {
    if (part.providerExecuted === true) this.#providerExecuted.add(part.toolCallId);
    return this.#signal(part.toolCallId, phase, part.toolName);
  }

  /** A tool result in a stream belongs to a call that the provider itself ran. */
  #settleCall(part: { readonly toolCallId: string; readonly toolName: string }): CallSignal {
    this.#providerExecuted.add(part.toolCallId);
    return this.#signal(part.toolCallId, "settled", part.toolName);
  }

  #signal(id: string, phase: CallSignal["phase"], tool?: string): CallSignal {
    const executor: Executor = this.#providerExecuted.has(id) ? "provider" : "runtime";
    const named = tool === undefined ? {} : { tool };
    return { choice: 0, ordinal: this.#ordinal(id, phase, executor), id, executor, phase, ...named };
  }

  /**
   * Returns the ordinal of a call. Some providers reuse ids, so a part starts a new call if the earlier call with the id is complete, or if
   * the part itself is the start of a call.
   */
  #ordinal(id: string, phase: CallSignal["phase"], executor: Executor): number {
    const known = phase === "input_started" ? undefined : this.#ordinals.get(id);
    const ordinal = known ?? this.#next;
    if (known === undefined) this.#next += 1;
    if (phase === "ready" && executor === "runtime") this.#ordinals.delete(id);
    else if (this.#ordinals.size < callsMax) this.#ordinals.set(id, ordinal);
    return ordinal;
  }
}

/** Interprets a finish as one of four: the provider's own end, an end after a broken call, a failure, or a cut stream. */
const finishOf = ({ raw, unified }: FinishReason, usage: Usage): Observation => {
  const word = label(raw ?? unified);
  const whole: Observation = { ...terminal(word), usage };
  switch (unified) {
    case "interrupted":
      return failed({ kind: "truncated" });
    case "stop":
    case "tool-calls":
    case "length":
    case "content-filter":
      return whole;
    case "error":
    case "other": {
      if (raw === undefined) return failed(unified === "other" ? { kind: "truncated" } : { kind: "server_error" });
      const end = endingOf(raw);
      if (end === "invalid_call") return { ...whole, failure: invalidToolInput };
      return end === "failed" || unified === "error" ? failed(failureOf(raw)) : whole;
    }
  }
};

const marker = ({ failure, finish, usage }: Observation) => ({
  terminal: true,
  ...(failure === undefined ? {} : { failure }),
  ...(finish === undefined ? {} : { finish }),
  ...(usage === undefined ? {} : { usage }),
});

/** Classifies the error in an error part, which is an error of the SDK or the provider's own error object. */
const classifyPart = (error: unknown): Failure => {
  if (isCut(error)) return { kind: "truncated" };
  return FailureClassifier.classify(error);
};

/** True for the error by which `@ai-sdk/openai-compatible` reports a clean end without a finish reason. */
const isCut = (error: unknown): boolean =>
  error instanceof Error &&
  error.name === "AI_InvalidResponseDataError" &&
  /\bended without a finish reason\b/.test(error.message);

const usageOf = (usage: GenerateResult["usage"]): Usage => {
  const input = toNatural(usage.inputTokens.total);
  const output = toNatural(usage.outputTokens.total);
  return {
    ...(input === undefined ? {} : { input_tokens: input }),
    ...(output === undefined ? {} : { output_tokens: output }),
  };
};

/** The usage is data of the provider, so a value that is not a count is omitted. */
const toNatural = (count: number | undefined): number | undefined =>
  count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
