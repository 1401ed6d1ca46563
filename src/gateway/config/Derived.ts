/**
 * Keeps what follows from a part of the configuration alone, so that no request works it out again.
 */

/** What follows from each configuration; it is forgotten with it. */
export class Derived<Config extends object, A> {
  readonly #known = new WeakMap<Config, { readonly value: A }>();
  readonly #derive: (config: Config) => A;

  /** @param derive gives the same for the same configuration, which does not change */
  constructor(derive: (config: Config) => A) {
    this.#derive = derive;
  }

  of(config: Config): A {
    const known = this.#known.get(config) ?? { value: this.#derive(config) };
    this.#known.set(config, known);
    return known.value;
  }
}
