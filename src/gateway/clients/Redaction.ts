/**
 * Removes credentials from a provider's text before it goes to a client.
 */
import { fieldOf, type RelayRequest, readAddress } from "../../adapters/relay/RelayTransport.ts";

const redacted = "[redacted]";

/** Minimum length of a credential that is matched literally, in UTF-16 code units: a shorter one would match ordinary words. */
const exactCharactersMin = 6;

/** Patterns of credentials, including foreign ones. Ids of requests and responses are kept by their prefix. */
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

/** The credentials of a request, in the form in which a response could repeat them. */
export const credentialsOf = ({ headers, url }: RelayRequest): ReadonlyArray<string> =>
  [...credentialHeaders.map((name) => fieldOf(headers, name)), readAddress(url)?.searchParams.get("key") ?? undefined]
    .map((value) => value?.replace(/^\s*bearer\s+/i, "").trim())
    .filter((value): value is string => value !== undefined && value.length >= exactCharactersMin);

/**
 * Replaces credentials in a text.
 *
 * @param credentials the credentials of the request
 * @param kinds `exact`: only these. `any`: also text that looks like a credential
 */
export const redact = (text: string, credentials: ReadonlyArray<string>, kinds: "exact" | "any" = "any"): string => {
  const known = credentials.reduce((rest, credential) => rest.replaceAll(credential, redacted), text);
  return kinds === "exact" ? known : patterns.reduce((rest, pattern) => rest.replaceAll(pattern, redacted), known);
};
