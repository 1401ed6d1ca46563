/**
 * Tells whose a request is: the vendors whose servers know its path, and the vendors whose credentials it carries.
 *
 * Everything is looked at in every spelling that a server may read: a path decoded and without empty segments, header names
 * without case, each of several headers of a name, and credentials in the query. What this table does not have says nothing.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { UpstreamName } from "../config/Options.ts";
import { tokenHeader } from "../config/OwnHeaders.ts";

/** Vendors that no upstream of a gateway is named after. */
type ForeignVendor = keyof typeof foreignWords;

/** A vendor whose credentials or paths are known. */
export type Vendor = UpstreamName | ForeignVendor;

const foreignWords = {
  azure: "Azure",
  aws: "AWS",
  cerebras: "Cerebras",
  cohere: "Cohere",
  databricks: "Databricks",
  fireworks: "Fireworks",
  github: "GitHub",
  groq: "Groq",
  huggingface: "Hugging Face",
  nvidia: "NVIDIA",
  ollama: "Ollama",
  openrouter: "OpenRouter",
  perplexity: "Perplexity",
  replicate: "Replicate",
  xai: "xAI",
} as const;

/** The vendors' names as a sentence has them. */
export const vendorWords: Readonly<Record<Vendor, string>> = {
  openai: "OpenAI",
  anthropic: "Anthropic",
  gemini: "Google",
  ...foreignWords,
};

/** The vendor whose domain a host is of; undefined for a host of no known vendor, or one that a cloud rents out. */
export const ownerOf = (hostname: string): Vendor | undefined =>
  rented.test(hostname)
    ? undefined
    : owners.find(([domain]) => hostname === domain || hostname.endsWith(`.${domain}`))?.[1];

/** Machines and front ends that a cloud's customers name. */
const rented = /\.(?:elb|compute|compute-1|execute-api|cloudapp)\.(?:[\w-]+\.)*(?:amazonaws|azure)\.com$/;

/**
 * Whether a host is of this machine or of a network that its operator runs: addresses that no router of the Internet
 * forwards, and names that its name service does not have.
 */
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
  ["googleapis.com", "gemini"],
  // GitHub's models on a host of Azure, with GitHub's keys.
  ["models.inference.ai.azure.com", "github"],
  ["azure.com", "azure"],
  ["amazonaws.com", "aws"],
  ["api.aws", "aws"],
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

/** What a path says. */
export interface PathClaim {
  /** Upstreams whose servers may know the path, the likeliest first. */
  readonly upstreams: ReadonlyArray<UpstreamName>;
  /** The vendor that alone has this path, where it is none of the three. */
  readonly foreign?: ForeignVendor;
  /** A path of Vertex AI, where Anthropic's own headers are at home too. */
  readonly vertex?: true;
  /** Every vendor may have the path: it says nothing of whom its client means. */
  readonly shared?: true;
}

/**
 * Reads a path as the most lenient server would: every percent escape decoded, however often it was encoded.
 *
 * @param pathname as `URL` gives it
 * @returns undefined for one that no client writes: encoded again and again, or with `..`, a control character or a backslash
 */
