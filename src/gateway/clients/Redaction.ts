/**
 * Removes credentials from a provider's text before it goes to a client.
 */
import { fieldOf, type RelayRequest, readAddress } from "../../adapters/relay/RelayTransport.ts";

/** What stands in place of a credential. */
const redacted = "[redacted]";

/** Minimum length of a credential that is looked for as it is, in UTF-16 code units: a shorter one would match ordinary words. */
const exactCharactersMin = 6;

/** Text that looks like a credential, whosever it is. Ids of requests and responses have their prefix and are kept. */
const patterns: ReadonlyArray<RegExp> = [
  // Keys by their prefix: OpenAI, Anthropic, xAI, Groq, Hugging Face, GitHub, Slack, Google, AWS, JSON web tokens.
  /\b(?:sk|pk|rk|xai|gsk|hf|gh[oprsu]|xox[abprs])[-_][\w.*-]{6,}/g,
  /\b(?:AIza|AKIA|ASIA|eyJ)[\w.*-]{12,}/g,
  // A word of letters and digits that is too long for a name.
  /\b(?!(?:req|request|msg|resp|chatcmpl|gen)_)(?=[A-Za-z_]*\d)(?=[\d_]*[A-Za-z])[A-Za-z0-9_]{24,}\b/g,
  /(?<=\bbearer\s)[\w.~+/*-]{6,}=*/gi,
  /(?<=\b(?:api[-_ ]?key|access[-_ ]?token|secret|password)["']?\s{0,2}[:=]\s{0,2}["']?)(?=[^\s"'&,;\\]{0,64}\d)[^\s"'&,;\\{}[\]]{8,}/gi,
];

const credentialHeaders = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];

/** The credentials of a request, as they could be repeated in a response to it. */
export const credentialsOf = ({ headers, url }: RelayRequest): ReadonlyArray<string> =>
  [...credentialHeaders.map((name) => fieldOf(headers, name)), readAddress(url)?.searchParams.get("key") ?? undefined]
    .map((value) => value?.replace(/^\s*bearer\s+/i, "").trim())
    .filter((value): value is string => value !== undefined && value.length >= exactCharactersMin);

/**
 * Replaces credentials in a text.
 *
 * @param credentials those of the request
 * @param kinds `exact`: these alone. `any`: what looks like one too
 */
export const redact = (text: string, credentials: ReadonlyArray<string>, kinds: "exact" | "any" = "any"): string => {
  const known = credentials.reduce((rest, credential) => rest.replaceAll(credential, redacted), text);
  return kinds === "exact" ? known : patterns.reduce((rest, pattern) => rest.replaceAll(pattern, redacted), known);
};
