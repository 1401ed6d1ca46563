/**
 * Keeps what is under way, by its key and in the order in which it came, and nothing of what is over.
 *
 * A `Map` or a `Set` of V8 keeps more. When its table is made anew, the old table points to the new one. A full collection makes the
 * table of the moment an old one; once that is dead, each minor collection takes it, and with it all later tables and what stood in
 * them, for alive. Where something comes and goes with every run, whole runs are copied and kept until the next full collection.
 * Here the tables hold keys and numbers alone.
 */
export class Roster<K extends string | number, V> {
  readonly #places = new Map<K, number>();
  /** By place; a free one is undefined. At most as many as there were at one time since the roster was empty. */
  readonly #values: Array<V | undefined> = [];
  /** Places that are free; at most as many as there are. */
  readonly #free: Array<number> = [];

  get size(): number {
    return this.#places.size;
  }

  has(key: K): boolean {
    return this.#places.has(key);
  }

  get(key: K): V | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#values[place];
  }

  /** Takes a value in, or in the place of the one that has its key. */
  set(key: K, value: V): void {
    const place = this.#places.get(key) ?? this.#free.pop() ?? this.#values.length;
    this.#places.set(key, place);
    this.#values[place] = value;
  }

  /** Forgets a value; whether there was one. */
  delete(key: K): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    this.#places.delete(key);
    this.#values[place] = undefined;
    if (this.#places.size > 0) this.#free.push(place);
    else this.#values.length = this.#free.length = 0;
    return true;
  }

  /** The values, in their order. One that is deleted meanwhile and was not given yet is left out, and a new one is given too. */
  *values(): Generator<V, void> {
    for (const key of this.#places.keys()) {
      const value = this.get(key);
      if (value !== undefined) yield value;
    }
  }

  /** The keys with their values, as `values` gives them. */
  *entries(): Generator<[K, V], void> {
    for (const key of this.#places.keys()) {
      const value = this.get(key);
      if (value !== undefined) yield [key, value];
    }
  }
}
