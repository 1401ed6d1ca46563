/**
 * Describes a runtime to the conformance kit: one function that runs one turn against a given provider.
 *
 * The kit compares the text that the function writes to the screen, and the tools that it runs, with the provider's log. The function must
 * return when the turn is over, and throw if the turn has failed.
 */
import type { Effect } from "effect";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** The user's screen. The kit judges its text when the turn is over. */
export interface ConformanceScreen {
  /** Appends text. */
  readonly write: (text: string) => void;
  /** Replaces the whole text. A runtime that withdraws a broken response shows `""` or the kept text. */
  readonly replace: (text: string) => void;
  readonly text: () => string;
}

/** A tool that the runtime offers to the model. It has a side effect, so running it twice is a fault. */
export interface ConformanceTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input. */
  readonly parameters: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, { readonly type: "string" }>>;
  };
  /**
   * Runs the tool and returns its result. The kit records the input of each run.
   *
   * @param input the arguments as the runtime received them: an object, or unparsed JSON text
   */
  readonly execute: (input: unknown) => Promise<string>;
}

/** One turn: the address of its provider, its prompt and its tools. */
export interface ConformanceTask {
  readonly protocol: ProtocolId;
  /** The address of a server for this turn alone, `http://127.0.0.1:PORT`, or of the gateway under test. */
  readonly origin: string;
  /**
   * The `baseURL` of the provider's own SDK: with `/v1` for OpenAI's protocols, `/v1beta` for Gemini, and no path for
   * Anthropic.
   */
  readonly base_url: string;
  /** Full URL of the streaming endpoint. */
  readonly endpoint: string;
  /** Headers for every request, in addition to the key. Empty unless a gateway under test needs some. */
  readonly headers: Readonly<Record<string, string>>;
  readonly api_key: string;
  readonly model: string;
  readonly prompt: string;
  readonly tools: ReadonlyArray<ConformanceTool>;
  readonly screen: ConformanceScreen;
  /** Aborts when the turn exceeds its time limit. */
  readonly signal: AbortSignal;
}

/** The report of a runtime that cannot use `screen` and `execute`, for example a runtime in another process. Every field is optional. */
export interface ConformanceReport {
  /** Text on the user's screen at the end. Default: the text written to `screen`. */
  readonly text?: string;
  /** Inputs of tools that ran outside `execute`, in order: objects or JSON text. */
  readonly tools?: ReadonlyArray<unknown>;
  /** Default `ok`. `error` means that the user or the caller sees an error. An exception counts as `error`. */
  readonly ended?: "ok" | "error";
  readonly error?: string;
}

/** A runtime that can be judged. */
export interface ConformanceRuntime<R = never> {
  /** Column heading of the runtime. */
  readonly name: string;
  /** Versions of the measured packages, by name. */
  readonly versions?: Readonly<Record<string, string>>;
  readonly protocols: ReadonlyArray<ProtocolId>;
  /**
   * Runs one turn: prompt, streamed response, tools, and as many further model requests as the runtime makes.
   *
   * @returns a promise or an Effect; the error of a rejection or a failure counts as shown to the user
   */
  readonly turn: (
    task: ConformanceTask,
  ) => Promise<ConformanceReport | undefined | void> | Effect.Effect<ConformanceReport | undefined | void, unknown, R>;
}

/** A gateway under test. The runtime sends its requests to the gateway, and the gateway forwards them to the kit's server. */
export interface ConformanceThrough {
  /** Address of the gateway, with the path that precedes `/v1/…`, if there is one: `http://127.0.0.1:8787`. */
  readonly url: string;
  /** Port on 127.0.0.1 to which the gateway forwards. The kit's server listens on it, one turn after another. */
  readonly port: number;
  /** Headers that the gateway expects in each request. */
  readonly headers?: Readonly<Record<string, string>>;
}
