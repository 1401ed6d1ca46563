/**
 * Signs messages between processes of a gateway: an HMAC over the message, its time and a nonce, under a key that is derived from
 * the store's secret and never sent. A signature is valid once, and only briefly.
 */
import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from "node:crypto";

/** Header with the signature: time, nonce and HMAC. */
export const signatureHeader = "x-recovery-signature";

/** Maximum difference between a signature's time and this process's clock, in milliseconds. */
export const signatureMs = 10_000;

/** Maximum number of nonces that a process remembers, and thus of messages within the validity of a nonce. */
const noncesMax = 262_144;

/** Signs and verifies messages. A process has one instance. */
export class HopSignature {
  readonly #key: KeyObject;
  readonly #now: () => number;
  readonly #max: number;
  /** Used nonces with the time at which their signatures expire, oldest first. */
  readonly #used = new Map<string, number>();

  /**
   * @param now milliseconds since the epoch
   * @param max maximum number of remembered nonces
   */
  constructor(key: KeyObject, now: () => number, max = noncesMax) {
    this.#key = key;
    this.#now = now;
    this.#max = max;
  }

  /** @param aheadMs time by which the receiver's clock is ahead of this one, in milliseconds */
  sign(word: string, aheadMs = 0): string {
    const signed = `${this.#now() + Math.round(aheadMs)}.${randomUUID()}`;
    return `${signed}.${this.#hmac(signed, word)}`;
  }

  /** True if the signature is valid for this message, was made with the key, and was not used before. */
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
    // A nonce must be remembered while its signature is valid, so without room every signature is rejected.
    if (this.#used.has(nonce) || this.#used.size >= this.#max) return false;
    this.#used.set(nonce, now + 2 * signatureMs);
    return true;
  }

  #hmac(signed: string, word: string): string {
    return createHmac("sha256", this.#key).update(`${signed}.${word}`).digest("base64url");
  }
}
