/**
 * Recognises headers and query parameters that may hold a credential, by name.
 */

/** Names that look like a credential and are not. */
const harmless = /^(?:idempotency-key|x-idempotency-key|x-recovery-token)$/i;

const secretWords =
  /(?:^|[-_.])(?:api-?key|key|token|auth|authorization|authentication|secret|credentials?|password|signature|session|jwt|cookie2?)(?:$|[-_.])/i;

/** The same words without a separator, for example `accessToken` and `x-authtoken`. */
const joinedWords = /(?:api|access|secret)key|(?:access|auth|bearer|client|id|oauth|refresh|session)(?:token|secret)/i;

/** True if a value with this name may be a credential. */
export const isCredentialName = (name: string): boolean =>
  !harmless.test(name) && (secretWords.test(name) || joinedWords.test(name));
