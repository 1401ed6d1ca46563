/**
 * Says where a protocol's requests go and how they prove who asks.
 */
import { Config, Effect, Option, Redacted } from "effect";
import type { RequestHeaders } from "../client/index.ts";
import type { ProtocolId } from "../provider/stream/Protocol.ts";
import { AgentError } from "./conversation/AgentError.ts";

interface Vendor {
  readonly url: string;
  readonly keyEnv: string;
  /** What stands before the path where a base address does not name a version. */
  readonly version: string;
  readonly path: (model: string) => string;
  readonly headers: (key: string) => RequestHeaders;
}

const bearer = (key: string): RequestHeaders => ({ authorization: `Bearer ${key}` });

/** The vendor of each protocol: its address, where its key lies, and how a request is addressed. */
export const vendors: Readonly<Record<ProtocolId, Vendor>> = {
  "openai-chat": {
    url: "https://api.openai.com/v1",
    keyEnv: "OPENAI_API_KEY",
    version: "/v1",
    path: () => "/chat/completions",
    headers: bearer,
  },
  "openai-responses": {
    url: "https://api.openai.com/v1",
    keyEnv: "OPENAI_API_KEY",
    version: "/v1",
    path: () => "/responses",
    headers: bearer,
  },
  "anthropic-messages": {
    url: "https://api.anthropic.com/v1",
    keyEnv: "ANTHROPIC_API_KEY",
    version: "/v1",
    path: () => "/messages",
    headers: (key) => ({ "x-api-key": key }),
  },
  "google-gemini": {
    url: "https://generativelanguage.googleapis.com/v1beta",
    keyEnv: "GEMINI_API_KEY",
    version: "/v1beta",
    path: (model) => `/models/${encodeURIComponent(model)}:streamGenerateContent`,
    headers: (key) => ({ "x-goog-api-key": key }),
  },
};

/**
 * Checks an address before it is stored: a key must not stand in it.
 *
 * @param url a base address (`https://host/v1`), or a protocol's whole endpoint
 */
export const checked = (url: string): Effect.Effect<string, AgentError> => {
  const refused = (message: string) => Effect.fail(new AgentError({ reason: "refused", message: `url: ${message}` }));
  if (!URL.canParse(url)) return refused("expected an address like https://api.openai.com/v1");
  const parsed = new URL(url);
  if (!/^https?:$/.test(parsed.protocol)) return refused(`expected http or https, got ${parsed.protocol}`);
  const named = [...parsed.searchParams.keys()].some((name) => /key|token|secret|auth/i.test(name));
  if (parsed.username !== "" || parsed.password !== "" || named) {
    return refused("a key stands in it; name the environment variable that holds it instead");
  }
  return Effect.succeed(url);
};

/**
 * The address of a protocol's streaming endpoint.
 *
 * @param url a base address with or without its version, or the whole endpoint
 */
export const endpoint = (protocol: ProtocolId, url: string, model: string): string => {
  const { path, version } = vendors[protocol];
  const address = new URL(url);
  const base = address.pathname.replace(/\/+$/, "");
  const tail = path(model);
  if (!base.endsWith(tail)) {
    const versioned = /\/v\d+[a-z0-9]*$/.test(base);
    address.pathname = `${base}${versioned ? "" : version}${tail}`;
  }
  // Without it Gemini answers with a list at once, and streams nothing.
  if (protocol === "google-gemini") address.searchParams.set("alt", "sse");
  return address.href;
};

/**
 * The headers of a request; the key is read from the environment for every attempt, and held nowhere.
 *
 * @param keyEnv the variable that holds the key; without a value no key is sent
 */
export const headers = (protocol: ProtocolId, keyEnv: string): Effect.Effect<RequestHeaders, unknown> =>
  Effect.map(Config.option(Config.Redacted(keyEnv)), (key) => ({
    ...(protocol === "anthropic-messages" ? { "anthropic-version": "2023-06-01" } : {}),
    ...(Option.isNone(key) ? {} : vendors[protocol].headers(Redacted.value(key.value))),
  }));