export const plainPath = (pathname: string): string | undefined => {
  let plain = pathname;
  for (let round = 0; /%[0-9a-f]{2}/i.test(plain); round += 1) {
    if (round === encodingsMax) return undefined;
    plain = plain.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  // Control characters are what is looked for: a server may cut or split a path at one.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as said above
  if (/[\u0000-\u001f\u007f\\]|(?:^|\/)\.\.(?:\/|$)/.test(plain)) return undefined;
  return plain.replaceAll(/\/(?:\.?\/)+/g, "/");
};

/** More rounds of encoding than any proxy chain takes off. */
const encodingsMax = 4;

/**
 * Says whose a path is.
 *
 * @param path plain, as `plainPath` gives it
 */
export const claimOf = (path: string): PathClaim => {
  const lower = path.toLowerCase();
  return pathClaims.find(([pattern]) => pattern.test(lower))?.[1] ?? everyVendors;
};

/** A path that every vendor may have, such as `/v1/models`: OpenAI's, unless the request says otherwise. */
const everyVendors: PathClaim = { upstreams: ["openai", "anthropic", "gemini"], shared: true };

const googles: PathClaim = { upstreams: ["gemini"] };
const vertex: PathClaim = { upstreams: ["gemini", "anthropic", "openai"], vertex: true };
const foreign = (vendor: ForeignVendor): PathClaim => ({
  upstreams: ["openai", "anthropic", "gemini"],
  foreign: vendor,
});

/** The calls of Google's models; other words behind a colon are parts of a model's name (`llama3:8b`, `ft:gpt-4o:org::id`). */
const googleCalls =
  "(?:stream|batch|asyncbatch|bidi)?(?:generatecontent|embedcontents?|generateanswer|generatetext|generatemessage|embedtext)|count(?:message|text)?tokens|computetokens|(?:raw|streamraw|serverstreaming|direct)?predict|predictlongrunning|fetchpredictoperation";

/** In order: the first that fits says it. */
const pathClaims: ReadonlyArray<readonly [RegExp, PathClaim]> = [
  [/\/publishers\/[^/]+\/models\/|^\/v1\w*\/projects\/[^/]+\/locations(?:\/|$)/, vertex],
  [/^(?:\/upload|\/download|\/resumable\/upload)?\/v1(?:beta|alpha)\w*(?:\/|$)/, googles],
  [/^(?:\/upload|\/download|\/resumable\/upload)\/v1(?:\/|$)/, googles],
  [new RegExp(`:(?:${googleCalls})(?:/|$)`), googles],
  [/^\/v1\/(?:tunedmodels|cachedcontents|corpora|filesearchstores|interactions)(?:\/|$)/, googles],
  // Code Assist, which gemini-cli calls for a Google account.
  [/^\/v1internal(?:[:/]|$)/, googles],
  [/(?:^|\/)v1\/(?:messages|complete|organizations)(?:\/|$)/, { upstreams: ["anthropic"] }],
  // What claude-code asks its own server beside messages, also before it has a credential.
  [/^\/api\/(?:hello|oauth|claude_\w+|event_logging)(?:\/|$)/, { upstreams: ["anthropic"] }],
  [/^\/model\/[^/]+\/(?:invoke|converse|count-tokens)/, foreign("aws")],
  [/^\/openai\/deployments\//, foreign("azure")],
  [/^\/api\/(?:chat|generate|embed|embeddings|tags|show|ps|pull)(?:\/|$)/, foreign("ollama")],
  [/^\/v2\/(?:chat|embed|rerank)(?:\/|$)/, foreign("cohere")],
  // Anthropic answers to OpenAI's path as well.
  [/^(?:\/v1)?\/chat\/completions(?:\/|$)/, { upstreams: ["openai", "anthropic"] }],
  [
    /^(?:\/v1)?\/(?:responses|completions|embeddings|moderations|audio|images|videos|realtime|assistants|threads|vector_stores|fine_tuning|evals|containers|conversations|organization|chatkit)(?:\/|$)/,
    { upstreams: ["openai"] },
  ],
];

/** One thing in a request that says whose it is. */
export interface Sign {
  readonly vendor: Vendor;
  /** Where it stands, for a sentence: the name of a header or of a query's part. Never its value. */
  readonly at: string;
  /** `protocol`: a header of one vendor's; `value`: a credential that names its vendor; `name`: a name that others use too. */
  readonly kind: "protocol" | "value" | "name";
}

/**
 * Finds everything that says whose a request is.
 *
 * @param query the request's own
 */
export const signsOf = (headers: RelayHeaders, query: URLSearchParams): ReadonlyArray<Sign> => {
  // Clients that cannot tell which name a server reads send one key by several, or an empty one.
  const repeats = (value: string) => value.trim() === "" || bearersIn(headers).includes(value.trim());
  const signs: Array<Sign> = [];
  for (const [name, value] of headers) {
    const words = headerWords(name);
    if (!words.isSilent) signs.push(...signsAt(words, value, repeats));
  }
  for (const [name, value] of query) signs.push(...signsAt(wordsOf(name, querySign), value, repeats));
  return signs;
};

const bearersIn = (headers: RelayHeaders): ReadonlyArray<string> =>
  headers.flatMap(([name, value]) =>
    name.toLowerCase() === "authorization" ? [value.replace(/^\s*bearer\s+/i, "").trim()] : [],
  );

/** Whether a text holds a key that names its vendor: one expression for all, because every header of a request is asked. */
export const holdsKey = (text: string): boolean => anyKey.test(text);

type NameSign = readonly [vendor: Vendor, kind: Sign["kind"]];

/** What a name says, whatever its value. */
interface NameWords {
  /** In lower case. */
  readonly name: string;
  readonly named: NameSign | undefined;
  /** Nothing at this name says whose a request is. */
  readonly isSilent: boolean;
}

const wordsOf = (given: string, signOf: (name: string) => NameSign | undefined): NameWords => {
  const name = given.toLowerCase();
  const named = signOf(name);
  const isSilent = name === tokenHeader || (named === undefined && !/key|token|auth|secret|credential/.test(name));
  return { name, named, isSilent };
};

/** What a header's name says; clients send the same dozen with every request. */
const headerWords = (given: string): NameWords => {
  const known = headerNames.get(given);
  if (known !== undefined) return known;
  const words = wordsOf(given, headerSign);
  if (given.length > nameCharactersMax) return words;
  headerNames.set(given, words);
  dropOldest(headerNames, namesMax);
  return words;
};

/** Names that are remembered, at most `namesMax`. */
const headerNames = new Map<string, NameWords>();

const namesMax = 256;

/** Longest name that is remembered, in characters. */
const nameCharactersMax = 64;

const signsAt = (
  { isSilent, name, named }: NameWords,
  value: string,
  repeats: (value: string) => boolean,
): ReadonlyArray<Sign> => {
  if (isSilent) return [];
  const values = !holdsKey(value)
    ? []
    : keys.flatMap(
        ([pattern, vendor]): Array<Sign> => (pattern.test(value) ? [{ vendor, at: name, kind: "value" }] : []),
      );
  // A credential that names its vendor says more than a name that others use too.
  if (named === undefined || (named[1] === "name" && (values.length > 0 || repeats(value)))) return values;
  return [{ vendor: named[0], at: name, kind: named[1] }, ...values];
};

/** What proxies of Google and AWS add to the requests of every client behind them. */
const ofProxies = /^(?:x-goog-(?:iap-|authenticated-user-)|x-amz-cf-)/;

const headerSign = (name: string): NameSign | undefined => {
  if (ofProxies.test(name)) return undefined;
  if (name.startsWith("x-goog-")) return ["gemini", "protocol"];
  if (name.startsWith("anthropic-")) return ["anthropic", "protocol"];
  if (name.startsWith("x-amz-")) return ["aws", "protocol"];
  if (name === "openai-organization" || name === "openai-project") return ["openai", "protocol"];
  if (name === "x-api-key") return ["anthropic", "name"];
  return name === "api-key" || name === "ocp-apim-subscription-key" ? ["azure", "name"] : undefined;
};

const querySign = (name: string): NameSign | undefined => {
  if (name === "key" || name === "access_token" || name === "oauth_token") return ["gemini", "name"];
  if (name.startsWith("x-amz-")) return ["aws", "protocol"];
  return name === "api-key" || name === "subscription-key" ? ["azure", "name"] : undefined;
};

/** How keys begin that name their vendor. */
const keyBeginnings = [
  ["sk-ant-", "anthropic"],
  ["sk-(?:proj|svcacct|admin)-|sk-[\\w-]*T3BlbkFJ", "openai"],
  ["AIza[\\w-]{4}|ya29\\.|AQ\\.A[\\w-]{4}", "gemini"],
  ["AWS4-HMAC-SHA256\\b|ABSK[\\w+/]{4}|bedrock-api-key-", "aws"],
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

/** At the beginning of a value or behind its scheme. */
const keyBeginning = (beginning: string): RegExp => new RegExp(`(?:^|[\\s,;:="'])(?:${beginning})`);

const keys: ReadonlyArray<readonly [RegExp, Vendor]> = keyBeginnings.map(([beginning, vendor]) => [
  keyBeginning(beginning),
  vendor,
]);

const anyKey = keyBeginning(keyBeginnings.map(([beginning]) => `(?:${beginning})`).join("|"));
