/**
 * Describes a runtime to the conformance kit: one function that runs one turn against a given provider.
 *
 * The kit counts the text that the function writes to the screen and the tools that it runs. The function returns when the turn
 * is over and throws when the turn has failed.
 */
import type { Effect } from "effect";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** What the user sees. The kit judges the text that stands on it when the turn is over. */
export interface ConformanceScreen {
  /** Adds text at the end. */
  readonly write: (text: string) => void;
  /** Replaces the whole text: a runtime that withdraws a broken response shows `""` or the kept text. */
  readonly replace: (text: string) => void;
  /** The text that stands there now. */
  readonly text: () => string;
}

/** A tool that the runtime offers to the model. It has an effect, so running it twice is a fault. */
export interface ConformanceTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input. */
  readonly parameters: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, { readonly type: "string" }>>;
  };
  /**
   * Runs the tool and gives its result. The kit notes each run with its input.
   *
   * @param input the arguments as the runtime got them: an object, or unparsed JSON text
   */
  readonly execute: (input: unknown) => Promise<string>;
}

/** One turn: the address of its provider, its prompt and its tools. */
export interface ConformanceTask {
  readonly protocol: ProtocolId;
  /** `http://127.0.0.1:PORT`, a server of this turn's own. */
  readonly origin: string;
  /** What the provider's own SDK calls `baseURL`: with `/v1` for OpenAI's protocols, `/v1beta` for Gemini, bare for Anthropic. */
  readonly base_url: string;
  /** The full address of the streaming endpoint. */
  readonly endpoint: string;
  readonly api_key: string;
  readonly model: string;
  readonly prompt: string;
  readonly tools: ReadonlyArray<ConformanceTool>;
  readonly screen: ConformanceScreen;
  /** Aborts when the turn has taken longer than the kit waits. */
  readonly signal: AbortSignal;
}

/** The report of a runtime that cannot use `screen` and `execute`, such as one in another process. Every field is optional. */
export interface ConformanceReport {
  /** The text on the user's screen at the end; left out: what was written to `screen`. */
  readonly text?: string;
  /** Inputs of tools that ran outside of `execute`, in order: objects or JSON text. */
  readonly tools?: ReadonlyArray<unknown>;
  /** Left out: `ok`. An error is one that the user or the caller sees; an exception counts as one. */
  readonly ended?: "ok" | "error";
  /** The error as the user sees it. */
  readonly error?: string;
}

/** A runtime that can be judged. */
export interface ConformanceRuntime<R = never> {
  /** The name of its column. */
  readonly name: string;
  /** Versions of the measured packages, by name. */
  readonly versions?: Readonly<Record<string, string>>;
  /** The protocols that it speaks. */
  readonly protocols: ReadonlyArray<ProtocolId>;
  /**
   * Runs one turn: prompt, streamed response, tools, and as many further model requests as the runtime makes.
   *
   * @returns a promise or an Effect; the error of a rejection or failure counts as shown to the user
   */
  readonly turn: (
    task: ConformanceTask,
  ) => Promise<ConformanceReport | undefined | void> | Effect.Effect<ConformanceReport | undefined | void, unknown, R>;
}
