/**
 * Signs messages between processes of a gateway: an HMAC over the message, the time and a nonce. The key is derived from the store's secret
 * and is never sent. A signature is valid for a short time and only once.
 */
import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from "node:crypto";

/** Header with the signature: time, nonce and HMAC. */
export const signatureHeader = "x-recovery-signature";

/** Maximum difference between the time in a signature and this process's clock, in milliseconds. */
export const signatureMs = 10_000;

/** Maximum number of remembered nonces. It limits the number of messages that are accepted while a nonce is valid. */
const noncesMax = 262_144;

/** Signs and verifies messages. A process has one instance. */
export class HopSignature {
  readonly #key: KeyObject;
  readonly #now: () => number;
  readonly #max: number;
  /** Used nonces, each with the time at which its signature expires, oldest first. */
  readonly #used = new Map<string, number>();

  /**
   * @param now returns milliseconds since the epoch
   * @param max maximum number of remembered nonces
   */
  constructor(key: KeyObject, now: () => number, max = noncesMax) {
    this.#key = key;
    this.#now = now;
    this.#max = max;
  }

  /** @param aheadMs offset of the receiver's clock from this process's clock, in milliseconds */
  sign(word: string, aheadMs = 0): string {
    const signed = `${this.#now() + Math.round(aheadMs)}.${randomUUID()}`;
    return `${signed}.${this.#hmac(signed, word)}`;
  }

  /** True if the signature belongs to this message and this key, has not expired, and is used for the first time. */
  isValid(word: string, signature: unknown): boolean {
    if (typeof signature !== "string") return false;
    const [time = "", nonce = "", hmac = ""] = signature.split(".");
    const [given, own] = [Buffer.from(hmac), Buffer.from(this.#hmac(`${time}.${nonce}`, word))];
    if (given.byteLength !== own.byteLength || !timingSafeEqual(given, own)) return false;
    const now = this.#now();
    return Math.abs(now - Number(time)) <= signatureMs && this.#use(nonce, now);
  }

  #use(nonce: string, now: number): boolean {
    for (const [used, until] of this.#used) {
      if (until >= now) break;
      this.#used.delete(used);
    }
    // A nonce must be remembered while its signature is valid. If there is no room for it, the signature is rejected.
    if (this.#used.has(nonce) || this.#used.size >= this.#max) return false;
    this.#used.set(nonce, now + 2 * signatureMs);
    return true;
  }

  #hmac(signed: string, word: string): string {
    return createHmac("sha256", this.#key).update(`${signed}.${word}`).digest("base64url");
  }
}
