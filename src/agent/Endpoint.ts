/**
 * Says where a protocol's requests go, and which headers carry the key.
 */
import { Config, Effect, Option, Redacted } from "effect";
import type { RequestHeaders } from "../client/index.ts";
import { type ProtocolId, protocols } from "../provider/Protocols.ts";
import { AgentError } from "./conversation/AgentError.ts";

/**
 * Checks an address before it is stored: it must not contain a key.
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
  const { path, query = {}, version } = protocols.get(protocol).address;
  const address = new URL(url);
  const base = address.pathname.replace(/\/+$/, "");
  const tail = path(model);
  if (!base.endsWith(tail)) {
    const versioned = /\/v\d+[a-z0-9]*$/.test(base);
    address.pathname = `${base}${versioned ? "" : version}${tail}`;
  }
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  return address.href;
};

/**
 * The headers of a request; the key is read from the environment for every attempt, and is not kept.
 *
 * @param keyEnv the variable that holds the key; without a value no key is sent
 */
export const headers = (protocol: ProtocolId, keyEnv: string): Effect.Effect<RequestHeaders, unknown> =>
  Effect.map(Config.option(Config.Redacted(keyEnv)), (key) =>
    protocols.get(protocol).address.headers(Option.isNone(key) ? undefined : Redacted.value(key.value)),
  );
