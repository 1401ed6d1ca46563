/**
 * Identifies the path of a request to its upstream, including the credential that shares a provider's cooldowns.
 */
import { credentialIn } from "../../adapters/relay/RelayTransport.ts";
import * as CredentialDigest from "../../client/CredentialDigest.ts";
import type { Path } from "../../paths/Path.ts";
import type { Outgoing } from "./OwnCredential.ts";

/**
 * Adds to a path the digest of the upstream's credential, or of the client's if the upstream has none.
 *
 * @param path the path to the upstream
 */
export const withCredential = (path: Path, { headers, url }: Outgoing): Path =>
  CredentialDigest.withCredential(path, credentialIn(url, headers));
