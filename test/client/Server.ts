/**
 * Reads a client's request and answers it, in servers of a test's own.
 */
import type { IncomingMessage } from "node:http";

/** Reads a request's body as JSON and passes it on. */
export const withBody = (request: IncomingMessage, then: (json: unknown) => void): void => {
  const chunks: Array<Buffer> = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const text = Buffer.concat(chunks).toString();
    then(text === "" ? undefined : JSON.parse(text));
  });
};

/** A whole answer of OpenAI's chat protocol. */
export const answer =
  'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n' +
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
