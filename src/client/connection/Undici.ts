/**
 * Provides the undici classes on which the client is built.
 *
 * Bun resolves `import "undici"` to its own stub, whose dispatchers do nothing. The package itself runs in Bun as it does in Node, so under
 * Bun it is loaded by its file name.
 */
import { createRequire } from "node:module";
import * as Platform from "@effect/platform-node/Undici";

type Undici = Pick<typeof Platform, "Agent" | "buildConnector" | "Client" | "Dispatcher" | "Pool">;

const loadInstalled = (): Undici => {
  const platform = createRequire(import.meta.url).resolve("@effect/platform-node/Undici");
  // Loads the main module of the package that the types above come from.
  return createRequire(platform)("undici/index.js") as Undici;
};

/** The classes of the installed undici. */
export const { Agent, buildConnector, Client, Dispatcher, Pool } = "Bun" in globalThis ? loadInstalled() : Platform;
