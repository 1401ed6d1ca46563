/**
 * What every client here can be asked: one streaming request to a server of ours, and what it says when that breaks.
 */
import type { Failure } from "../../../../src/domain/Failure.ts";
import type { ErrorResponse } from "../../../../src/failure/FailureClassifier.ts";
import { classify, classifyResponse } from "../../../../src/failure/FailureClassifier.ts";

/** One provocation, as a client sees it. Limits are in milliseconds and left to the client's own defaults when left out. */
export interface Ask {
  readonly url: string;
  /** A certificate to trust, PEM. */
  readonly ca?: string;
  /** A signal of ours. */
  readonly signal?: AbortSignal;
  /** Speak HTTP/2, where the client can. */
  readonly http2?: boolean;
  readonly connectMs?: number;
  readonly headMs?: number;
  readonly bodyMs?: number;
  /** The client's own limit for the whole request, where it has one. */
  readonly timeoutMs?: number;
  /** Called when the head of the answer has come. */
  readonly onHead?: () => void;
  /** Called when the first bytes of the answer have come. */
  readonly onBytes?: () => void;
}

/** A client that streams one answer to its end. */
export interface Client {
  readonly name: string;
  /** The dialect in which its provider speaks; undefined where it hands over bytes. */
  readonly protocol?: "openai-chat" | "anthropic-messages" | "ai-gateway";
  /** Rejects as the client does; gives a response that a client without opinions hands over as it is. */
  readonly ask: (ask: Ask) => Promise<ErrorResponse | undefined>;
}

/** What was provoked: the thrown value beside its classification, or neither where the client saw a clean end. */
export interface Provoked {
  readonly error?: unknown;
  readonly failure?: Failure;
}

/**
 * Asks and classifies, as an attempt does: a thrown value by `classify`, a response that is none by `classifyResponse`.
 *
 * @param client that asks
 * @param ask what
 */
export const provoke = async (client: Client, ask: Ask): Promise<Provoked> => {
  try {
    const response = await client.ask(ask);
    return response === undefined || response.status < 300 ? {} : { failure: classifyResponse(response) };
  } catch (error) {
    return { error, failure: classify(error) };
  }
};

/** The body that every client sends; no server here reads it. */
export const body = JSON.stringify({ model: "test", stream: true, messages: [{ role: "user", content: "hello" }] });

/** The headers of that body. */
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
