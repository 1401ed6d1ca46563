/**
 * Releases waiting requests in batches ("waves"). A batch is the number of requests that may be in flight at once.
 *
 * The first batch has eight requests. Each response head releases two more, so a batch doubles with each round of responses. A second
 * without a refusal also doubles it, and a refusal halves it. Pure: each call receives the time, in monotonic milliseconds.
 */

/** Number of requests in the first batch. */
export const firstWave = 8;

/** Returns the size of one process's first batch if several processes release requests together. */
export const firstWaveSize = (processes: number): number => Math.max(1, Math.floor(firstWave / processes));

/** Time without a refusal after which the batch doubles, in milliseconds. */
export const waveQuietMs = 1_000;

/** Maximum size of a batch. With this size a batch no longer limits anything. */
const waveMax = 1 << 20;

/** The batches after one outage or cooldown, from the first released request to the last request that had to wait. */
export class Waves {
  #size: number;
  #inFlight = 0;
  #released = 0;
  #heads = 0;
  #quietSince: number;

  constructor(now: number, size: number = firstWave) {
    this.#size = size;
    this.#quietSince = now;
  }

  /** Maximum requests that may be in flight now. */
  get size(): number {
    return this.#size;
  }

  /** Number of requests that were sent and have neither a response head nor an end. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Number of response heads that have arrived for requests that were sent. */
  get heads(): number {
    return this.#heads;
  }

  get hasBegun(): boolean {
    return this.#released > 0;
  }

  get hasRoom(): boolean {
    return this.#inFlight < this.#size;
  }

  /** Time at which the batch doubles if no refusal arrives. */
  get nextGrowthAt(): number {
    return this.#quietSince + waveQuietMs;
  }

  takeSlot(): void {
    this.#inFlight += 1;
    this.#released += 1;
  }

  /**
   * Records a response head. At most as many heads count as requests were sent, because the head of a request from before this batch proves
   * nothing about the batch.
   */
  recordResponse(): void {
    if (this.#heads === this.#released) return;
    this.#heads += 1;
    this.#size = Math.min(this.#size + 1, waveMax);
  }

  /** Records a refusal, which halves the batch. */
  recordRefusal(now: number): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#quietSince = now;
  }

  /** Records that a request has a response or has ended. */
  freeSlot(): void {
    this.#inFlight -= 1;
  }

  /** Doubles the batch for each second without a refusal. */
  grow(now: number): void {
    while (now >= this.nextGrowthAt && this.#size < waveMax) {
      this.#size *= 2;
      this.#quietSince += waveQuietMs;
    }
    if (now >= this.nextGrowthAt) this.#quietSince = now;
  }
}
