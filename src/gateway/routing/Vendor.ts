/**
 * Identifies the vendors of a request: those that have its path, and those whose credentials it contains.
 *
 * Every spelling that a server might accept is checked: the decoded path without empty segments, header names in any case, every header of
 * the same name, and credentials in the query. A path or header that is not in these tables belongs to no vendor.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { UpstreamName } from "../config/Options.ts";
import { tokenHeader } from "../config/OwnHeaders.ts";

/** A vendor that has no upstream by default. */
type ForeignVendor = keyof typeof foreignWords;

/** A vendor with known credentials or paths. */
export type Vendor = UpstreamName | ForeignVendor;

const foreignWords = {
  azure: "Azure",
  cerebras: "Cerebras",
  databricks: "Databricks",
  fireworks: "Fireworks",
  github: "GitHub",
  groq: "Groq",
  huggingface: "Hugging Face",
  nvidia: "NVIDIA",
  openrouter: "OpenRouter",
  perplexity: "Perplexity",
  replicate: "Replicate",
  xai: "xAI",
} as const;

/** Names of the vendors, for messages. */
export const vendorWords: Readonly<Record<Vendor, string>> = {
  openai: "OpenAI",
  anthropic: "Anthropic",
  gemini: "Google",
  "code-assist": "Google Code Assist",
  ollama: "Ollama",
  cohere: "Cohere",
  bedrock: "AWS",
  ...foreignWords,
};

/** Returns the vendor whose credentials a vendor accepts: Google's accounts are also those of Code Assist. */
export const accountOf = (vendor: Vendor): Vendor => (vendor === "code-assist" ? "gemini" : vendor);

/**
 * Returns the vendor that owns the domain of a host. Returns undefined for an unknown domain, and for hosts that a cloud rents to
 * customers.
 */
export const ownerOf = (hostname: string): Vendor | undefined =>
  rented.test(hostname)
    ? undefined
    : owners.find(([domain]) => hostname === domain || hostname.endsWith(`.${domain}`))?.[1];

/** Matches virtual machines and load balancers whose names customers choose. */
const rented = /\.(?:elb|compute|compute-1|execute-api|cloudapp)\.(?:[\w-]+\.)*(?:amazonaws|azure)\.com$/;

