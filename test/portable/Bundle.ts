/**
 * Bundles an entry as for a browser, and says which modules of a runtime it asks for.
 */
import { isBuiltin } from "node:module";
import { bundler } from "../../scripts/programs/Bundler.ts";

export interface Bundle {
  /** Every module outside of the bundle that is asked for, with its importer. */
  readonly outside: ReadonlyArray<string>;
  /** Errors and warnings of the bundler. */
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
