/**
 * Caches values derived from a part of the configuration, so that requests do not recompute them.
 */

/** Caches one derived value per configuration object, for as long as that object is alive. */
export class Derived<Config extends object, A> {
  readonly #known = new WeakMap<Config, { readonly value: A }>();
  readonly #derive: (config: Config) => A;

  /** @param derive a pure function; configurations are immutable */
  constructor(derive: (config: Config) => A) {
    this.#derive = derive;
  }

  of(config: Config): A {
    const known = this.#known.get(config);
    if (known !== undefined) return known.value;
    const value = this.#derive(config);
    this.#known.set(config, { value });
    return value;
  }
}
