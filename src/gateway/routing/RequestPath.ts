/**
 * Names the path that a request takes to its upstream, and whose requests share on it what the provider says of a wait.
 */
import { credentialIn } from "../../adapters/relay/RelayTransport.ts";
import * as CredentialDigest from "../../client/CredentialDigest.ts";
import type { Path } from "../../paths/Path.ts";
import type { Outgoing } from "./OwnCredential.ts";

/**
 * The path of a request as it leaves: with a digest of the upstream's own credential, or of the client's where the upstream has none.
 *
 * @param path the way to the upstream
 */
export const credentialed = (path: Path, { headers, url }: Outgoing): Path =>
  CredentialDigest.credentialed(path, credentialIn(url, headers));
