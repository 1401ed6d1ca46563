/**
 * Decides which requests a client may send with the operator's credential: model requests, model lists, token counts, and those that
 * `paths` permits.
 *
 * The operator's account also contains files, stored responses of other clients, batches and admin keys. The decision uses exactly the
 * address that is sent. A path in another spelling (escapes, empty segments, upper case, a trailing slash) matches no rule.
 */
import { type ProtocolId, protocols } from "../../provider/Protocols.ts";
import { type PathPattern, withoutVersion } from "../config/PathPattern.ts";

/** The parts of a request on which the decision depends. */
export interface AskedPath {
  readonly method: string;
  /** Path relative to the upstream's base address, as it is sent. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The permissions of an upstream and a token together. */
export interface PermittedPaths {
  /** Protocols of the upstream; undefined for all. */
  readonly protocols: ReadonlyArray<ProtocolId> | undefined;
  readonly paths: ReadonlyArray<PathPattern>;
}

/**
 * The decision. `Sent`: the request may be sent. `Named`: it may be sent if its body names no stored object of another client. `Stored`:
 * its path names a stored object, whose owner must be checked; `isListed` is true if `paths` permits the request.
 */
export type PathVerdict =
  | { readonly _tag: "Sent" }
  | { readonly _tag: "Named" }
  | { readonly _tag: "Stored"; readonly id: string; readonly isListed: boolean }
  | { readonly _tag: "Refused"; readonly why: "path" | "query" };

/** Decides whether a request may be sent. */
export const verdictOf = (asked: AskedPath, permitted: PermittedPaths): PathVerdict => {
  if ([...asked.query.keys()].some((name) => overrides.test(name))) return { _tag: "Refused", why: "query" };
  if (dots.test(asked.path)) return { _tag: "Refused", why: "path" };
  const path = withoutVersion(asked.path);
  const method = asked.method === "HEAD" ? "GET" : asked.method;
  const isListed = permitted.paths.some(
    (pattern) => (pattern.method ?? asked.method) === asked.method && pattern.path.test(path),
  );
  const hasPermittedProtocol = (protocols: ReadonlyArray<ProtocolId>) =>
    permitted.protocols === undefined || protocols.some((id) => permitted.protocols?.includes(id));
  const isBuiltIn = rules.some(
    (rule) => rule.methods.includes(method) && hasPermittedProtocol(rule.protocols) && rule.path.test(path),
  );
  if (!isBuiltIn && !isListed) return { _tag: "Refused", why: "path" };
  const id = kept.exec(path)?.[1];
  if (id !== undefined && !calls.has(id)) return { _tag: "Stored", id, isListed };
  return canNameStored(method, path) ? { _tag: "Named" } : { _tag: "Sent" };
};

/** True if the body of a request may name a stored response or conversation. */
export const canNameStored = (method: string, path: string): boolean => method === "POST" && responses.test(path);

/** Query parameters that replace the request's method, on Google's servers and in some frameworks. */
const overrides = /^\$?(?:http.*|_method)$/i;

/** Matches a dot segment, even if the slashes around it are escaped. */
const dots = /(?:^|\/|%2f)\.{1,2}(?:\/|%2f|$)/i;

const segment = "[\\w.~:@-]+";
/** Matches a model name, which is one segment. Only slashes and colons may be escaped in it. */
const model = "(?:[\\w.~:@-]|%2[Ff]|%3[Aa])+";
/** Prefixes of paths in OpenAI's protocols: those of Azure, and those on Google's hosts. */
const openai = "(?:/openai(?:/v\\d\\w*)?(?:/deployments/[\\w.-]+)?)?";
const vertex = `(?:/projects/${segment}/locations/${segment})?`;

interface Rule {
  readonly methods: ReadonlyArray<string>;
  readonly path: RegExp;
  readonly protocols: ReadonlyArray<ProtocolId>;
}

const rule = (methods: string, path: string, ...protocols: ReadonlyArray<ProtocolId>): Rule => ({
  methods: methods.split(" "),
  path: new RegExp(`^${path}$`),
  protocols,
});

/** Requests that need no entry in `paths`. They do not change the account, except that a provider may store a response. */
const rules: ReadonlyArray<Rule> = [
  rule("GET", `${openai}/models(?:/${model})?`, ...protocols.ids),
  rule("POST", `${openai}/chat/completions`, "openai-chat"),
  rule("POST", `${openai}/embeddings`, "openai-chat", "openai-responses"),
  rule("POST", `${openai}/responses(?:/input_tokens|/compact)?`, "openai-responses"),
  rule("GET", `${openai}/responses/[\\w.-]+(?:/input_items)?`, "openai-responses"),
  rule("DELETE", `${openai}/responses/[\\w.-]+`, "openai-responses"),
  rule("POST", `${openai}/responses/[\\w.-]+/cancel`, "openai-responses"),
  rule("POST", "/messages(?:/count_tokens)?", "anthropic-messages"),
  rule(
    "POST",
    `${vertex}/publishers/anthropic/models/${segment}:(?:streamRawPredict|rawPredict)`,
    "anthropic-messages",
  ),
  rule(
    "POST",
    `(?:${vertex}(?:/publishers/[\\w-]+)?/models|${vertex}/endpoints|/tunedModels)/[\\w.~@-]+:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)`,
    "google-gemini",
  ),
  rule("POST", `${vertex}/interactions`, "google-interactions"),
  rule("POST", `(?:${openai}(?:/fim)?/completions|/infill|/completion)`, "openai-completions"),
  rule("POST", "/v1internal:(?:generateContent|streamGenerateContent|countTokens)", "google-code-assist"),
  rule("POST", "(?:/v2)?/chat", "cohere-chat"),
  rule("POST", "/api/(?:chat|generate|embed|embeddings|show)", "ollama"),
  rule("GET", "/api/(?:tags|ps|version)", "ollama"),
  rule("POST", `/model/${model}/converse(?:-stream)?`, "bedrock-converse"),
  rule("POST", `/model/${model}/invoke(?:-with-response-stream)?`, "bedrock-invoke"),
  rule("POST", `/model/${model}/count-tokens`, "bedrock-converse", "bedrock-invoke"),
];

/** Matches the path of a stored response or conversation, and every path below it. */
const kept = /\/(?:responses|conversations)\/([\w.-]+)(?:\/|$)/;

/** Names of API calls that appear in a path in place of a response's id. */
const calls: ReadonlySet<string> = new Set(["input_tokens", "compact"]);

/**
 * Matches the path of a POST whose body may name a stored object. It is not anchored at the start, so that it matches after any prefix that
 * `paths` permits.
 */
const responses = /\/(?:responses(?:\/input_tokens|\/compact)?|conversations|interactions)$/;
