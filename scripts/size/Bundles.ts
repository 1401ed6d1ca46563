/**
 * Measures how much of the package a program bundles with each entry point.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { bundler } from "../programs/Bundler.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Sizes of a minified bundle, in bytes. */
export interface BundleSize {
  readonly bytes: number;
  readonly gzip: number;
}

/** Bundles a source with all of this package that it loads. Dependencies and the modules of Node stay outside. */
export const bundleOf = async (source: string): Promise<BundleSize> => {
  const { rolldown } = await bundler();
  const built = await rolldown({
    input: join(root, source),
    platform: "node",
    plugins: [
      {
        name: "dependencies",
        resolveId: (id, importer) => (importer === undefined || id.startsWith(".") ? null : { id, external: true }),
      },
    ],
    onLog: () => undefined,
  });
  const { output } = await built.generate({ format: "iife", name: "bundled", codeSplitting: false, minify: true });
  await built.close();
  const code = output[0]?.code ?? "";
  return { bytes: Buffer.byteLength(code), gzip: gzipSync(code).byteLength };
};
