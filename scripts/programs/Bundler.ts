/**
 * Loads the bundler that Vitest's own builder depends on, so that this package needs none.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/** The part of the bundler that is used here. */
export interface Bundler {
  readonly rolldown: (options: {
    readonly cwd?: string;
    readonly input: string | ReadonlyArray<string> | Readonly<Record<string, string>>;
    readonly platform: "browser" | "node";
    readonly plugins: ReadonlyArray<Plugin>;
    readonly onLog: (level: string, log: { readonly code?: string; readonly message: string }) => void;
  }) => Promise<{
    readonly generate: (options: {
      readonly format: "iife";
      readonly name: string;
      readonly codeSplitting: false;
      readonly minify?: boolean;
    }) => Promise<{ readonly output: ReadonlyArray<{ readonly code?: string }> }>;
    readonly write: (options: {
      readonly format: "esm";
      readonly dir: string;
      readonly entryFileNames: string;
      readonly chunkFileNames: string;
    }) => Promise<{ readonly output: ReadonlyArray<{ readonly fileName: string }> }>;
    readonly close: () => Promise<void>;
  }>;
}

interface Plugin {
  readonly name: string;
  readonly resolveId: (
    specifier: string,
    importer: string | undefined,
  ) => { readonly id: string; readonly external: boolean } | null;
  readonly transform?: (code: string, id: string) => string | null;
}

/** Loads the bundler. */
export const bundler = async (): Promise<Bundler> => {
  const vitest = createRequire(createRequire(import.meta.url).resolve("vitest/package.json"));
  const vite = createRequire(vitest.resolve("vite/package.json"));
  // Cast, because a transitive dependency has no types here.
  return (await import(pathToFileURL(vite.resolve("rolldown")).href)) as Bundler;
};
