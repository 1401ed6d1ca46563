/**
 * Names the path of a request that a `fetch` sends. `fetch` cannot make a connection without a request, so the path cannot be probed. A
 * waiting request is sent as the probe.
 */
import type { Path } from "../../paths/Path.ts";
import type { RelayRequest } from "../relay/RelayTransport.ts";
import { credentialIn, digestCharacters } from "../relay/RelayTransport.ts";

/** Returns the path of a request: its origin, with a digest of the credential that it carries. */
export const pathOf = async ({ headers, url }: Pick<RelayRequest, "headers" | "url">): Promise<Path> => {
  const id = new URL(url).origin;
  const credential = credentialIn(url, headers);
  return credential === "" ? { id } : { id, credential: await digestOf(credential) };
};

/** A key of this process that cannot be exported, so a leaked digest cannot be tested against guessed credentials. */
let key: ReturnType<typeof newKey> | undefined;

const newKey = () => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

const digestOf = async (credential: string): Promise<string> => {
  key ??= newKey();
  const signed = await crypto.subtle.sign("HMAC", await key, new TextEncoder().encode(credential));
  const hex = Array.from(new Uint8Array(signed), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.slice(0, digestCharacters);
};
