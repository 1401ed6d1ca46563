/**
 * Describes a runtime to the conformance kit: one function that runs one turn against a given provider.
 *
 * The kit counts what the function does with what it is given: text that it writes to the screen, tools that it runs. It
 * returns when the turn is over and throws when the turn has failed.
 */
import type { Effect } from "effect";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** What the user sees. The kit judges what stands on it when the turn is over. */
export interface ConformanceScreen {
  /** Adds text behind what is there. */
  readonly write: (text: string) => void;
  /** Puts this text in the place of everything: a runtime that withdraws a broken answer shows `""` or what is kept. */
  readonly replace: (text: string) => void;
  /** What stands there now. */
  readonly text: () => string;
}

/** A tool that the runtime offers to the model. It changes something: to run it twice is a fault. */
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
   * @param input the arguments as the runtime got them: an object, or JSON text that it did not parse
   */
  readonly execute: (input: unknown) => Promise<string>;
}

/** One turn: where the provider is, what is asked, and what may be used. */
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

/** What a runtime reports that could not use `screen` and `execute`, such as a process of its own. All of it may be left out. */
export interface ConformanceReport {
  /** The text on the user's screen at the end; left out: what was written to `screen`. */
  readonly text?: string;
  /** Inputs of tools that ran outside of `execute`, in order: objects or JSON text. */
  readonly tools?: ReadonlyArray<unknown>;
  /** Left out: `ok`. An error is what a user or a caller is told; an exception counts as one. */
  readonly ended?: "ok" | "error";
  /** What the user was told of the error. */
  readonly error?: string;
}

/** A runtime that can be judged. */
export interface ConformanceRuntime<R = never> {
  /** The name of its column. */
  readonly name: string;
  /** Versions of what was measured, by package name. */
  readonly versions?: Readonly<Record<string, string>>;
  /** The protocols that it speaks. */
  readonly protocols: ReadonlyArray<ProtocolId>;
  /**
   * Runs one turn: prompt, streamed answer, tools, and as many further model requests as the runtime makes.
   *
   * @returns a promise or an Effect; what it rejects or fails with is an error that the user is told
   */
  readonly turn: (
    task: ConformanceTask,
  ) => Promise<ConformanceReport | undefined | void> | Effect.Effect<ConformanceReport | undefined | void, unknown, R>;
}
