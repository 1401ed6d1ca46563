/**
 * A language model of `effect/ai` for the four protocols. It uses this package's own client, which needs Node, so it has a
 * separate entry point: `./effect-ai` runs without Node.
 */
export * as ProviderModel from "./ProviderModel.ts";
