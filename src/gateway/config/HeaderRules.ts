/**
 * Defines which headers a configuration may name, and which text a header can contain.
 */

/** Headers of the connection or the transfer, cookies, and headers that the gateway reads. */
const ofConnection =
  /^(?:connection|content-length|cookie2?|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|x-recovery-.*)$/i;

/** True if a configuration may name the header. Headers of the connection, cookies and the gateway's own headers are excluded. */
export const isClientHeader = (name: string): boolean => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && !ofConnection.test(name);

/** True if the text is valid in a header. */
export const isHeaderText = (text: string): boolean => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(text);
