/**
 * A map in insertion order that lets the garbage collector free deleted values.
 *
 * When V8 rehashes a `Map` or `Set`, the old table points to the new one. A full collection promotes the current table to the old
 * generation. Even after that table is dead, every minor collection treats it, all later tables and their contents as live. If entries come
 * and go with each run, whole runs are copied and kept until the next full collection. Here the tables hold only keys and numbers.
 */
export class Roster<K extends string | number, V> {
  readonly #places = new Map<K, number>();
  /** Values by place. There are at most as many places as the peak size since the roster was last empty. A free place is undefined. */
  readonly #values: Array<V | undefined> = [];
  /** Free places, at most as many as `#values` has. */
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

  /** Adds a value or replaces the one with the same key. */
  set(key: K, value: V): void {
    const place = this.#places.get(key) ?? this.#free.pop() ?? this.#values.length;
    this.#places.set(key, place);
    this.#values[place] = value;
  }

  /** Deletes a value. Returns true if it was there. */
  delete(key: K): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    this.#places.delete(key);
    this.#values[place] = undefined;
    if (this.#places.size > 0) this.#free.push(place);
    else this.#values.length = this.#free.length = 0;
    return true;
  }

  /** Iterates over the values in order. Skips values deleted during the iteration and includes those added. */
  *values(): Generator<V, void> {
    for (const key of this.#places.keys()) {
      const value = this.get(key);
      if (value !== undefined) yield value;
    }
  }

  /** Iterates over the entries under the same rules as `values`. */
  *entries(): Generator<[K, V], void> {
    for (const key of this.#places.keys()) {
      const value = this.get(key);
      if (value !== undefined) yield [key, value];
    }
  }
}
