/**
 * Names the path that a request takes to its upstream, and whose requests share on it what the provider says of a wait.
 */
import { createHmac, randomBytes } from "node:crypto";
import { Redacted } from "effect";
import { credentialIn, digestCharacters } from "../../adapters/relay/RelayCredential.ts";
import type { Path } from "../../paths/Path.ts";
import type { Outgoing } from "./OwnCredential.ts";

/** A key of this process: a digest that stands on a page or in a log cannot be tried against guessed credentials. */
const key = Redacted.make(randomBytes(32));

/**
 * The path of a request as it leaves: with a digest of the upstream's own credential, or of the client's where the upstream has none.
 *
 * @param path the way to the upstream
 */
export const credentialed = (path: Path, { headers, url }: Outgoing): Path => {
  const credential = credentialIn(url, headers);
  if (credential === "") return path;
  const digest = createHmac("sha256", Redacted.value(key)).update(credential).digest("hex");
  return { ...path, credential: digest.slice(0, digestCharacters) };
};
