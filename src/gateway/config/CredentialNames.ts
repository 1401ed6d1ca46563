/**
 * Recognises, by name, headers and query parameters that may contain a credential.
 */

/** Names that match a pattern below but contain no credential of a provider. */
const harmless = /^(?:idempotency-key|x-idempotency-key|x-recovery-token)$/i;

const secretWords =
  /(?:^|[-_.])(?:api-?key|key|token|auth|authorization|authentication|secret|credentials?|password|signature|session|jwt|cookie2?)(?:$|[-_.])/i;

/** The same words joined without a separator, for example `accessToken` and `x-authtoken`. */
const joinedWords = /(?:api|access|secret)key|(?:access|auth|bearer|client|id|oauth|refresh|session)(?:token|secret)/i;

/** True if a value with this name may be a credential. */
export const isCredentialName = (name: string): boolean =>
  !harmless.test(name) && (secretWords.test(name) || joinedWords.test(name));
