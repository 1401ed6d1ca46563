/**
 * Validates the address at which other gateways reach this one.
 */
import { Schema } from "effect";

/** Maximum length of an address, in characters. */
const charactersMax = 512;

const expected = "expected https://HOST[:PORT], or http://HOST[:PORT] of a loopback address, and nothing else";

/** Accepts plain HTTP only on the loopback interface. On a network, responses would otherwise be readable by others. */
const isAddress = (text: string): boolean => {
  if (text.length > charactersMax || /[\s?#\\@]/.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname, protocol } = new URL(text);
  if (pathname !== "/") return false;
  return protocol === "https:" || (protocol === "http:" && loopback.test(hostname));
};

/** Maximum number of characters of an invalid address that are quoted. */
const shownMax = 80;

const loopback = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/;

/** Quotes an invalid address without its user, password, path and query, because these may be secret. */
const redactAddress = (text: string): string => {
  if (!URL.canParse(text)) return "text that is not a URL";
  const { host, protocol } = new URL(text);
  const shown = `${protocol}//${host}`.slice(0, shownMax);
  return text === shown ? shown : `${shown}…`;
};

/** The origin of a gateway: `https`, or `http` on the loopback interface. */
export const GatewayAddress = Schema.String.check(
  Schema.makeFilter((text: string) => isAddress(text) || `${expected}, got ${redactAddress(text)}`, {
    toJsonSchema: () => ({ pattern: "^https?://[^/?#@\\s]+/?$" }),
  }),
);
