/**
 * Finds what a client shows that nobody else knows: by it alone its responses can be read in the delivery log.
 */
import type { RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import { isCredentialName } from "../config/CredentialNames.ts";
import { credentialsIn } from "../routing/OwnCredential.ts";
import { secretCharactersMin } from "./DeliveryKey.ts";

/**
 * What a client shows, in one text. It is a secret: a key is made of it at once, and it is kept no longer than its run lingers.
 *
 * @param token the digest of the gateway's own token that it came with
 * @returns undefined where all of it could be guessed
 */
export const secretOf = (
  { headers, target }: Pick<RelayRequest, "headers"> & { readonly target: string },
  token: Uint8Array | undefined,
): string | undefined => {
  const shown = credentialsIn({ url: target, headers });
  const isSecret = token !== undefined || shown.some(([name, value]) => isLong(name, value));
  const digest = token === undefined ? null : Buffer.from(token).toString("hex");
  return isSecret ? JSON.stringify([digest, shown]) : undefined;
};

/** A word in front of a credential, such as its scheme, is known to all. */
const isLong = (name: string, value: string): boolean =>
  (name === "?" || isCredentialName(name)) && value.replace(/^(?:\w+ +|[^=]*=)/, "").length >= secretCharactersMin;
