/**
 * Computes the digest of a request's canonical form, synchronously for a small body. A large body takes many turns of the event loop.
 */
import type { Hash, Hmac } from "node:crypto";
import { Effect } from "effect";
import { forEachPart, partsOf, type RequestForm } from "../../adapters/relay/form/RequestForm.ts";
import { wholeBytesMax } from "./BodyOutline.ts";

/**
 * Computes the digest of a request's canonical form.
 *
 * @param begun a digest without input
 * @returns hexadecimal digits, or a promise of them for a large body
 */
export const formHash = (form: RequestForm, begun: Hash | Hmac): string | Promise<string> => {
  const { body } = form;
  if (typeof body === "object" && body.byteLength > wholeBytesMax)
    return Effect.runPromise(
      Effect.map(
        forEachPart(form, (part) => begun.update(part)),
        () => begun.digest("hex"),
      ),
    );
  for (const part of partsOf(form)) begun.update(part);
  return begun.digest("hex");
};
