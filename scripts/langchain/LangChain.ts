/**
 * Loads LangChain if its packages are installed next to this file. The long suite installs them before its first test.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { isInstalled } from "../packages/Install.ts";

/** A chunk of a message, or several concatenated chunks. */
interface Chunk {
  readonly text: string;
  readonly content: unknown;
  readonly id?: unknown;
  readonly response_metadata: unknown;
  readonly usage_metadata?: unknown;
  readonly tool_calls?: ReadonlyArray<{ readonly name: string; readonly args: unknown }>;
  readonly concat: (other: Chunk) => Chunk;
}

interface Chat {
  readonly stream: (prompt: string, options?: { readonly signal?: AbortSignal }) => Promise<AsyncIterable<Chunk>>;
  readonly bindTools: (tools: ReadonlyArray<object>) => Pick<Chat, "stream">;
}

/** The part of LangChain that tests use. */
export interface LangChain {
  readonly ChatOpenAI: new (fields: {
    readonly model: string;
    readonly apiKey: string;
    readonly maxRetries?: number;
    readonly useResponsesApi?: boolean;
    readonly configuration: { readonly baseURL: string; readonly fetch?: typeof globalThis.fetch };
  }) => Chat;
  readonly AIMessageChunk: new (text: string) => Chunk;
}

const load = async (): Promise<LangChain> => {
  const { resolve } = createRequire(import.meta.url);
  const [openai, messages] = await Promise.all(
    ["@langchain/openai", "@langchain/core/messages"].map(
      async (name): Promise<object> => import(pathToFileURL(resolve(name)).href),
    ),
  );
  // Cast, because the packages are not installed during type checking.
  return { ...openai, ...messages } as LangChain;
};

/** LangChain, if it is installed. */
export const langChain: LangChain | undefined = isInstalled(import.meta.dirname) ? await load() : undefined;
