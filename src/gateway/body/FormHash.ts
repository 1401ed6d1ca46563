/**
 * Makes the digest of a request's form: of a small body in the step in which it is asked for, of a large one in many turns of the event loop.
 */
import type { Hash, Hmac } from "node:crypto";
import { Effect } from "effect";
import { partsOf, type RequestForm, takeParts } from "../../adapters/relay/form/RequestForm.ts";
import { wholeBytesMax } from "./BodyOutline.ts";

/**
 * @param begun a digest of nothing yet
 * @returns hexadecimal digits; a promise of them for a large body
 */
export const formHash = (form: RequestForm, begun: Hash | Hmac): string | Promise<string> => {
  const { body } = form;
  if (typeof body === "object" && body.byteLength > wholeBytesMax)
    return Effect.runPromise(
      Effect.map(
        takeParts(form, body, (part) => begun.update(part)),
        () => begun.digest("hex"),
      ),
    );
  for (const part of partsOf(form)) begun.update(part);
  return begun.digest("hex");
};
