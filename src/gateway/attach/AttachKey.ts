/**
 * Computes the keys of runs: by request, and by who may read the response.
 *
 * A key is a digest under a secret key of this process. A leaked key cannot be tested against guessed credentials and is useless at another
 * gateway.
 */
import { createHmac, generateKeySync, type Hmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Redacted } from "effect";
import { type RelayRequest, valuesOf } from "../../adapters/relay/RelayTransport.ts";
import { formHash } from "../body/FormHash.ts";
import { moveHeader, routeHeader } from "../config/OwnHeaders.ts";
import { credentialsIn } from "../routing/OwnCredential.ts";
import { sharedKey } from "../workers/SharedKey.ts";

/** The parts of a request that identify it. */
export interface KeyedRequest extends Pick<RelayRequest, "body" | "headers" | "method" | "tenant"> {
  readonly upstream: string;
  /** Path and query without the gateway's own prefixes. */
  readonly target: string;
}

/** Identity of the client that may read a response. */
export type Holder = Pick<KeyedRequest, "headers" | "target" | "tenant">;

/**
 * Headers that distinguish requests with equal bodies: versions and betas change the provider's answer, and the gateway's own
 * headers change the route.
 */
const choosing = ["anthropic-version", "anthropic-beta", "openai-beta", routeHeader, moveHeader];

/** No field of a body is ignored, since streaming and usage options change the response. */
const nothing: ReadonlySet<string> = new Set();

/**
 * Computes keys, synchronously except for large bodies. A digest takes a few microseconds, and a round trip to a thread would take ten
 * times as long. A process has one instance.
 */
export class AttachKeys {
  readonly #key: KeyObject;
  /** Holder keys by their input, at most `holdersMax`, since the same few clients return often. */
  readonly #holders = new Map<string, string>();

  /** @param secret shared by processes that serve as one, so that they compute the same keys */
  constructor(secret?: Redacted.Redacted<string>) {
    this.#key = secret === undefined ? generateKeySync("hmac", { length: 256 }) : sharedKey(secret, "attach");
  }

  /** Computes the key of a request: method, upstream, target, canonical body, all credentials and the name of its token. */
  request(request: KeyedRequest, shown = credentialsOf(request)): string | Promise<string> {
    const { body, headers, method, target, tenant, upstream } = request;
    const given = choosing.map((name) => valuesOf(headers, name));
    const words = ["request", tenant ?? null, method, upstream, target, shown, given];
    return formHash({ words, body, leftOut: nothing }, this.#newHmac());
  }

  /** Computes the key of the client that may read a response: all credentials and the name of its token. */
  holder(holder: Holder, shown = credentialsOf(holder)): string {
    const words = JSON.stringify(["holder", holder.tenant ?? null, shown]);
    const known = this.#holders.get(words);
    if (known !== undefined) return known;
    const key = this.#newHmac().update(words).digest("hex");
    if (words.length > wordsCharactersMax) return key;
    if (this.#holders.size >= holdersMax) this.#holders.clear();
    this.#holders.set(words, key);
    return key;
  }

  /** Computes both keys of a small request. */
  both(request: KeyedRequest): { readonly request: string | Promise<string>; readonly holder: string } {
    const shown = credentialsOf(request);
    return { request: this.request(request, shown), holder: this.holder(request, shown) };
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