/** True for a host on this machine or on a private network. Its address is not routed on the Internet, or its name is not in public DNS. */
export const isPrivate = (hostname: string): boolean =>
  /^(?:127|10|192\.168|172\.(?:1[6-9]|2\d|3[01])|169\.254|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.[\d.]+$/.test(
    hostname,
  ) ||
  /^\[(?:::1\]|f[cd][0-9a-f]{2}:|fe[89ab][0-9a-f]:)/.test(hostname) ||
  /^[\w-]+$/.test(hostname) ||
  /\.(?:localhost|local|internal|lan|home\.arpa)$/.test(hostname);

const owners: ReadonlyArray<readonly [domain: string, vendor: Vendor]> = [
  ["openai.com", "openai"],
  ["anthropic.com", "anthropic"],
  ["cloudcode-pa.googleapis.com", "code-assist"],
  ["googleapis.com", "gemini"],
  // GitHub Models runs on an Azure host but uses GitHub's keys.
  ["models.inference.ai.azure.com", "github"],
  ["azure.com", "azure"],
  ["amazonaws.com", "bedrock"],
  ["api.aws", "bedrock"],
  ["cerebras.ai", "cerebras"],
  ["cohere.com", "cohere"],
  ["cohere.ai", "cohere"],
  ["databricks.com", "databricks"],
  ["fireworks.ai", "fireworks"],
  ["github.com", "github"],
  ["github.ai", "github"],
  ["githubcopilot.com", "github"],
  ["groq.com", "groq"],
  ["huggingface.co", "huggingface"],
  ["nvidia.com", "nvidia"],
  ["ollama.com", "ollama"],
  ["openrouter.ai", "openrouter"],
  ["perplexity.ai", "perplexity"],
  ["replicate.com", "replicate"],
  ["x.ai", "xai"],
];

/** The vendors to which a path may belong. */
export interface PathClaim {
  /** Upstreams whose servers may have the path, most likely first. */
  readonly upstreams: ReadonlyArray<UpstreamName>;
  /** The only vendor with this path, if no default upstream has it. */
  readonly foreign?: Vendor;
  /** True for a path of Vertex AI, which also accepts Anthropic's headers. */
  readonly vertex?: true;
  /** True if any vendor may have the path, so that the path does not identify the vendor. */
  readonly shared?: true;
}

/**
 * Decodes a path as the most lenient server does, through repeated percent encoding.
 *
 * @param pathname the pathname of a `URL`
 * @returns undefined for a path that no client sends: encoded too many times, or with `..`, a control character or a backslash
 */
export const plainPath = (pathname: string): string | undefined => {
  let plain = pathname;
  for (let round = 0; /%[0-9a-f]{2}/i.test(plain); round += 1) {
    if (round === encodingsMax) return undefined;
    plain = plain.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  // Control characters are matched on purpose: a server may cut or split a path at one.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as said above
  if (/[\u0000-\u001f\u007f\\]|(?:^|\/)\.\.(?:\/|$)/.test(plain)) return undefined;
  return plain.replaceAll(/\/(?:\.?\/)+/g, "/");
};

/** Maximum number of decoding rounds. It exceeds what any chain of proxies applies. */
const encodingsMax = 4;

/**
 * Identifies the vendors of a path.
 *
 * @param path the result of `plainPath`
 */
export const claimOf = (path: string): PathClaim => {
  const lower = path.toLowerCase();
  return pathClaims.find(([pattern]) => pattern.test(lower))?.[1] ?? everyVendors;
};

/**
 * The claim of a path that any vendor may have, for example `/v1/models`. The request goes to OpenAI unless it has a sign of another
 * vendor.
 */
const everyVendors: PathClaim = {
  upstreams: ["openai", "anthropic", "gemini", "code-assist", "ollama", "cohere"],
  shared: true,
};

const googles: PathClaim = { upstreams: ["gemini"] };
const vertex: PathClaim = { upstreams: ["gemini", "anthropic", "openai"], vertex: true };
const foreignClaim = (vendor: Vendor): PathClaim => ({
  upstreams: ["openai", "anthropic", "gemini"],
  foreign: vendor,
});

/**
 * API calls of Google after a colon in the path. Any other word after a colon is part of a model's name (`llama3:8b`, `ft:gpt-4o:org::id`).
 */
const googleCalls =
  "(?:stream|batch|asyncbatch|bidi)?(?:generatecontent|embedcontents?|generateanswer|generatetext|generatemessage|embedtext)|count(?:message|text)?tokens|computetokens|(?:raw|streamraw|serverstreaming|direct)?predict|predictlongrunning|fetchpredictoperation";

/** The first matching pattern decides. */
const pathClaims: ReadonlyArray<readonly [RegExp, PathClaim]> = [
  // Paths of Code Assist, which gemini-cli calls for users with a Google account.
  [/^\/v1internal(?:[:/]|$)/, { upstreams: ["code-assist"] }],
  [/\/publishers\/[^/]+\/models\/|^\/v1\w*\/projects\/[^/]+\/locations(?:\/|$)/, vertex],
  [/^(?:\/upload|\/download|\/resumable\/upload)?\/v1(?:beta|alpha)\w*(?:\/|$)/, googles],
  [/^(?:\/upload|\/download|\/resumable\/upload)\/v1(?:\/|$)/, googles],
  [new RegExp(`:(?:${googleCalls})(?:/|$)`), googles],
  [/^\/v1\/(?:tunedmodels|cachedcontents|corpora|filesearchstores|interactions)(?:\/|$)/, googles],
  [/(?:^|\/)v1\/(?:messages|complete|organizations)(?:\/|$)/, { upstreams: ["anthropic"] }],
  // Requests that claude-code sends to Anthropic besides messages, some of them without a credential.
  [/^\/api\/(?:hello|oauth|claude_\w+|event_logging)(?:\/|$)/, { upstreams: ["anthropic"] }],
  [/^\/model\/[^/]+\/(?:invoke|converse|count-tokens)/, { upstreams: ["bedrock"] }],
  [/^\/openai\/deployments\//, foreignClaim("azure")],
  [/^\/api\/(?:chat|generate|embed|embeddings|tags|show|ps|version)(?:\/|$)/, { upstreams: ["ollama"] }],
  // Requests that change the models of a server. The default upstream is this machine's own Ollama, so only an upstream of the
  // operator gets them, by its name.
  [/^\/api\/(?:pull|push|create|copy|delete|blobs)(?:\/|$)/, foreignClaim("ollama")],
  [/^\/v2\/(?:chat|embed|rerank|classify|models)(?:\/|$)/, { upstreams: ["cohere"] }],
  // Anthropic also serves this path of OpenAI's.
  [/^(?:\/v1)?\/chat\/completions(?:\/|$)/, { upstreams: ["openai", "anthropic"] }],
  [
    /^(?:\/v1)?\/(?:responses|completions|embeddings|moderations|audio|images|videos|realtime|assistants|threads|vector_stores|fine_tuning|evals|containers|conversations|organization|chatkit)(?:\/|$)/,
    { upstreams: ["openai"] },
  ],
];

/** A part of a request that points to a vendor. */
export interface Sign {
  readonly vendor: Vendor;
  /** Name of the header or query parameter, for messages. The value is never included. */
  readonly at: string;
  /**
   * `protocol`: a header that only one vendor uses; `value`: a credential that identifies its vendor; `name`: a name that several vendors
   * use.
   */
  readonly kind: "protocol" | "value" | "name";
}

/**
 * Finds all signs in a request.
 *
 * @param query the request's query
 */
export const signsOf = (headers: RelayHeaders, query: URLSearchParams): ReadonlyArray<Sign> => {
  // Some clients send the same key under several names, or send an empty value. The further names are then no sign of a vendor.
  const isRepeat = (value: string) => value.trim() === "" || bearersIn(headers).includes(value.trim());
  const signs: Array<Sign> = [];
  for (const [name, value] of headers) {
    const words = headerWords(name);
    if (!words.isSilent) signs.push(...signsAt(words, value, isRepeat));
  }
  for (const [name, value] of query) signs.push(...signsAt(wordsOf(name, querySign), value, isRepeat));
  return signs;
};

const bearersIn = (headers: RelayHeaders): ReadonlyArray<string> =>
  headers.flatMap(([name, value]) =>
    name.toLowerCase() === "authorization" ? [value.replace(/^\s*bearer\s+/i, "").trim()] : [],
  );

/**
 * True if text contains a key that identifies its vendor. This runs for every header of every request, so it is a single regular
 * expression.
 */
export const hasVendorKey = (text: string): boolean => anyKey.test(text);

type NameSign = readonly [vendor: Vendor, kind: Sign["kind"]];

/** The meaning of a header or parameter name, whatever its value. */
interface NameWords {
  /** The name in lower case. */
  readonly name: string;
  readonly named: NameSign | undefined;
  /** True if neither the name nor its value can identify a vendor. */
  readonly isSilent: boolean;
}

const wordsOf = (given: string, signOf: (name: string) => NameSign | undefined): NameWords => {
  const name = given.toLowerCase();
  const named = signOf(name);
  const isSilent = name === tokenHeader || (named === undefined && !/key|token|auth|secret|credential/.test(name));
  return { name, named, isSilent };
};

/** Classifies the name of a header. Results are cached, because clients send the same dozen names with every request. */
const headerWords = (given: string): NameWords => {
  const known = headerNames.get(given);
  if (known !== undefined) return known;
  const words = wordsOf(given, headerSign);
  if (given.length > nameCharactersMax) return words;
  headerNames.set(given, words);
  dropOldest(headerNames, namesMax);
  return words;
};

/** Cache of classified names, at most `namesMax`. */
const headerNames = new Map<string, NameWords>();

const namesMax = 256;

/** Maximum length of a cached name, in characters. */
const nameCharactersMax = 64;

const signsAt = (
  { isSilent, name, named }: NameWords,
  value: string,
  isRepeat: (value: string) => boolean,
): ReadonlyArray<Sign> => {
  if (isSilent) return [];
  const values = !hasVendorKey(value)
    ? []
    : keys.flatMap(
        ([pattern, vendor]): Array<Sign> => (pattern.test(value) ? [{ vendor, at: name, kind: "value" }] : []),
      );
  // A credential that identifies its vendor has precedence over a name that several vendors use.
  if (named === undefined || (named[1] === "name" && (values.length > 0 || isRepeat(value)))) return values;
  return [{ vendor: named[0], at: name, kind: named[1] }, ...values];
};

/** Headers that proxies of Google and AWS add to every request. */
const ofProxies = /^(?:x-goog-(?:iap-|authenticated-user-)|x-amz-cf-)/;

const headerSign = (name: string): NameSign | undefined => {
  if (ofProxies.test(name)) return undefined;
  if (name.startsWith("x-goog-")) return ["gemini", "protocol"];
  if (name.startsWith("anthropic-")) return ["anthropic", "protocol"];
  if (name.startsWith("x-amz-")) return ["bedrock", "protocol"];
  if (name === "openai-organization" || name === "openai-project") return ["openai", "protocol"];
  if (name === "x-api-key") return ["anthropic", "name"];
  return name === "api-key" || name === "ocp-apim-subscription-key" ? ["azure", "name"] : undefined;
};

const querySign = (name: string): NameSign | undefined => {
  if (name === "key" || name === "access_token" || name === "oauth_token") return ["gemini", "name"];
  if (name.startsWith("x-amz-")) return ["bedrock", "protocol"];
  return name === "api-key" || name === "subscription-key" ? ["azure", "name"] : undefined;
};

/** First characters of keys that identify their vendor, as regular expressions. */
const keyBeginnings = [
  ["sk-ant-", "anthropic"],
  ["sk-(?:proj|svcacct|admin)-|sk-[\\w-]*T3BlbkFJ", "openai"],
  ["AIza[\\w-]{4}|ya29\\.|AQ\\.A[\\w-]{4}", "gemini"],
  ["AWS4-HMAC-SHA256\\b|ABSK[\\w+/]{4}|bedrock-api-key-", "bedrock"],
  ["csk-", "cerebras"],
  ["dapi[0-9a-f]{8}", "databricks"],
  ["fw_", "fireworks"],
  ["gh[opsu]_|github_pat_", "github"],
  ["gsk_", "groq"],
  ["hf_", "huggingface"],
  ["nvapi-", "nvidia"],
  ["sk-or-", "openrouter"],
  ["pplx-", "perplexity"],
  ["r8_", "replicate"],
  ["xai-", "xai"],
] as const;

/** Matches a key at the start of a value or after an authentication scheme. */
const keyBeginning = (beginning: string): RegExp => new RegExp(`(?:^|[\\s,;:="'])(?:${beginning})`);

const keys: ReadonlyArray<readonly [RegExp, Vendor]> = keyBeginnings.map(([beginning, vendor]) => [
  keyBeginning(beginning),
  vendor,
]);

const anyKey = keyBeginning(keyBeginnings.map(([beginning]) => `(?:${beginning})`).join("|"));
