/**
 * Seals what the delivery log keeps of a response with a key that its client holds: the store, and who reads it, has bytes that say nothing.
 *
 * The key is made of what the client shows when it comes back: its credentials, the gateway's token among them. Of these the store
 * has nothing, only a salt that is drawn for each run. A response whose client shows nothing that is secret is not kept.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** What a part of a response is. */
export type PartKind = "head" | "bytes" | "end" | "lock";

/** Where a part stands: sealed with it, so that no part can be taken for another one. */
export interface PartPlace {
  readonly run_id: string;
  readonly n: number;
  readonly at: number;
}

/** What was sealed. */
export interface OpenedPart {
  readonly kind: PartKind;
  readonly bytes: Buffer;
}

const cipher = "aes-256-gcm";
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** Drawn for each run: its key seals nothing else. */
export const saltBytes = 32;

/** Shortest secret that a client's key may be made of, in characters: as long as a token of the gateway's own. */
export const secretCharactersMin = 16;

const kinds: ReadonlyArray<PartKind> = ["head", "bytes", "end", "lock"];

/** The place of a lock, which is a part of nothing: it opens with the client's key. */
const lockPlace = (run_id: string): PartPlace => ({ run_id, n: -1, at: 0 });

/** The key of one run's client. */
export class DeliveryKey {
  readonly #key: Uint8Array;

  private constructor(key: Uint8Array) {
    this.#key = key;
  }

  /**
   * Makes it.
   *
   * @param holder what the client shows, or a digest of it that needs all of it
   */
  static of(holder: string, salt: Uint8Array, runId: string): DeliveryKey {
    const key = hkdfSync("sha256", holder, salt, `effect-stream-recovery delivery ${runId}`, keyBytes);
    return new DeliveryKey(new Uint8Array(key));
  }

  /** A salt for a new run. */
  static salt(): Uint8Array {
    return randomBytes(saltBytes);
  }

  /** Seals a part: a nonce, the sealed bytes, and the tag that binds them to their place. */
  seal(kind: PartKind, place: PartPlace, bytes: Uint8Array): Buffer {
    const nonce = randomBytes(nonceBytes);
    const sealing = createCipheriv(cipher, this.#key, nonce).setAAD(boundTo(place));
    return Buffer.concat([
      nonce,
      sealing.update(kindByte(kind)),
      sealing.update(bytes),
      sealing.final(),
      sealing.getAuthTag(),
    ]);
  }

  /** Opens a part; undefined where another key, another place or another hand has made it. */
  open(place: PartPlace, sealed: Uint8Array): OpenedPart | undefined {
    if (sealed.byteLength < nonceBytes + tagBytes + 1) return undefined;
    const opening = createDecipheriv(cipher, this.#key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
    opening.setAAD(boundTo(place)).setAuthTag(sealed.subarray(-tagBytes));
    const opened = opening.update(sealed.subarray(nonceBytes, -tagBytes));
    try {
      opening.final();
    } catch {
      return undefined;
    }
    const kind = kinds[opened[0] ?? kinds.length];
    return kind === undefined ? undefined : { kind, bytes: opened.subarray(1) };
  }

  /** What tells the client's key from any other. */
  lock(runId: string): Buffer {
    return this.seal("lock", lockPlace(runId), new Uint8Array(0));
  }

  /** Whether this is the key of a run's client. */
  opens(runId: string, lock: Uint8Array): boolean {
    return this.open(lockPlace(runId), lock)?.kind === "lock";
  }
}

const boundTo = ({ at, n, run_id }: PartPlace): Buffer => Buffer.from(JSON.stringify([run_id, n, at]));

const kindByte = (kind: PartKind): Uint8Array => Uint8Array.of(kinds.indexOf(kind));
