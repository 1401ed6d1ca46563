/**
 * Bundles an entry as for a browser, and says which modules of a runtime it asks for.
 *
 * The bundler is the one that Vitest's own builder brings, so that the package needs none of its own.
 */
import { createRequire, isBuiltin } from "node:module";
import { pathToFileURL } from "node:url";

/** What this file uses of the bundler. */
interface Bundler {
  readonly rolldown: (options: {
    readonly input: string;
    readonly platform: "browser";
    readonly plugins: ReadonlyArray<Plugin>;
    readonly onLog: (level: string, log: { readonly code?: string; readonly message: string }) => void;
  }) => Promise<{
    readonly generate: (options: {
      readonly format: "iife";
      readonly name: string;
      readonly codeSplitting: false;
    }) => Promise<{ readonly output: ReadonlyArray<{ readonly code?: string }> }>;
    readonly close: () => Promise<void>;
  }>;
}

interface Plugin {
  readonly name: string;
  readonly resolveId: (
    specifier: string,
    importer: string | undefined,
  ) => { readonly id: string; readonly external: true } | null;
}

export interface Bundle {
  /** Every module outside of the bundle that is asked for, with its importer. */
  readonly outside: ReadonlyArray<string>;
  /** What the bundler complains about. */
  readonly complaints: ReadonlyArray<string>;
  /** A script that leaves its exports in the global `bundled`. */
  readonly code: string;
}

const foreign = /^(?:node|bun|cloudflare):|^@effect\/platform-/;

/** Bundles a module of the repository with everything that it imports, type imports aside. */
export const bundle = async (input: string): Promise<Bundle> => {
  const outside: Array<string> = [];
  const complaints: Array<string> = [];
  const { rolldown } = await bundler();
  const built = await rolldown({
    input,
    platform: "browser",
    plugins: [
      {
        name: "outside",
        resolveId: (specifier, importer) => {
          if (!foreign.test(specifier) && !isBuiltin(specifier)) return null;
          outside.push(`${specifier} from ${importer ?? input}`);
          return { id: specifier, external: true };
        },
      },
    ],
    onLog: (level, { code, message }) => {
      // effect asks whether `import.meta` has an environment; a script has no `import.meta`.
      if (level === "warn" && code !== "EMPTY_IMPORT_META") complaints.push(`${code ?? ""} ${message}`);
    },
  });
  const { output } = await built.generate({ format: "iife", name: "bundled", codeSplitting: false });
  await built.close();
  return { outside, complaints, code: output[0]?.code ?? "" };
};

const bundler = async (): Promise<Bundler> => {
  const vitest = createRequire(createRequire(import.meta.url).resolve("vitest/package.json"));
  const vite = createRequire(vitest.resolve("vite/package.json"));
  // What a package of another package exports has no type here.
  return (await import(pathToFileURL(vite.resolve("rolldown")).href)) as Bundler;
};
