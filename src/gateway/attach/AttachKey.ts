/**
 * Makes the keys by which a run is found again: of its request, and of who may have its response.
 *
 * A key is a digest under a key of this process that cannot be read out: one that is seen somewhere can neither be tried against
 * guessed credentials nor be used at another gateway.
 */
import { createHmac, generateKeySync, type Hmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Redacted } from "effect";
import { type RelayRequest, valuesOf } from "../../adapters/relay/RelayTransport.ts";
import { formHash } from "../body/FormHash.ts";
import { moveHeader, routeHeader } from "../config/OwnHeaders.ts";
import { credentialsIn } from "../routing/OwnCredential.ts";
import { sharedKey } from "../workers/SharedKey.ts";

/** What of a request makes it the same as another one. */
export interface KeyedRequest extends Pick<RelayRequest, "body" | "headers" | "method" | "tenant"> {
  /** The upstream's name. */
  readonly upstream: string;
  /** Path and query, as the client sent them. */
  readonly target: string;
}

/** Whose a response is. */
export type Holder = Pick<KeyedRequest, "headers" | "target" | "tenant">;

/**
 * Headers that make another request of the same body: versions and betas change what a provider answers, wishes of the gateway's
 * own change the way that it takes.
 */
const choosing = ["anthropic-version", "anthropic-beta", "openai-beta", routeHeader, moveHeader];

/** Nothing of a body is left out: a document is no stream, and one with usage is no one without. */
const nothing: ReadonlySet<string> = new Set();

/**
 * Makes keys, each in the step in which it is asked for, but for the key of a large body: a digest takes some microseconds, and a
 * thread's answer to it would take ten times as many. One for a process.
 */
export class AttachKeys {
  readonly #key: KeyObject;
  /** Keys of holders by what they are made of, at most `holdersMax`: the same few ask again and again. */
  readonly #holders = new Map<string, string>();

  /** @param secret of several processes that serve as one: all of them make the same keys */
  constructor(secret?: Redacted.Redacted<string>) {
    this.#key = secret === undefined ? generateKeySync("hmac", { length: 256 }) : sharedKey(secret, "attach");
  }

  /** The key of a request: method, upstream, target, canonical body, every credential and the name of its token. */
  request(request: KeyedRequest, shown = credentialsOf(request)): string | Promise<string> {
    const { body, headers, method, target, tenant, upstream } = request;
    const given = choosing.map((name) => valuesOf(headers, name));
    const words = ["request", tenant ?? null, method, upstream, target, shown, given];
    return formHash({ words, body, leftOut: nothing }, this.#begun());
  }

  /** The key of who may have a response: every credential and the name of the token. */
  holder(holder: Holder, shown = credentialsOf(holder)): string {
    const words = JSON.stringify(["holder", holder.tenant ?? null, shown]);
    const known = this.#holders.get(words);
    if (known !== undefined) return known;
    const key = this.#begun().update(words).digest("hex");
    if (words.length > wordsCharactersMax) return key;
    if (this.#holders.size >= holdersMax) this.#holders.clear();
    this.#holders.set(words, key);
    return key;
  }

  /** Both keys of a small request. */
  both(request: KeyedRequest): { readonly request: string | Promise<string>; readonly holder: string } {
    const shown = credentialsOf(request);
    return { request: this.request(request, shown), holder: this.holder(request, shown) };
  }

  /** The digest of the name that a client gave its request. */
  named(idempotencyKey: string): string {
    return this.#begun()
      .update(JSON.stringify(["named", idempotencyKey]))
      .digest("hex");
  }

  #begun(): Hmac {
    return createHmac("sha256", this.#key);
  }
}

/** All of them, wherever they stand. */
const credentialsOf = ({ headers, target }: Pick<Holder, "headers" | "target">) =>
  credentialsIn({ url: target, headers });

/** Most holders whose keys are remembered. */
const holdersMax = 32;

/** Longest words that a key is remembered by, in characters. */
const wordsCharactersMax = 1_024;

/** Whether two keys are the same, in a time that says nothing of them. */
export const isSameKey = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
};
