/**
 * Decides what a client may ask with the operator's credential: model requests, lists of models, token counts, and what `paths` permits.
 *
 * An account behind a credential also holds files, stored responses of colleagues, batches and admin keys. The decision reads the
 * address exactly as it leaves. A path in another spelling (escapes, empty segments, upper case, a slash at its end) fits nothing.
 */
import type { ProtocolId } from "../../provider/Protocols.ts";
import { type PathPattern, withoutVersion } from "../config/PathPattern.ts";

/** What is asked of an upstream. */
export interface AskedPath {
  readonly method: string;
  /** The path as it leaves, behind the upstream's base address. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** What an upstream and a token permit. */
export interface PermittedPaths {
  /** Undefined for every protocol. */
  readonly protocols: ReadonlyArray<ProtocolId> | undefined;
  readonly paths: ReadonlyArray<PathPattern>;
}

/**
 * What becomes of a request. `Named`: its body may name a stored response or conversation. `Stored`: its path names one, and `isListed`
 * says that `paths` permits it.
 */
export type PathVerdict =
  | { readonly _tag: "Sent" }
  | { readonly _tag: "Named" }
  | { readonly _tag: "Stored"; readonly id: string; readonly isListed: boolean }
  | { readonly _tag: "Refused"; readonly why: "path" | "query" };

/** Decides. */
export const verdictOf = (asked: AskedPath, permitted: PermittedPaths): PathVerdict => {
  if ([...asked.query.keys()].some((name) => overrides.test(name))) return { _tag: "Refused", why: "query" };
  if (dots.test(asked.path)) return { _tag: "Refused", why: "path" };
  const path = withoutVersion(asked.path);
  const method = asked.method === "HEAD" ? "GET" : asked.method;
  const isListed = permitted.paths.some(
    (pattern) => (pattern.method ?? asked.method) === asked.method && pattern.path.test(path),
  );
  const speaks = (protocols: ReadonlyArray<ProtocolId>) =>
    permitted.protocols === undefined || protocols.some((id) => permitted.protocols?.includes(id));
  const isBuiltIn = rules.some(
    (rule) => rule.methods.includes(method) && speaks(rule.protocols) && rule.path.test(path),
  );
  if (!isBuiltIn && !isListed) return { _tag: "Refused", why: "path" };
  const id = kept.exec(path)?.[1];
  if (id !== undefined && !calls.has(id)) return { _tag: "Stored", id, isListed };
  return namesStored(method, path) ? { _tag: "Named" } : { _tag: "Sent" };
};

/** Whether the body of a request may name a stored response or conversation. */
export const namesStored = (method: string, path: string): boolean => method === "POST" && responses.test(path);

/** Query parameters by which Google's servers and some frameworks take another method than the request's own. */
const overrides = /^\$?(?:http.*|_method)$/i;

/** A dot segment, also where a server decodes the slashes beside it. */
const dots = /(?:^|\/|%2f)\.{1,2}(?:\/|%2f|$)/i;

const segment = "[\\w.~:@-]+";
/** A model's name is one segment. Its slash or colon may be escaped, and nothing else. */
const model = "(?:[\\w.~:@-]|%2[Ff]|%3[Aa])+";
/** In front of OpenAI's paths: Azure's, and those of OpenAI's protocols on Google's host. */
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

const every = ["openai-chat", "openai-responses", "anthropic-messages", "google-gemini"] as const;

/** The calls that need no entry of `paths`. None of them changes the account, except that a provider may store a response. */
const rules: ReadonlyArray<Rule> = [
  rule("GET", `${openai}/models(?:/${model})?`, ...every),
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
];

/** A stored response or conversation, and everything behind it. */
const kept = /\/(?:responses|conversations)\/([\w.-]+)(?:\/|$)/;

/** Names of calls that stand where the id of a stored response does. */
const calls: ReadonlySet<string> = new Set(["input_tokens", "compact"]);

/** Behind any prefix that `paths` permits. */
const responses = /\/(?:responses(?:\/input_tokens|\/compact)?|conversations)$/;
