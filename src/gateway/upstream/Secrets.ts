/**
 * Masks the operator's credential if a provider quotes it. Asterisks replace the bytes, so that lengths stay the same.
 */
import { Redacted } from "effect";
import { fieldOf, type RelayHead, type RelayRefusal } from "../../adapters/relay/RelayTransport.ts";
import { isCredentialName } from "../config/CredentialNames.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { type Bytes, isEncoded } from "./ContentDecoding.ts";
import { without } from "./Headers.ts";

/** Minimum length of a secret that is masked, in characters. A shorter value is a placeholder and may occur in ordinary words. */
export const maskedCharactersMin = 5;

/** Masks a set of secrets. */
export class Secrets {
  readonly #needles: ReadonlyArray<Buffer>;

  /** @param secrets exact values; their spellings in JSON and in URLs are masked too */
  constructor(secrets: ReadonlyArray<string>) {
    const needles = secrets.filter((secret) => secret.length >= maskedCharactersMin).flatMap(spellings);
    this.#needles = [...new Set(needles)].sort((one, other) => other.length - one.length).map((it) => Buffer.from(it));
  }

  text(given: string): string {
    return this.#isIn(Buffer.from(given)) ? this.bytes(Buffer.from(given)).toString() : given;
  }

  /** Masks bytes. They are copied only if they contain a secret. */
  bytes(given: Bytes): Buffer<ArrayBuffer> {
    const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    if (!this.#isIn(bytes)) return bytes;
    const masked = Buffer.from(bytes);
    for (const needle of this.#needles)
      for (let at = masked.indexOf(needle); at !== -1; at = masked.indexOf(needle, at + needle.length))
        masked.fill(asterisk, at, at + needle.length);
    return masked;
  }

  head({ headers, status, statusText }: RelayHead): RelayHead {
    return {
      status,
      statusText: this.text(statusText),
      headers: headers.map(([name, value]) => [name, this.text(value)] as const),
    };
  }

  /** Masks a provider's refusal. A body that is still compressed cannot be searched, so it is dropped. */
  refusal({ body, head, whole }: RelayRefusal): RelayRefusal {
    const { headers } = head;
    if (!isEncoded(fieldOf(headers, "content-encoding") ?? ""))
      return { head: this.head(head), body: [this.bytes(Buffer.concat(body))], whole };
    const plain = without(without(headers, "content-encoding"), "content-length");
    return { head: this.head({ ...head, headers: plain }), body: [], whole };
  }

  /** Returns the number of bytes at the end that may be the start of a secret. */
  #heldBackLength(bytes: Buffer): number {
    let held = 0;
    for (const needle of this.#needles)
      for (let size = Math.min(needle.length - 1, bytes.length); size > held; size -= 1)
        if (bytes.at(-size) === needle[0] && bytes.subarray(-size).equals(needle.subarray(0, size))) held = size;
    return held;
  }

  #isIn(bytes: Buffer): boolean {
    return this.#needles.some((needle) => bytes.includes(needle));
  }

  /** Masks a body as it arrives. Only bytes that may be the start of a secret are withheld until the next chunk. */
  async *body(chunks: AsyncIterable<Bytes>): AsyncGenerator<Bytes> {
    let rest: Bytes = nothing;
    for await (const chunk of chunks) {
      const bytes = this.bytes(rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]));
      const held = this.#heldBackLength(bytes);
      rest = bytes.subarray(bytes.length - held);
      if (held < bytes.length) yield bytes.subarray(0, bytes.length - held);
    }
    if (rest.byteLength > 0) yield rest;
  }
}

const nothing: Bytes = new Uint8Array(0);

const asterisk = "*".charCodeAt(0);

const spellings = (secret: string): ReadonlyArray<string> => {
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret.toWellFormed());
  return [
    ...[secret, json, json.replaceAll("/", "\\/")],
    ...[url, url.replaceAll(/%[0-9A-F]{2}/g, (written) => written.toLowerCase())],
  ];
};

/** Returns the secrets of an upstream; undefined if the upstream uses its clients' credentials. */
export const secretsOf = (server: UpstreamSettings): Secrets | undefined => {
  if (!hasOwnCredential(server)) return undefined;
  const known = secretsOfServers.get(server);
  if (known !== undefined) return known;
  const { aws, credential, headers } = server;
  const secrets = new Secrets([
    ...[credential, aws?.secretAccessKey, aws?.sessionToken].flatMap((it) =>
      it === undefined ? [] : Redacted.value(it),
    ),
    // The authentication scheme before the secret is not secret and is not masked.
    ...headers.flatMap(([name, value]) => (isCredentialName(name) ? [value.replace(/^\w+\s+/, "").trim()] : [])),
  ]);
  secretsOfServers.set(server, secrets);
  return secrets;
};

const secretsOfServers = new WeakMap<UpstreamSettings, Secrets>();
