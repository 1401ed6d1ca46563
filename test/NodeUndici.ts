/**
 * Loads Node's own undici in each test worker before any test imports undici 8, which would otherwise install itself as the
 * dispatcher of the global fetch. Constructing `Headers` is enough to load it. A worker of the quick suite runs many files, in any order.
 */
new Headers();

export {};
