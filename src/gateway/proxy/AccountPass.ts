/**
 * Forwards requests that are not runs with the operator's credential. The credential is masked in responses, and the objects that a request
 * stores get an owner.
 */
import { Readable } from "node:stream";
import { fieldOf, isNamed } from "../../adapters/relay/RelayTransport.ts";
import { MadeId } from "../owners/MadeId.ts";
import { type Bytes, decodeStream, isEncoded } from "../upstream/ContentDecoding.ts";
import { without } from "../upstream/Headers.ts";
import type { Secrets } from "../upstream/Secrets.ts";
import type { PassedResponse, Upstream } from "../upstream/Upstream.ts";

/**
 * Wraps an upstream for requests that use the operator's credential.
 *
 * @param made called with the id of each object that a request stores; without it, responses are not searched for ids
 */
export const guardPass = (upstream: Upstream, secrets: Secrets, made?: (id: string) => void): Upstream => ({
  ...upstream,
  pass: async (request, signal) => {
    // Asks for an uncompressed response, because a secret in compressed bytes cannot be masked.
    const headers = request.headers.filter(([name]) => !isNamed(name, "accept-encoding"));
    const response = await upstream.pass({ ...request, headers: [...headers, plain] }, signal);
    const { status } = response.head;
    const isError = status < 200 || status > 299;
    const { body, head } = isError ? plainError(response) : response;
    const seen = made === undefined || isError ? body : identifiedBody(body, made);
    const masked = Readable.from(secrets.body(seen), { objectMode: false });
    // If the body is destroyed before its first read, it does not destroy its source, so the source is destroyed here.
    masked.once("close", () => response.body.on("error", ignoreError).destroy());
    return { head: secrets.head(head), body: masked };
  },
});

const plain = ["accept-encoding", "identity"] as const;

const ignoreError = (): void => undefined;

/** Decodes the body of an error, so that secrets in it can be masked. If the encoding is unknown, the body is dropped. */
const plainError = ({ body, head }: PassedResponse): { head: PassedResponse["head"]; body: AsyncIterable<Bytes> } => {
  const encoding = fieldOf(head.headers, "content-encoding") ?? "";
  if (!isEncoded(encoding)) return { head, body };
  const chunks: AsyncIterator<Bytes> = body[Symbol.asyncIterator]();
  const source = decodeStream(encoding, async () => {
    const next = await chunks.next();
    return next.done === true ? undefined : [next.value];
  });
  const headers = without(without(head.headers, "content-encoding"), "content-length");
  return { head: { ...head, headers }, body: source ?? Readable.from([]) };
};

async function* identifiedBody(body: AsyncIterable<Bytes>, found: (id: string) => void): AsyncGenerator<Bytes> {
  const made = new MadeId(found);
  let last: Bytes | undefined;
  // The last chunk is withheld until the whole document has been searched for the id.
  for await (const chunk of body) {
    if (last !== undefined) yield last;
    made.take(chunk);
    last = chunk;
  }
  made.end();
  if (last !== undefined) yield last;
}
