/**
 * Says which headers and query parts may hold a credential, by their names.
 */

/** Names that are no credential and look like one. */
const harmless = /^(?:idempotency-key|x-idempotency-key|x-recovery-token)$/i;

const secretWords =
  /(?:^|[-_.])(?:api-?key|key|token|auth|authorization|authentication|secret|credentials?|password|signature|session|jwt|cookie2?)(?:$|[-_.])/i;

/** The same words without a mark between them, as `accessToken` and `x-authtoken`. */
const joinedWords = /(?:api|access|secret)key|(?:access|auth|bearer|client|id|oauth|refresh|session)(?:token|secret)/i;

/** Whether a value of this name may be a credential. */
export const isCredentialName = (name: string): boolean =>
  !harmless.test(name) && (secretWords.test(name) || joinedWords.test(name));
