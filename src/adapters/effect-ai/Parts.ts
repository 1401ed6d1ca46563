/**
 * Derives observations from the parts of an `effect/ai` response, and encodes the parts in the form in which providers emit them.
 *
 * Each attempt has its own fold. The fold numbers calls in the order in which they start, and uses the model's ids only as labels.
 */
import { Schema } from "effect";
import { AiError, Response } from "effect/ai";
import { callKey } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import * as Observation from "../../domain/Observation.ts";
import { classify } from "../../failure/FailureClassifier.ts";
import type { AttemptContext } from "../../runtime/contract/RunOptions.ts";

/** A delivered part of a run, with its observation. */
export interface ReadPart {
  readonly attempt: number;
  readonly run_id: string;
  readonly parts: ReadonlyArray<Response.AnyPartEncoded>;
  /** The same parts in the form in which the wrapped model emitted them. */
  readonly given: ReadonlyArray<Response.AnyPart>;
  readonly observation: Observation.Observation;
  /** The calls for the caller's tools that this part completes. */
  readonly calls: ReadonlyArray<{ readonly key: string; readonly id: string; readonly name: string }>;
  readonly error?: unknown;
}

/** Returns the original error of a run (L12). If the cause is a part, the error is inside that part. */
export const errorIn = (cause: unknown): unknown => (isReadPart(cause) ? cause.error : cause);

const isReadPart = (cause: unknown): cause is ReadPart =>
  typeof cause === "object" && cause !== null && "observation" in cause && "parts" in cause;

/** Key of the metadata in which `ProviderModel` reports the calls that the provider itself ran: `metadata.stream_recovery.calls`. */
export const hostedMetadata = "stream_recovery";

interface BegunCall {
  readonly ordinal: number;
  readonly executor: "runtime" | "provider";
}

/** Facts of a request that are needed to read its parts. */
export interface Exposed {
  /** Names under which the run records the tools, by their names in the toolkit. */
  readonly names: ReadonlyMap<string, string>;
  /** True if the caller handles calls of undeclared tools. Otherwise such a call fails the attempt. */
  readonly deferred: boolean;
  /** True if reasoning is delivered only together with the text after it, so that reasoning alone does not count as shown. */
  readonly holdsReasoning: boolean;
}

/** Maximum length of held reasoning per attempt, in UTF-16 code units. Reasoning beyond this length is delivered and counts as shown. */
export const heldReasoningCharactersMax = 1024 * 1024;

/** Reads the parts of one attempt. */
export class PartFold {
  readonly #attempt: Pick<AttemptContext, "attempt" | "run_id">;
  readonly #exposed: Exposed;
  readonly #open = new Map<string, BegunCall>();
  #count = 0;
  #reasoned = 0;

  constructor(attempt: Pick<AttemptContext, "attempt" | "run_id">, exposed: Exposed) {
    this.#attempt = attempt;
    this.#exposed = exposed;
  }

  read(part: Response.AnyPart): ReadPart {
    return this.#readPartOf([part], this.#observe(part));
  }

  /** Reads a whole response. If the model call succeeds, the response counts as complete, unless its finish reports a failure. */
  readWhole(parts: ReadonlyArray<Response.AnyPart>): ReadPart {
    let seen: Observation.Observation = { ...Observation.none, progress: "output", terminal: true };
    const calls: Array<ReadPart["calls"][number]> = [];
    let error: unknown;
    for (const part of parts) {
      const read = this.#observe(part);
      const { observation } = read;
      calls.push(...read.calls);
      error ??= read.error;
      seen = {
        ...seen,
        shows: observation.shows === "nothing" || seen.shows === "text" ? seen.shows : observation.shows,
        characters: seen.characters + observation.characters,
        calls: [...seen.calls, ...observation.calls],
        ...(observation.finish === undefined ? {} : { finish: observation.finish }),
        ...(observation.usage === undefined ? {} : { usage: observation.usage }),
        ...(observation.failure === undefined ? {} : { failure: observation.failure, terminal: false }),
      };
    }
    return this.#readPartOf(parts, { observation: seen, calls, ...(error === undefined ? {} : { error }) });
  }

