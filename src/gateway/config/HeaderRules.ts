/**
 * Says which headers a configuration may name, and which texts a header can hold.
 */

/** Headers that say how a message is carried, or that the gateway itself reads. */
const ofConnection =
  /^(?:connection|content-length|cookie2?|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|x-recovery-.*)$/i;

/** Whether a configuration may name a header: one that a client sends for its provider. */
export const isClientHeader = (name: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && !ofConnection.test(name);

/** Whether a header can hold a text. */
export const isHeaderText = (text: string): boolean => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(text);
