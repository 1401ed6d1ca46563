/**
 * Lets waiting requests go in waves: as many at once as the other side has shown that it takes.
 *
 * A wave begins with eight requests. Each answered head lets two more go, so a wave doubles with each round of heads; a second
 * without a refusal doubles it too. A refusal halves it. Pure: each call is given the time, in monotonic milliseconds.
 */

/** Requests that go together at first. */
export const firstWave = 8;

/** The part of one of so many processes, which let requests go together. */
export const firstWaveOf = (processes: number): number => Math.max(1, Math.floor(firstWave / processes));

/** A wave doubles after so long without a refusal, in milliseconds. */
export const waveQuietMs = 1_000;

/** Beyond this a wave holds nothing back. */
const waveMax = 1 << 20;

/** One return: from its first request to the last one that had to wait. */
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

  /** Most requests that may be on their way now. */
  get size(): number {
    return this.#size;
  }

  /** Requests that went and neither have a head nor are over. */
  get going(): number {
    return this.#going;
  }

  /** Heads that have come of requests that went. */
  get heads(): number {
    return this.#heads;
  }

  /** Whether a request went. */
  get hasBegun(): boolean {
    return this.#went > 0;
  }

  get hasRoom(): boolean {
    return this.#going < this.#size;
  }

  /** When the wave doubles if no refusal comes. */
  get growsAt(): number {
    return this.#quietSince + waveQuietMs;
  }

  went(): void {
    this.#going += 1;
    this.#went += 1;
  }

  /** A head has come. Only as many heads count as requests went: one of a request from before proves nothing about this wave. */
  answered(): void {
    if (this.#heads === this.#went) return;
    this.#heads += 1;
    this.#size = Math.min(this.#size + 1, waveMax);
  }

  /** The provider takes no more for now. */
  refused(now: number): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#quietSince = now;
  }

  /** A request that went has a response, or is over. */
  left(): void {
    this.#going -= 1;
  }

  /** Doubles the wave for each quiet second that is over. */
  passed(now: number): void {
    while (now >= this.growsAt && this.#size < waveMax) {
      this.#size *= 2;
      this.#quietSince += waveQuietMs;
    }
    if (now >= this.growsAt) this.#quietSince = now;
  }
}