  #readPartOf(parts: ReadonlyArray<Response.AnyPart>, read: Reading): ReadPart {
    const { attempt, run_id } = this.#attempt;
    return { attempt, run_id, given: parts, parts: parts.map(encode), ...read };
  }

  #observe(part: Response.AnyPart): Reading {
    switch (part.type) {
      case "text":
        return readingOf(textObservation(part.text));
      case "text-delta":
        return readingOf(textObservation(part.delta));
      case "reasoning":
        return readingOf(this.#reasoning(part.text.length));
      case "reasoning-start":
        return readingOf(this.#reasoning(0));
      case "reasoning-delta":
        return readingOf(this.#reasoning(part.delta.length));
      case "file":
      case "source":
        return readingOf(Observation.text(0));
      case "tool-params-start":
        return readingOf(Observation.calls([this.#begin(part.id, part.name, part.providerExecuted === true)]));
      case "tool-params-delta":
        return readingOf({ ...Observation.none, progress: "output" });
      case "tool-params-end":
        return readingOf(this.#endInput(part.id));
      case "tool-call":
        return this.#completeCall(part.id, part.name, part.providerExecuted === true);
      case "tool-result":
        return readingOf(
          part.providerExecuted && !part.preliminary ? this.#settleCall(part.id, part.name) : Observation.none,
        );
      case "response-metadata":
        return readingOf(this.#readHosted(part.metadata));
      case "finish":
        return readingOf(finishObservation(part));
      case "error":
        return failureReading({ ...classify(part.error), in_band: true }, part.error);
      default:
        return readingOf(Observation.none);
    }
  }

  #reasoning(characters: number): Observation.Observation {
    this.#reasoned += characters;
    const observation = Observation.reasoning(characters);
    const held = this.#exposed.holdsReasoning && this.#reasoned <= heldReasoningCharactersMax;
    return held ? { ...observation, shows: "nothing" } : observation;
  }

  #begin(id: string, name: string, provider: boolean): Observation.CallSignal {
    const executor = provider ? "provider" : "runtime";
    const known: BegunCall = { ordinal: this.#count++, executor };
    this.#open.set(id, known);
    return this.#signal(known, id, name, "input_started");
  }

  #endInput(id: string): Observation.Observation {
    const known = this.#open.get(id);
    return known === undefined
      ? Observation.none
      : Observation.calls([this.#signal(known, id, undefined, "input_complete")]);
  }

  #completeCall(id: string, name: string, provider: boolean): Reading {
    const begun = this.#open.get(id);
    const first = begun === undefined ? [this.#begin(id, name, provider)] : [];
    const known = begun ?? this.#open.get(id);
    if (known === undefined) return readingOf(Observation.none);
    if (known.executor === "provider")
      return readingOf(Observation.calls([...first, this.#signal(known, id, name, "input_complete")]));
    if (!this.#exposed.deferred && !this.#exposed.names.has(name))
      return failureReading(
        { kind: "invalid_tool_input", in_band: true, retryable: false },
        undeclaredError(name, this.#exposed),
      );
    // A later call with the same id is a different call.
    this.#open.delete(id);
    return {
      observation: Observation.calls([...first, this.#signal(known, id, name, "ready")]),
      calls: [{ key: callKey(0, known.ordinal), id, name }],
    };
  }

  #settleCall(id: string, name: string): Observation.Observation {
    const begun = this.#open.get(id);
    const first = begun === undefined ? [this.#begin(id, name, true)] : [];
    const known = begun ?? this.#open.get(id);
    this.#open.delete(id);
    return known === undefined
      ? Observation.none
      : Observation.calls([...first, this.#signal(known, id, name, "settled")]);
  }

  /** Reads the calls that the provider itself ran. `effect/ai` has no parts for them. */
  #readHosted(metadata: Response.ProviderMetadata): Observation.Observation {
    const entries = Json.list(Json.record(metadata[hostedMetadata])?.calls);
    const signals = entries.flatMap((entry) => {
      const { id, phase, tool } = Json.record(entry) ?? {};
      const key = Json.string(id);
      const name = Json.string(tool);
      const begun = this.#open.get(key);
      const first = begun === undefined ? [this.#begin(key, name, true)] : [];
      const known = begun ?? this.#open.get(key);
      if (known === undefined || (phase !== "settled" && phase !== "input_complete")) return first;
      return [...first, this.#signal(known, key, name, phase)];
    });
    return signals.length === 0 ? Observation.none : Observation.calls(signals);
  }

  #signal(
    { executor, ordinal }: BegunCall,
    id: string,
    name: string | undefined,
    phase: Observation.CallSignal["phase"],
  ): Observation.CallSignal {
    const tool = name === undefined ? undefined : (this.#exposed.names.get(name) ?? label(name));
    return { choice: 0, ordinal, id: label(id), executor, phase, ...(tool === undefined ? {} : { tool }) };
  }
}

type Reading = Pick<ReadPart, "observation" | "calls" | "error">;

const noCalls: ReadPart["calls"] = [];

const readingOf = (observation: Observation.Observation): Reading => ({ observation, calls: noCalls });

const failureReading = (failure: Failure, error: unknown): Reading => ({
  ...readingOf(Observation.failed(failure)),
  error,
});

const undeclaredError = (toolName: string, { names }: Exposed): AiError.AiError =>
  AiError.make({
    module: "EffectAi",
    method: "streamText",
    reason: new AiError.ToolNotFoundError({ toolName, availableTools: [...names.keys()] }),
  });

/** Empty text only starts a block and is not progress. */
const textObservation = (text: string): Observation.Observation =>
  text === "" ? Observation.lifecycle : Observation.text(text.length);

const providerFailed: Failure = { kind: "server_error", in_band: true };

const finishObservation = ({ reason, usage }: Response.FinishPart): Observation.Observation => {
  if (reason === "error") return Observation.failed(providerFailed);
  const input_tokens = Json.natural(usage.inputTokens.total);
  const output_tokens = Json.natural(usage.outputTokens.total);
  return {
    ...Observation.terminal(reason),
    usage: {
      ...(input_tokens === undefined ? {} : { input_tokens }),
      ...(output_tokens === undefined ? {} : { output_tokens }),
    },
  };
};

const encodeFile = Schema.encodeSync(Response.FilePart);
const encodeMetadata = Schema.encodeSync(Response.ResponseMetadataPart);
const encodeFinish = Schema.encodeSync(Response.FinishPart);
const encodeUrl = Schema.encodeSync(Response.UrlSourcePart);

/** Encodes a part in the form in which providers emit it. Only a few kinds of part have a different form. */
const encode = (part: Response.AnyPart): Response.AnyPartEncoded => {
  switch (part.type) {
    case "file":
      return encodeFile(part);
    case "response-metadata":
      return encodeMetadata(part);
    case "finish":
      return encodeFinish(part);
    case "source":
      return part.sourceType === "url" ? encodeUrl(part) : part;
    case "tool-result":
      return toolResult(part);
    default:
      return part;
  }
};

const toolResult = (
  part: Extract<Response.AnyPart, { readonly type: "tool-result" }>,
): Response.ToolResultPartEncoded => {
  const { encodedResult, id, isFailure, metadata, modelOutput, name, preliminary, providerExecuted } = part;
  return {
    type: "tool-result",
    id,
    name,
    isFailure,
    preliminary,
    providerExecuted,
    metadata,
    result: encodedResult,
    ...(modelOutput === undefined ? {} : { modelOutput }),
  };
};
