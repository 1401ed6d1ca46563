/**
 * Decides which names and codes of an error may be repeated in a failure.
 *
 * A code is a field of unknown origin. A proxy may put a key, a prompt or a path there, so a harmless appearance is not enough. A code
 * passes only if it is known, or consists only of words that occur in error codes.
 */
import * as Http2Errors from "../../domain/Http2Errors.ts";
import { label } from "../../domain/Limits.ts";
import * as TransportCodes from "../../domain/TransportCodes.ts";

/** Maximum length of a code that is repeated, in UTF-16 code units. */
export const codeCharactersMax = 64;

/** Maximum digits of a code. That is enough for 429 and NGHTTP2, but too few for a key. */
const digitsMax = 4;
const manyDigits = new RegExp(`\\d{${digitsMax + 1}}`);

/**
 * Words of the error codes and error classes of Node, undici, OpenSSL, gRPC, AWS, the AI SDKs and the providers that the tables
 * name. `addKnownCodes` adds the codes of the rows themselves.
 */
const words = new Set(
  `abort aborted access account active ai already altname api app application arg argument arguments assertion auth
  authentication authorization authorized aws bad balance base64 billing blocked body bound call cancel canceled cancelled
  cert certificate chat chunk client closed code compression conflict connect connection constant content context
  conversation country credentials credit cycle daily damaged data deadline decode decoding default defect denied deployment
  depth destroyed die dns document dom does down empty encode encoding end engine eof err error errors event exceed exceeded
  exceeds exception exhausted exist existing expired fail failed failure fail fetch fiber field file filter finish flow
  footprint for forbidden format found frame function gateway generate generation generic goaway handshake hard header
  headers host hour http http2 id image in info inference input insufficient internal interrupt interrupted invalid issuer
  item job json key large last leaf length level limit limited load loading local lookup mac malformed many max maximum media
  message messages method minute mismatch missing mode model module network no not null object of on operation option
  organization origin out output over overflow overload overloaded parallel param parameter parameters parse parser
  parsing path pay payload payment per permission pipe policy pong prefix premature problem project prompt protocol provider
  quota range rate reach reached read reading reason ref reference refused region reject rejected remote request requests
  required reset resource response responses retry role route safety schema security self sequence server service session
  set signature signed size socket space ssl stall state status stream streaming string supported suppressed syntax system
  tagged temporarily template terminated throttled throttling tier time timed timeout tls to token tokens too tool tools
  transport truncated type unable unauthenticated unauthorized unavailable und undefined unexpected unhandled unknown
  unprocessable unreachable unsupported upstream uri url usage use user validation value verify version violation window
  write wrong zone number alert record cipher ciphers shared ca peer decrypt sslv3 tlsv1 tlsv11 tlsv12 tlsv13 unrecognized name verification digest ee key small dh proxy packet protocols available long md weak illegal legacy renegotiation capacity tier slow retryable model`.split(
    /\s+/,
  ),
);

const knownCodes = new Set<string>([...TransportCodes.codes, ...Http2Errors.names, ...Http2Errors.nodeCodes]);

/** Adds the codes of a table to the known codes. The tables call this when they are loaded. */
export const addKnownCodes = (codes: Iterable<string>): void => {
  for (const code of codes) knownCodes.add(code);
};

/**
 * Returns a code if it cannot be a secret.
 *
 * @param code a field of an error
 * @returns the code as a label; undefined if it is neither known nor made of known words
 */
export const codeLabel = (code: unknown): string | undefined => {
  if (typeof code === "number") return Number.isInteger(code) && code >= 0 && code <= 9_999 ? String(code) : undefined;
  if (typeof code !== "string" || code.length === 0 || code.length > codeCharactersMax) return undefined;
  if (knownCodes.has(code) || isProxyCode(code)) return code;
  return /^[A-Za-z0-9_.:-]+$/.test(code) && isWorded(code) ? code : undefined;
};

/** True for a proxy's status, or a code of the table that may itself be repeated. */
const isProxyCode = (code: string): boolean => {
  if (TransportCodes.lookup(code) === undefined || !code.startsWith(TransportCodes.proxyPrefix)) return false;
  const rest = code.slice(TransportCodes.proxyPrefix.length);
  return /^\d{3}$/.test(rest) || (rest !== code && codeLabel(rest) !== undefined);
};

/**
 * Names the class of an error.
 *
 * The name of a class is program text, which no provider can write. `name` and `_tag` are fields and follow the rule for codes.
 *
 * @param made the class that made the error
 * @param said the error's own names, the best first
 * @param fallback the name if none can be repeated
 */
export const nameLabel = (
  made: string | undefined,
  said: ReadonlyArray<string | undefined>,
  fallback: string,
): string => {
  if (made !== undefined && /^[A-Z][A-Za-z]{1,48}(?:Error|Exception|Failure)$/.test(made)) return made;
  for (const name of [made, ...said]) {
    const passed = name === "Object" || name === "Function" ? undefined : codeLabel(name);
    if (passed !== undefined) return label(passed);
  }
  return fallback;
};

const isWorded = (code: string): boolean => {
  // Digits in several parts count together, because card numbers, telephone numbers and addresses with dashes are personal data.
  if (manyDigits.test(code) || (code.match(/\d/g)?.length ?? 0) > digitsMax) return false;
  const parts = code
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .split(/[\s_.:-]+/)
    .filter((part) => part !== "");
  return parts.length > 0 && parts.every((part) => /^\d{1,4}$/.test(part) || words.has(part.toLowerCase()));
};
