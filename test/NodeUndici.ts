/**
 * Has Node load its own undici in each worker of tests, with the first of its classes, before a test imports undici 8: that would make
 * itself the dispatcher of the global fetch. A worker of the quick suite plays many files, in any order.
 */
new Headers();

export {};
