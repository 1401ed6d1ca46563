/**
 * Measures the heap without garbage.
 */

/** Number of consecutive collections. Weak references and finalizers need more than one. */
const collections = 4;

/** Bytes in use after full collections with macrotasks between them. Needs `--expose-gc`. */
export const settledHeap = async (): Promise<number> => {
  if (globalThis.gc === undefined) throw new Error("expected Node to run with --expose-gc");
  for (let index = 0; index < collections; index += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
};
