/**
 * The interface of all clients: one streaming request to a server of ours, and the error when it breaks.
 */
import type { Failure } from "../../../../src/domain/Failure.ts";
import type { ErrorResponse } from "../../../../src/failure/FailureClassifier.ts";
import { classify, classifyResponse } from "../../../../src/failure/FailureClassifier.ts";

/** One provocation, as a client sees it. Limits are in milliseconds; the client's own defaults apply if they are omitted. */
export interface Ask {
  readonly url: string;
  /** A certificate to trust, PEM. */
  readonly ca?: string;
  /** The test's own signal. */
  readonly signal?: AbortSignal;
  /** True to speak HTTP/2, if the client can. */
  readonly http2?: boolean;
  readonly connectMs?: number;
  readonly headMs?: number;
  readonly bodyMs?: number;
  /** Limit of the whole request, if the client has one. */
  readonly timeoutMs?: number;
  /** Called when the head of the answer has arrived. */
  readonly onHead?: () => void;
  /** Called when the first bytes of the answer have arrived. */
  readonly onBytes?: () => void;
}

/** A client that streams one answer to its end. */
export interface Client {
  readonly name: string;
  /** The dialect of its provider; undefined if the client returns bytes. */
  readonly protocol?: "openai-chat" | "anthropic-messages" | "ai-gateway";
  /** Rejects with the client's own error. A client that does not judge responses returns them. */
  readonly ask: (ask: Ask) => Promise<ErrorResponse | undefined>;
}

/** The thrown value beside its classification; neither if the client saw a clean end. */
export interface Provoked {
  readonly error?: unknown;
  readonly failure?: Failure;
}

/**
 * Sends a request and classifies the result as an attempt would: a thrown value with `classify`, a failed response with
 * `classifyResponse`.
 */
export const provoke = async (client: Client, ask: Ask): Promise<Provoked> => {
  try {
    const response = await client.ask(ask);
    return response === undefined || response.status < 300 ? {} : { failure: classifyResponse(response) };
  } catch (error) {
    return { error, failure: classify(error) };
  }
};

/** The body that every client sends; no server in these tests reads it. */
export const body = JSON.stringify({ model: "test", stream: true, messages: [{ role: "user", content: "hello" }] });

export const headers = { "content-type": "application/json" };

/** Reads bytes to their end. */
export const drain = async (chunks: AsyncIterable<Uint8Array | string>, ask: Ask): Promise<string> => {
  let read = "";
  for await (const chunk of chunks) {
    ask.onBytes?.();
    read += typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
  }
  return read;
};
