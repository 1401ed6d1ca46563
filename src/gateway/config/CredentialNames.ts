/**
 * Says which headers and query parts may hold a credential, by their names.
 */

/** Names that are no credential and look like one. */
const harmless = /^(?:idempotency-key|x-idempotency-key|x-recovery-token)$/i;

const secretWords =
  /(?:^|[-_.])(?:api-?key|key|token|auth|authorization|authentication|secret|credentials?|password|signature|session|jwt|cookie2?)(?:$|[-_.])/i;

/** Whether a value of this name may be a credential. */
export const isCredentialName = (name: string): boolean =>
  !harmless.test(name) && (secretWords.test(name) || /apikey/i.test(name));
