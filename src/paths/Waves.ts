/**
 * Releases waiting requests in waves: as many at once as the other side has shown that it takes.
 *
 * A wave begins with eight requests. Each answered head releases two more, so a wave doubles with each round of heads; a second
 * without a refusal doubles it too. A refusal halves it. Pure: each call takes the time, in monotonic milliseconds.
 */

/** Number of requests in the first wave. */
export const firstWave = 8;

/** Returns the first wave of one process if several release requests together. */
export const firstWaveOf = (processes: number): number => Math.max(1, Math.floor(firstWave / processes));

/** Time without a refusal after which a wave doubles, in milliseconds. */
export const waveQuietMs = 1_000;

/** Maximum size of a wave. At this size it holds nothing back. */
const waveMax = 1 << 20;

/** One return of a path or a cooldown: from its first request to the last one that had to wait. */
export class Waves {
  #size: number;
  #going = 0;
  #went = 0;
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

  /** Requests that were sent and neither have a head nor are over. */
  get going(): number {
    return this.#going;
  }

  /** Heads that have come for requests that were sent. */
  get heads(): number {
    return this.#heads;
  }

  get hasBegun(): boolean {
    return this.#went > 0;
  }

  get hasRoom(): boolean {
    return this.#going < this.#size;
  }

  /** Time at which the wave doubles if no refusal comes. */
  get nextGrowthAt(): number {
    return this.#quietSince + waveQuietMs;
  }

  takeSlot(): void {
    this.#going += 1;
    this.#went += 1;
  }

  /**
   * Records a head. At most as many heads count as requests were sent: the head of an earlier request proves nothing about this
   * wave.
   */
  recordResponse(): void {
    if (this.#heads === this.#went) return;
    this.#heads += 1;
    this.#size = Math.min(this.#size + 1, waveMax);
  }

  /** Records that the provider takes no more for now. */
  recordRefusal(now: number): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#quietSince = now;
  }

  /** Records that a request has a response or is over. */
  freeSlot(): void {
    this.#going -= 1;
  }

  /** Doubles the wave for each quiet second that has passed. */
  grow(now: number): void {
    while (now >= this.nextGrowthAt && this.#size < waveMax) {
      this.#size *= 2;
      this.#quietSince += waveQuietMs;
    }
    if (now >= this.nextGrowthAt) this.#quietSince = now;
  }
}
