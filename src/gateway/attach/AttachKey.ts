/**
 * Computes two keys of a run: one of its request, one of the client that may read the response.
 *
 * Each key is an HMAC under a secret of this gateway. A leaked key cannot be tested against guessed credentials and is useless at another
 * gateway.
 */
import { createHmac, generateKeySync, type Hmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Redacted } from "effect";
import { type RelayRequest, valuesOf } from "../../adapters/relay/RelayTransport.ts";
import { formHash } from "../body/FormHash.ts";
import { moveHeader, routeHeader } from "../config/OwnHeaders.ts";
import { credentialsIn } from "../routing/OwnCredential.ts";
import { sharedKey } from "../workers/SharedKey.ts";

/** The parts of a request that determine its key. */
export interface KeyedRequest extends Pick<RelayRequest, "body" | "headers" | "method" | "tenant"> {
  readonly upstream: string;
  /** Path and query without the gateway's own prefixes. */
  readonly target: string;
}

/** The parts of a request that identify the client that may read a response. */
export type Holder = Pick<KeyedRequest, "headers" | "target" | "tenant">;

/**
 * Headers that distinguish requests with equal bodies. Versions and betas change the provider's response; the gateway's own headers change
 * the route.
 */
const choosing = ["anthropic-version", "anthropic-beta", "openai-beta", routeHeader, moveHeader];

/** The key ignores no field of a body, since streaming and usage options change the response. */
const nothing: ReadonlySet<string> = new Set();

/**
 * Computes keys, synchronously except for large bodies: a digest takes a few microseconds, a round trip to a worker thread ten times as
 * long. A process has one instance.
 */
export class AttachKeys {
  readonly #key: KeyObject;
  /** Cache of holder keys by their input, because a gateway usually has few clients. It holds at most `holdersMax` entries. */
  readonly #holders = new Map<string, string>();

  /** @param secret common to the processes of one store, so that they compute the same keys */
  constructor(secret?: Redacted.Redacted<string>) {
    this.#key = secret === undefined ? generateKeySync("hmac", { length: 256 }) : sharedKey(secret, "attach");
  }

  /** Computes the key of a request from its method, upstream, target, canonical body, credentials and token name. */
  request(request: KeyedRequest): string | Promise<string> {
    const { body, headers, method, target, tenant, upstream } = request;
    const shown = credentialsOf(request);
    const given = choosing.map((name) => valuesOf(headers, name));
    const words = ["request", tenant ?? null, method, upstream, target, shown, given];
    return formHash({ words, body, leftOut: nothing }, this.#newHmac());
  }

  /** Computes the key of the client that may read a response from all its credentials and its token name. */
  holderKey(holder: Holder): string {
    const words = JSON.stringify(["holder", holder.tenant ?? null, credentialsOf(holder)]);
    const known = this.#holders.get(words);
    if (known !== undefined) return known;
    const key = this.#newHmac().update(words).digest("hex");
    if (words.length > wordsCharactersMax) return key;
    if (this.#holders.size >= holdersMax) this.#holders.clear();
    this.#holders.set(words, key);
    return key;
  }

  #newHmac(): Hmac {
    return createHmac("sha256", this.#key);
  }
}

const credentialsOf = ({ headers, target }: Pick<Holder, "headers" | "target">) =>
  credentialsIn({ url: target, headers });

const holdersMax = 32;

/** Maximum length of the input of a cached key, in characters. */
const wordsCharactersMax = 1_024;

/** Compares two keys in constant time. */
export const isSameKey = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
};
